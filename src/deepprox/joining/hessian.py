"""The Hessian of the objective on its live weights, from what the units do.

A weight ``w_aj`` reaches the loss through its unit's pre-activation alone: moving it by ``t`` moves
``z_ia`` by ``t F_ij`` for every observation ``i``. With ``g_ib`` the derivative of the loss in a shift of
``z_ib``, for a unit ``b`` of the same block as ``a`` or of a later one,

    H[aj, bk] = sum_i F_ij (dg_ib / dz_ia  F_ik  +  g_ib  dF_ik / dz_ia).

``dg`` and ``dF`` (:mod:`deepprox.joining.bends`) are as many as there are live units, not as live weights.
Blocks whose weights are shared by several places take :mod:`deepprox.joining.products`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox import traces
from deepprox.blocks import Block
from deepprox.joining.bends import Bends, bends
from deepprox.joining.certificate import flatten, unravel
from deepprox.joining.kinks import Slopes
from deepprox.joining.live import width
from deepprox.joining.products import columns
from deepprox.problem import Network, Problem, Weights
from deepprox.runtime import share_out
from deepprox.struct import replace

BYTES = 2**27  # of derivatives held at a time; more observations than fit are taken in turns
FEW_BYTES = 2**25  # the same where memory is short


class Places(NamedTuple):
    """Which unit and which feature every live weight belongs to, counted through all blocks."""

    unit: np.ndarray
    feature: np.ndarray

    @classmethod
    def of(cls, live: np.ndarray, W: Weights) -> "Places":
        """The places of the weights ``live``, numbered as in the vector of all weights."""
        units, features = np.array([w.shape for w in W]).T
        sizes = units * features
        block = np.searchsorted(np.cumsum(sizes), live, side="right")
        row, column = np.divmod(live - (np.cumsum(sizes) - sizes)[block], features[block])
        return cls((np.cumsum(units) - units)[block] + row, (np.cumsum(features) - features)[block] + column)


@traces.jit
def _penalty_products(network: Network, W: Weights, V: Array) -> Array:
    """Products of the penalty's Hessian with the rows of ``V``."""
    w, flat = flatten(Problem(network, None, None, None, None), W)  # type: ignore[arg-type]
    return jax.vmap(lambda v: jax.jvp(flat.penalty_gradient, (w,), (v,))[1])(V)


@traces.jit
def _penalty_hessian(network: Network, W: Weights, index: Array) -> Array:
    w, flat = flatten(Problem(network, None, None, None, None), W)  # type: ignore[arg-type]

    def column(j: Array) -> Array:
        direction = jnp.zeros_like(w).at[j].set(1.0, mode="drop")
        return jax.jvp(flat.penalty_gradient, (w,), (direction,))[1][index]

    return lax.map(column, index)


class Hessian(NamedTuple):
    """Second derivatives of the mean loss and of the penalty in the same weights."""

    loss: np.ndarray
    penalty: np.ndarray

    @property
    def full(self) -> np.ndarray:
        """Those of the objective."""
        return self.loss + self.penalty

    @property
    def majorised(self) -> np.ndarray:
        """Those of a majoriser: what is concave in the penalty is replaced by its tangent."""
        diagonal = np.diag(self.penalty)
        if (self.penalty == np.diag(diagonal)).all():
            return self.loss + np.diag(np.maximum(diagonal, 0))
        values, vectors = np.linalg.eigh(self.penalty)
        return self.loss + (vectors * np.maximum(values, 0)) @ vectors.T

    def at(self, keep: np.ndarray) -> "Hessian":
        """Those in some of the weights."""
        if keep.all():
            return self
        return Hessian(self.loss[np.ix_(keep, keep)], self.penalty[np.ix_(keep, keep)])


def hessian(problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray, gradient: Any = None) -> Hessian:
    """Second derivatives of the objective in the weights ``live``.

    Given the ``gradient`` of the mean loss, they are those along steps that level free biases of the outputs
    (:func:`deepprox.joining.point.leap`): without what the gradient in such a bias says of products of two
    weights, since there the bias makes up for their mean.
    """
    levels = problem.allsum.in_memory and problem.network.blocks[-1].free_bias
    pull = Block.biases(unravel(gradient, W)[-1]) if gradient is not None and levels else None
    return Hessian(loss_hessian(problem, W, slopes, live, pull), penalty_hessian(problem.network, W, live))


def penalty_hessian(network: Network, W: Weights, live: np.ndarray) -> np.ndarray:
    """Second derivatives of the penalty in the weights ``live``; few shapes compile.

    A diagonal ``D`` takes random numbers ``v`` to ``(D 1) v``, entry by entry, and no other matrix does: two
    products tell whether all columns are needed.
    """
    if all(block.penalty.straight for block in network.blocks):
        return np.zeros((live.size, live.size))
    dtype = np.asarray(W[0]).dtype
    v = np.random.default_rng(0).uniform(1, 2, live.size).astype(dtype)
    V = np.zeros((2, sum(w.size for w in W)), dtype)
    V[:, live] = np.ones(live.size), v
    diagonal, bent = np.asarray(_penalty_products(network, W, V), float)[:, live]
    size = np.abs(diagonal).max(initial=0.0)
    if np.abs(bent - diagonal * v).max(initial=0.0) <= 100 * np.finfo(dtype).eps * size:
        return np.diag(diagonal)
    index = np.full(max(32, 1 << (live.size - 1).bit_length()), np.iinfo(np.int32).max, np.int32)
    index[: live.size] = live
    return np.asarray(_penalty_hessian(network, W, index), float)[: live.size, : live.size]


def loss_hessian(
    problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray, pull: np.ndarray | None = None
) -> np.ndarray:
    """Second derivatives of the mean loss in the weights ``live``.

    What comes from a ``pull`` on the mean of every output is left out of products of two weights. Where
    observations are too many to have slopes of their own at kinks, kinks are blurred.
    """
    blocks, n_out = problem.network.blocks, len(W[-1])
    pull = np.zeros(n_out, np.asarray(W[-1]).dtype) if pull is None else pull
    room, blurred = (BYTES, False) if problem.allsum.in_memory else (FEW_BYTES, True)
    if all(block.by_unit for block in blocks):
        each, of_rows = by_units(W, live)
    else:
        each, of_rows = 8 * sum(problem.network.numbers(problem.X.shape[1])), partial(columns, live=live)
    H = np.zeros((live.size, live.size))
    for turn in problem.allsum.turns(problem):
        n = turn.X.shape[0]
        size = -(-n // -(-n * each // room))
        for rows in (slice(lo, lo + size) for lo in range(0, n, size)):
            X, y, weight = (np.asarray(a)[rows] for a in (turn.X, turn.y, turn.weight))
            some = replace(turn, X=X, y=y, weight=weight)
            H += of_rows(some, W, slopes.of(rows), pull=pull, blurred=blurred)
    return np.asarray(problem.allsum(H), float)


def by_units(W: Weights, live: np.ndarray) -> tuple[int, Callable[..., np.ndarray]]:
    """How many bytes an observation takes, and the second derivatives of some, from what their units do."""
    at, n_hidden, n_out = Places.of(live, W), sum(len(w) for w in W[:-1]), len(W[-1])
    reading = np.concatenate([np.zeros(0, bool), *map(Block.reading, W[:-1])])
    reading[at.unit[at.unit < n_hidden]] = True
    hidden = np.flatnonzero(reading)
    # units that have a part in it, counted anew
    at = at._replace(unit=np.searchsorted(np.concatenate([hidden, n_hidden + np.arange(n_out)]), at.unit))

    def of_rows(some: Problem, W: Weights, slopes: Slopes, pull: np.ndarray, blurred: bool) -> np.ndarray:
        return _assemble(bends(some, W, slopes, hidden, pull, blurred), at)

    return 8 * (width(hidden.size, n_hidden) * sum(sum(w.shape) for w in W) + n_out**2), of_rows


def _assemble(found: Bends, at: Places) -> np.ndarray:
    """All of it, a row and a column of blocks for each unit: weights are sorted by block, then unit."""
    g, F, dg, dF, dg_out = found
    H, (units, counts) = np.zeros((at.unit.size, at.unit.size)), np.unique(at.unit, return_counts=True)
    first, n_hidden = np.cumsum(counts) - counts, len(g) - len(dg_out)
    moving = at.feature - (F.shape[0] - dF.shape[1])  # negative where the first block reads
    tail = np.flatnonzero(moving >= 0)
    reads, bent = F[at.feature], np.any(dF, axis=2)

    def rows_of(some: Iterable[int]) -> None:
        room = np.empty(reads.shape, reads.dtype)  # once: fresh memory costs as much as what is done in it
        for k in some:
            unit, lo = units[k], first[k]
            out = unit >= n_hidden
            d, after = (dg_out[unit - n_hidden], at.unit[lo:] - n_hidden) if out else (dg[unit], at.unit[lo:])
            M = np.take(d, after, axis=0, out=room[lo:], mode="clip")
            M *= reads[lo:]
            if not out:
                later = tail[(tail >= lo) & bent[unit, moving[tail]]]
                M[later - lo] += g[at.unit[later]] * dF[unit, moving[later]]
            hi = lo + counts[k]
            H[lo:hi, lo:] = reads[lo:hi] @ M.T
            H[hi:, lo:hi] = H[lo:hi, hi:].T

    share_out(rows_of, len(units), reads.shape[1] * at.unit.size**2)
    return H
