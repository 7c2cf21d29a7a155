"""What a sweep needs (State) and what one looks at after it (Info)."""

from typing import Any, NamedTuple

import numpy as np
from jax import Array

from deepprox.problem import Problem, Weights
from deepprox.splitting.segments import Segment, fit, pieces_of
from deepprox.struct import rows, struct


@struct
class State:
    """Weights, split pre-activations, scaled duals, constraint weights, W-step curvatures.

    One entry for each piece: a block, or a segment, whose weights are a tuple. A constraint weight is one
    number, or a column over observations.
    """

    W: Weights
    Z: tuple[Array, ...] = rows()
    U: tuple[Array, ...] = rows()
    rho: tuple[Array, ...] = rows()
    curvature: tuple[Array, ...]


class Info(NamedTuple):
    """One row of the history of the split phase."""

    objective: Array
    loss: Array
    split_objective: Array
    primal: Array
    dual: Array
    primal_scale: Array
    dual_scale: Array
    rho: Array
    n_nonzero: Array


def features(problem: Problem, Z: tuple[Array, ...]) -> list[Array]:
    """``F_l = [1, f_l]``, ``f_l`` what block ``l`` reads, of ``link(z)`` and ``X``; no 1 for a segment."""
    network = problem.network
    reads = network.reads(problem.X, network.activations(Z))
    return [block.features(r) for block, r in zip(network.blocks, reads, strict=True)]


def start(W: Weights, Z: tuple, rho: tuple) -> State:
    """A feasible start: ``Z`` is the forward pass of ``W``, the duals are zero."""
    lead = Z[0].shape[:-2]
    nothing: Any = tuple(np.zeros(z.shape, z.dtype) for z in Z)
    flat: Any = tuple(np.zeros(lead, z.dtype) for z in Z)
    return State(W, Z, nothing, rho, flat)


def charged_loss(problem: Problem, W: Weights, Z: tuple[Array, ...]) -> Array:
    """The mean loss at ``z_L`` and what hidden units are charged, at splits and inside segments."""
    network, activations = problem.network, problem.network.activations(Z)
    total = problem.data_loss(Z[-1]) + network.activity(Z, activations, problem.weight)
    for piece, w, r in zip(pieces_of(problem), W, network.reads(problem.X, activations), strict=True):
        if isinstance(piece, Segment):
            total += sum(act.value(A, problem.weight) for act, A in piece.acts_inside(w, r))
    return total


def lagrangian(problem: Problem, state: State) -> Array:
    """``sum_i weight_i (loss + sum_l rho/2 (|z - W f + u|^2 - |u|^2)) + activities + sum_l penalty_l``."""
    W, Z = state.W, state.Z
    missed: Any = 0.0
    each = zip(pieces_of(problem), features(problem, Z), W, Z, state.U, state.rho, strict=True)
    for piece, f, w, z, u, r in each:
        missed += (r / 2 * ((z - fit(piece, w, f, len(z)) + u) ** 2 - u**2)).sum(-1)
    smooth = charged_loss(problem, W, Z) + (problem.weight * missed).sum()
    return problem.allsum(smooth) + problem.network.penalty(W)
