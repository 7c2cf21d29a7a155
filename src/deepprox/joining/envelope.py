"""Quasi-Newton steps on the forward-backward envelope, for a penalty that has kinks away from zero.

The nuclear norm, the max-norm or a box hold weights at places that no sign pattern describes. With
``p = prox(w - step g, step)`` and ``R = (w - p) / step``, the envelope

    loss(w) - step g' R + step |R|^2 / 2 + penalty(p)

is continuous and has the same minima. It lies above the objective at ``p`` where ``step`` is at most one over
the curvature of the loss on the way there; with a longer one it may fall without end. A trial goes from the
prox-gradient point ``p`` towards a limited-memory BFGS step on ``R = 0``: ``w+ = (1 - t) p + t (w - H R)``;
with ``t = 0`` it is the prox-gradient step itself (Stella, Themelis, Sopasakis and Patrinos 2017).
"""

import jax.numpy as jnp
from jax import Array

from deepprox.joining.certificate import Flat

SHORTEST = 2.0**-4  # share of a direction below which the step is the prox-gradient step itself
DECREASE = 1e-3


def envelope(flat: Flat, w: Array, loss: Array, g: Array, step: Array) -> tuple[Array, Array]:
    """The envelope at ``w``, and ``R``."""
    R = flat.residual(w, g, step)
    return loss - step * (g @ R) + step / 2 * (R @ R) + flat.penalty(w - step * R), R


def trial_point(w: Array, R: Array, step: Array, direction: Array, share: Array) -> Array:
    """Between the prox-gradient point and the quasi-Newton step."""
    t = jnp.where(share > SHORTEST, share, 0.0)
    return (1 - t) * (w - step * R) + t * (w + direction)


def is_lower(ended: Array, began: Array, R: Array, step: Array) -> Array:
    """Whether a trial lowered the envelope enough, up to rounding."""
    noise = 4 * jnp.finfo(R.dtype).eps * jnp.abs(began)
    return ended <= began - DECREASE * step * (R @ R) + noise


def is_bound(flat: Flat, w: Array, loss: Array, g: Array, R: Array, step: Array) -> Array:
    """Whether the envelope at ``w`` lies above the objective at the prox-gradient point, up to rounding."""
    above = loss - step * (g @ R) + step / 2 * (R @ R)
    noise = 4 * jnp.finfo(R.dtype).eps * (jnp.abs(loss) + jnp.abs(above))
    return flat.loss_and_gradient(w - step * R)[0] <= above + noise
