"""What one looks at after a sweep: residuals (Boyd et al. 2011, 3.3.1) and both objectives.

Residuals are amplified with depth, so a small split objective can hide a useless network: the forward
objective is reported beside it, and it is the one that counts.
"""

import jax
import jax.numpy as jnp
from jax import Array

from deepprox.problem import Problem, Weights
from deepprox.splitting.segments import Segment, fit, pieces_of
from deepprox.splitting.state import Info, State, charged_loss


def measure(problem: Problem, state: State, F: list[Array], fits: list[Array], W_old: Weights) -> Info:
    """Root mean squares over observations of ``Z - W F`` and of ``rho (W - W_old) F``, and their scales.

    Of a segment ``W F`` is its forward pass, and ``(W - W_old) F`` what the W-step changed in it.
    """
    weight = problem.weight[:, None]
    primal = dual = primal_scale = dual_scale = jnp.zeros((), weight.dtype)
    rows = zip(pieces_of(problem), state.W, W_old, state.Z, state.U, state.rho, F, fits, strict=True)
    for piece, w, w_old, z, u, rho, f, end in rows:
        segment = isinstance(piece, Segment)
        moved = end - piece.linear(w_old, f) if segment else fit(piece, w - w_old, f, len(z))
        primal += (weight * (z - end) ** 2).sum()
        dual += (weight * (rho * moved) ** 2).sum()
        primal_scale += (weight * jnp.maximum(z**2, end**2)).sum()
        dual_scale += (weight * (rho * u) ** 2).sum()
    split_loss = charged_loss(problem, state.W, state.Z)
    loss = charged_loss(problem, state.W, problem.network.forward(state.W, problem.X))
    each = jnp.stack([jnp.mean(rho) for rho in state.rho])
    sums = (primal, dual, primal_scale, dual_scale), split_loss, loss, each / problem.allsum.parts
    squares, split_loss, loss, each = problem.allsum(sums)
    primal, dual, primal_scale, dual_scale = (jnp.sqrt(square) for square in squares)
    penalty = problem.network.penalty(state.W)
    return Info(
        objective=loss + penalty,
        loss=loss,
        split_objective=split_loss + penalty,
        primal=primal,
        dual=dual,
        primal_scale=primal_scale,
        dual_scale=dual_scale,
        rho=each.mean(),
        n_nonzero=jnp.stack([jnp.count_nonzero(w) for w in jax.tree.leaves(state.W)]).sum(),
    )


def satisfied(info: Info, tol: float) -> Array:
    """Whether both residuals are within ``tol``, absolutely and relative to their scales."""
    primal = info.primal <= tol * (1 + info.primal_scale)
    return primal & (info.dual <= tol * (1 + info.dual_scale))
