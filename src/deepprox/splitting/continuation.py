"""Where ``rho`` starts and how it grows.

A small ``rho`` lets the split pre-activations fit the response before the weights follow, and finds
better minima; but a ``rho`` that is small against the penalty lets the W-step empty the network. So it
starts at a multiple of the pull of the penalty, doubles from block to block towards the input, and
grows geometrically. ``docs/design/solver.md`` has the measurements.
"""

import jax
import jax.numpy as jnp
from jax import Array

from deepprox.problem import Problem, Weights

PULL_TO_RHO = 12.5
DOUBLING = 2.0
FLOOR = 0.01


def automatic_rho(problem: Problem, W: Weights) -> tuple[Array, ...]:
    """``rho_l = 2^(L - l) max(0.01, 12.5 mean |d penalty_l / d W_l|)`` at the starting weights."""
    blocks = problem.network.blocks
    pulls = [jnp.abs(jax.grad(block.value)(w)[:, 1:]).mean() for block, w in zip(blocks, W, strict=True)]
    base = [jnp.maximum(FLOOR, PULL_TO_RHO * pull).astype(W[0].dtype) for pull in pulls]
    return tuple(rho * DOUBLING ** (len(W) - 1 - l) for l, rho in enumerate(base))


def grow(
    rho: tuple[Array, ...], U: tuple[Array, ...], growth: Array | float, rho_max: Array | float
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """``rho <- growth rho`` up to ``rho_max``; the scaled duals keep ``rho U``."""
    grown = tuple(jnp.minimum(r * growth, jnp.maximum(r, rho_max)) for r in rho)
    return grown, tuple(u * (r / r_next) for u, r, r_next in zip(U, rho, grown, strict=True))
