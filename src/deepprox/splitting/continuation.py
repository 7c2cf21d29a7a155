"""Where ``rho`` starts and how it grows.

A small ``rho`` lets the split pre-activations fit the response before the weights follow, and finds
better minima; but a ``rho`` that is small against the penalty lets the W-step empty the network. So it
starts at a multiple of the pull of the penalty, falls from block to block towards the input, and
grows geometrically; a hidden layer that is the only one takes a tenth of it, where deeper networks would
empty. A segment that is emptied stays so, since its gradient at zero is zero: it starts from a
larger one. ``docs/design/solver.md`` has the measurements.
"""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.blocks import Block

PULL_TO_RHO = 5.0
TILT = 0.8
FLOOR = 0.02
ALONE = 0.1
SEGMENT = 20.0


def automatic_rho(pulls: list[np.ndarray], splits: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """``rho_l = 0.8^(L - l) max(0.02, 5 mean |d penalty_l / d W_l|)``, given these derivatives.

    One for each split; a tenth of it at the only hidden layer of a network, and 20 times that where a segment
    of several blocks ends. Leading axes (many starts) are kept; biases, in column 0, do not count.
    """
    ends, rho = (*splits, len(pulls)), []
    for begin, end in pairwise((0, *ends)):
        pull = pulls[end - 1]
        base = np.maximum(FLOOR, PULL_TO_RHO * np.abs(Block.slopes(pull)).mean((-2, -1)))
        scale = TILT ** (len(pulls) - end) * (SEGMENT if end - begin > 1 else 1.0)
        scale *= ALONE if (end, len(pulls)) == (1, 2) else 1.0
        rho.append((scale * base).astype(pull.dtype))
    return tuple(rho)


def grow(
    rho: tuple[Array, ...], U: tuple[Array, ...], growth: Array | float, rho_max: Array | float
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """``rho <- growth rho`` up to ``rho_max``; the scaled duals keep ``rho U``."""
    grown = tuple(jnp.minimum(r * growth, jnp.maximum(r, rho_max)) for r in rho)
    return grown, tuple(u * (r / r_next) for u, r, r_next in zip(U, rho, grown, strict=True))
