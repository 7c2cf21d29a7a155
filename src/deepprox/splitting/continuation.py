"""Where ``rho`` starts and how it grows.

A small ``rho`` lets the split pre-activations fit the response before the weights follow, and finds
better minima; but a ``rho`` that is small against the penalty lets the W-step empty the network. So it
starts at a multiple of the pull of the penalty, falls from block to block towards the input, and
grows geometrically. ``docs/design/solver.md`` has the measurements.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

PULL_TO_RHO = 5.0
TILT = 0.8
FLOOR = 0.02


def automatic_rho(pulls: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """``rho_l = 0.8^(L - l) max(0.02, 5 mean |d penalty_l / d W_l|)``, given these derivatives.

    Leading axes (many starts) are kept; biases, in column 0, do not count.
    """
    base = [np.maximum(FLOOR, PULL_TO_RHO * np.abs(pull[..., 1:]).mean((-2, -1))) for pull in pulls]
    rho = (TILT ** (len(base) - 1 - l) * r for l, r in enumerate(base))
    return tuple(r.astype(pull.dtype) for r, pull in zip(rho, pulls, strict=True))


def grow(
    rho: tuple[Array, ...], U: tuple[Array, ...], growth: Array | float, rho_max: Array | float
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """``rho <- growth rho`` up to ``rho_max``; the scaled duals keep ``rho U``."""
    grown = tuple(jnp.minimum(r * growth, jnp.maximum(r, rho_max)) for r in rho)
    return grown, tuple(u * (r / r_next) for u, r, r_next in zip(U, rho, grown, strict=True))
