"""Kinks of piecewise links: where pre-activations sit on them, and with which slopes.

A ReLU network is at its best with some pre-activations exactly at a kink. There the loss has no
gradient, and any slope between those of the two sides gives one of its subgradients. An entry (a unit of
a hidden block at one observation) is *held* when it is kept at its kink by a slope strictly between.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.links import Link
from deepprox.problem import Problem, Weights

N_CANDIDATES = 256
EDGE = 1e-6

Slopes = tuple[
    tuple[np.ndarray, np.ndarray], ...
]  # of every hidden block: mask of held entries, their slopes


class Kinks(NamedTuple):
    """Entries that may sit at a kink: where they are, how far off, the two slopes, what follows.

    ``upstream`` is the derivative of the mean loss in what the next block reads of the entry.
    """

    block: np.ndarray
    entry: np.ndarray
    row: np.ndarray
    offset: np.ndarray
    left: np.ndarray
    right: np.ndarray
    upstream: np.ndarray

    @property
    def jump(self) -> np.ndarray:
        """``c_k``: what the derivative of the objective in the pre-activation jumps by."""
        return self.upstream * (self.right - self.left)

    def slopes(self, problem: Problem, s: np.ndarray, pick: np.ndarray) -> Slopes:
        """Slopes ``left + s (right - left)`` at the picked entries."""
        out = []
        for l, (held, slope) in enumerate(no_slopes(problem)):
            mask, value = np.zeros(held.shape, bool), np.zeros(slope.shape, slope.dtype)
            here = pick & (self.block == l)
            mask.flat[self.entry[here]] = True
            value.flat[self.entry[here]] = (self.left + s * (self.right - self.left))[here]
            out.append((mask, value))
        return tuple(out)


def no_slopes(problem: Problem) -> Slopes:
    """Every link with its own derivative everywhere."""
    shapes = [(problem.X.shape[0], block.size) for block in problem.network.blocks[:-1]]
    return tuple((np.zeros(s, bool), np.zeros(s, problem.X.dtype)) for s in shapes)


def none() -> Kinks:
    """No candidates: all links are smooth."""
    return Kinks(*np.zeros((3, 0), int), *np.zeros((4, 0)))


def forward(
    problem: Problem, W: Weights, slopes: Slopes, nudge: tuple[Array, ...], ride: Array
) -> tuple[tuple[Array, ...], Array]:
    """Hidden ``Z`` and ``eta`` with chosen slopes at held entries, reads shifted by ``nudge``.

    In a deep ReLU network an entry above a held one is at its own kink too, because all that it reads
    is zero there. It follows the one below: in rows that ``ride``, and in rows with a held entry, entries
    exactly at a kink take the slope of its right side.
    """
    Z, reads = [], problem.X
    blocks = problem.network.blocks
    for block, w, (held, slope), shift in zip(blocks[:-1], W[:-1], slopes, nudge, strict=True):
        z = block.linear(w, reads)
        reads = block.link(z) + shift
        if block.link.kinks:
            one = jnp.ones_like(z)
            own, right = (jax.jvp(block.link, (at,), (one,))[1] for at in (z, z + EDGE))
            at_kink = jnp.isin(z, jnp.asarray(block.link.kinks, z.dtype))
            wanted = jnp.where(held, slope, jnp.where(at_kink & ride, right, own))
            # adds zero, with a derivative that replaces the link's own
            reads += lax.stop_gradient(wanted - own) * (z - lax.stop_gradient(z))
        ride = ride | held.any(1, keepdims=True)
        Z.append(z)
    return tuple(Z), blocks[-1].linear(W[-1], reads)


def sides(link: Link, kink: float, dtype: Any) -> np.ndarray:
    """The derivatives of a link on the left and on the right of a kink."""
    at = jnp.asarray([kink - EDGE, kink + EDGE], dtype)
    return np.asarray(jax.jvp(link, (at,), (jnp.ones_like(at),))[1])


class Idle(NamedTuple):
    """Entries of a hidden block exactly at a kink that nothing holds there, and the slopes they may take.

    All that such an entry reads is zero, or reaches it through zero weights: its slope moves only the
    derivatives in those zero weights, and any slope between the two sides is as good as another.
    """

    mask: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def slope(self, s: np.ndarray) -> np.ndarray:
        """The slopes at shares ``s`` of the way from left to right."""
        return self.left + s * (self.right - self.left)


def find_idle(problem: Problem, Z: tuple[Array, ...], slopes: Slopes) -> list[Idle]:
    """The idle entries of every hidden block."""
    out = []
    counts = np.asarray(problem.weight)[:, None] > 0
    for block, z, (held, slope) in zip(problem.network.blocks, Z, slopes, strict=False):
        mask, left, right = np.zeros(held.shape, bool), np.zeros_like(slope), np.zeros_like(slope)
        for kink in block.link.kinks:
            here = (np.asarray(z) == kink) & ~np.asarray(held) & counts
            mask |= here
            left[here], right[here] = sides(block.link, kink, slope.dtype)
        out.append(Idle(mask, left, right))
    return out


def find(problem: Problem, W: Weights, Z: tuple[Any, ...], upstream: tuple[Any, ...]) -> Kinks:
    """The entries nearest to a kink where the objective is convex across it.

    An entry at zero because all that it reads is at zero follows the one below and is not its own. The
    model adds kinks up, so an observation has them in one block only: that of its nearest.
    """
    tables = [np.zeros((7, 0))]
    weight, reads = np.asarray(problem.weight), np.abs(np.asarray(problem.X))
    for l, (block, w, z, up) in enumerate(zip(problem.network.blocks, W, Z, upstream, strict=False)):
        w, z, up = np.abs(np.asarray(w)), np.asarray(z), np.asarray(up)
        moves = (reads @ w[:, 1:].T + w[:, 0] > EDGE) & (weight[:, None] > 0)
        for kink in block.link.kinks:
            left, right = sides(block.link, kink, z.dtype)
            entry = np.flatnonzero((up * (right - left) > 0) & moves)
            columns = l, entry, entry // z.shape[1], (z - kink).flat[entry], left, right, up.flat[entry]
            tables.append(np.stack(np.broadcast_arrays(*columns)))
        reads = np.abs(np.asarray(block.link(Z[l])))
    table = np.concatenate(tables, axis=1)
    table = table[:, np.argsort(np.abs(table[3]), kind="stable")]
    rows, nearest = np.unique(table[2], return_index=True)
    table = table[:, table[0] == table[0][nearest][np.searchsorted(rows, table[2])]][:, :N_CANDIDATES]
    return Kinks(*table[:3].astype(int), *table[3:])


@jax.jit
def _derivatives(problem: Problem, W: Weights, slopes: Slopes, pick: Array) -> Array:
    """Derivative in all weights of one chosen entry of every observation of a small problem."""

    def entry(W: Weights, x: Array, slopes: Slopes, pick: Array) -> Array:
        one = lambda a: a[None]  # noqa: E731
        alone = Problem(problem.network, problem.loss, one(x), problem.y[:1], problem.weight[:1])
        slopes = jax.tree.map(one, slopes)
        nudge = tuple(jnp.zeros_like(slope) for _, slope in slopes)
        Z, _ = forward(alone, W, slopes, nudge, jnp.zeros((1, 1), bool))
        return jnp.concatenate(Z, axis=1)[0, pick]

    gradients = jax.vmap(jax.grad(entry), (None, 0, 0, 0))(W, problem.X, slopes, pick)
    return jnp.concatenate([g.reshape(len(pick), -1) for g in gradients], axis=1)


def jacobian(problem: Problem, W: Weights, slopes: Slopes, kinks: Kinks) -> np.ndarray:
    """``J_k``: the derivative of every candidate in all weights, one row each."""
    n_weights = sum(w.size for w in W)
    if not kinks.entry.size:
        return np.zeros((0, n_weights))
    row, pick = np.zeros(N_CANDIDATES, int), np.zeros(N_CANDIDATES, int)
    sizes = np.array([block.size for block in problem.network.blocks])
    row[: kinks.row.size] = kinks.row
    pick[: kinks.row.size] = kinks.entry % sizes[kinks.block] + (np.cumsum(sizes) - sizes)[kinks.block]
    X, y, weight = (np.asarray(a)[row] for a in (problem.X, problem.y, problem.weight))
    few = Problem(problem.network, problem.loss, X, y, weight)
    slopes = tuple((held[row], slope[row]) for held, slope in slopes)
    return np.asarray(_derivatives(few, W, slopes, pick), float)[: kinks.row.size]


def best_slopes(M: np.ndarray, q: np.ndarray, s: np.ndarray) -> np.ndarray:
    """``argmin s' M s / 2 + q' s`` over ``0 <= s <= 1`` by the primal-dual active-set method.

    Should the sets cycle, projected gradient steps settle them.
    """
    if not s.size:
        return s
    M = M + 1e-12 * np.diag(M).mean() * np.eye(len(M))
    scale = np.divide(1, np.diag(M), out=np.zeros(len(M)), where=np.diag(M) > 0)
    inside = np.zeros(s.size, bool)
    for _ in range(30):
        ahead = s - scale * (M @ s + q)
        now = (ahead > 0) & (ahead < 1)
        s = np.where(ahead >= 1, 1.0, np.where(ahead <= 0, 0.0, s))
        if now.any():
            rest = M[np.ix_(now, ~now)] @ s[~now] + q[now]
            s[now] = -np.linalg.lstsq(M[np.ix_(now, now)], rest, rcond=None)[0]
        if (now == inside).all() and (s >= 0).all() and (s <= 1).all():
            return s
        inside = now
    step = 1 / max(np.linalg.norm(M, 2), np.finfo(float).tiny)
    s = np.clip(s, 0, 1)
    for _ in range(1000):
        s = np.clip(s - step * (M @ s + q), 0, 1)
    return s
