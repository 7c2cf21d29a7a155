"""The positive part, whose kink may be rounded, and its prox: what hinges and quantiles are made of."""

import jax.numpy as jnp
from jax import Array

from deepprox.arrays import namespace


def plus(x: Array, width: Array | float | None) -> Array:
    """``max(x, 0)``, its kink rounded by a parabola where ``|x| < width``."""
    width = 0.0 if width is None else width
    xp = namespace(x)
    rounded = xp.clip(x + width, 0, 2 * width) ** 2 / (4 * width + (width <= 0))
    return xp.where(x >= width, x, rounded)


def plus_prox(u: Array, step: Array, width: Array | float | None) -> Array:
    """``argmin_x plus(x, width) + (x - u)^2 / (2 step)``: flat, rounded or sloped, whichever holds it."""
    width = 0.0 if width is None else width
    rounded = width * (2 * u - step) / (step + 2 * width)
    return jnp.where(u <= -width, u, jnp.where(u - step >= width, u - step, rounded))
