"""Candidates: which pre-activations may sit at a kink where a Newton step ends, and how they move."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.blocks import Block
from deepprox.joining.kinks import EDGE, SITS, Entries, Slopes, forward
from deepprox.problem import Problem, Weights

DIGITS = 9  # to which sums of products are the same for equal rows, in whichever order they were added
NOTHING = np.inf  # what reads nothing is no number
N_CANDIDATES = 256
N_ENTRIES = 8192  # the nearest, among which the candidates are found
N_ALONE = 4 * N_CANDIDATES  # the nearest of those that are a candidate each: about half are convex


class Kinks(NamedTuple):
    """Candidates that may sit at a kink, and the entries that each stands for.

    Where all that a unit reads is zero, ``z`` is its bias: the observations for which that is so move
    together and make one candidate. Of every candidate: ``offset`` from the kink, ``jump`` of the derivative
    of the objective across it, and the ``row`` and ``unit`` (counted through all blocks) of one of its
    entries; the row is -1 where another process has it. ``candidate`` is that of every one of the entries.
    """

    offset: np.ndarray
    jump: np.ndarray
    row: np.ndarray
    unit: np.ndarray
    candidate: np.ndarray
    entries: Entries

    def slopes(self, base: Slopes, s: np.ndarray, pick: np.ndarray) -> Slopes:
        """``base`` with slopes ``left + s (right - left)`` at the entries of the picked candidates."""
        some = pick[self.candidate]
        entries = self.entries.take(some)
        return entries.put(base, entries.between(s[self.candidate][some]))


def none() -> Kinks:
    """No candidates: all links are smooth."""
    empty, nowhere = np.zeros(0), np.zeros(0, int)
    entries = Entries(nowhere, nowhere, empty, empty, empty)
    return Kinks(empty, empty, nowhere, nowhere, nowhere, entries)


def known(problem: Problem, Z: tuple[Array, ...], slopes: Slopes, kinks: Kinks) -> Slopes:
    """The chosen slopes of those entries alone that are candidates', or exactly at a kink."""
    blocks, kept = problem.network.blocks, []
    for l, (block, z, held) in enumerate(zip(blocks, Z, slopes.held, strict=False)):
        here = np.isin(np.asarray(z), np.asarray(block.link.kinks, z.dtype))
        here.flat[kinks.entries.place[kinks.entries.block == l]] = True
        kept.append(held & here)
    return Slopes(tuple(kept), tuple(np.where(m, s, 0).astype(s.dtype) for m, s in zip(kept, slopes.slope)))


def shares(problem: Problem, own: tuple, slopes: Slopes, kinks: Kinks) -> np.ndarray:
    """How far the slope of every candidate, its ``own`` or a chosen one, is on the way from left to right."""
    entries = kinks.entries
    now = np.where(entries.pick(slopes.held), entries.pick(slopes.slope), entries.pick(own))
    ways = (now - entries.left) / (entries.right - entries.left), np.ones(now.size)
    total, count = problem.allsum([np.bincount(kinks.candidate, way, kinks.offset.size) for way in ways])
    return np.asarray(total) / np.maximum(count, 1)


def find(
    problem: Problem, W: Weights, Z: tuple[Any, ...], upstream: tuple[Any, ...], together: bool = False
) -> Kinks:
    """The candidates nearest to a kink where the objective is convex across it.

    ``upstream`` is the derivative of the mean loss in what the next block reads of an entry. Entries that
    read nothing share the kink of their unit's bias; ``together`` lets all those share one from which a unit
    reads the same.
    """
    reads = problem.network.hidden_reads(problem.X, Z)
    every = enumerate(zip(reads, W, Z, upstream, strict=False))
    masks, alike = zip(*(may_move(problem, l, map(np.asarray, of), together) for l, of in every))
    entries = Entries.of(problem, Z, masks)
    if entries.place.size > N_ENTRIES:
        entries = entries.take(np.argpartition(np.abs(entries.offset), N_ENTRIES)[:N_ENTRIES])
    entries = entries.take(one_block_a_row(*entries.where(problem), entries, entries.pick(alike)))
    (row, unit), kin = entries.where(problem), entries.pick(alike)
    new = np.append(np.ones(min(unit.size, 1), bool), (unit[1:] != unit[:-1]) | (kin[1:] != kin[:-1]))
    candidate, heads = np.cumsum(new) - 1, np.flatnonzero(new)
    jump = np.bincount(candidate, entries.pick(upstream) * (entries.right - entries.left), heads.size)
    alone = np.where(kin == NOTHING, -1, row)[heads]
    found = np.stack([entries.offset[heads], unit[heads], alone, row[heads], jump])
    (offset, unit, _, row, jump), place = nearest_of_all(problem, found)
    place = place[candidate]
    mine = place >= 0
    return Kinks(offset, jump, row.astype(int), unit.astype(int), place[mine], entries.take(mine))


def may_move(
    problem: Problem, l: int, of_block: Iterable[np.ndarray], together: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Which entries of a block may be candidates, and a number for each, equal for those that share a kink.

    ``of_block`` is what it reads, its weights, its ``z``, and the derivative in what is read of it. An entry
    at zero because all that it reads is at zero follows the one below and is not its own.
    """
    block, (reads, w, z, up) = problem.network.blocks[l], of_block
    if not block.link.kinks:
        return np.zeros(z.shape, bool), np.zeros(z.shape)
    size, biased = np.abs(w), block.by_place(block.biases(w) != 0, z.shape[1])
    block.biases(size)[:] = 0
    reach = np.asarray(block.linear(size, np.abs(reads)))
    mask = ((reach > EDGE) | biased) & (np.asarray(problem.weight)[:, None] > 0) & (up != 0)
    own = fingerprint(block, w, reads) if together else np.arange(len(reads), dtype=float)[:, None]
    lone = np.zeros(0, int) if together else np.flatnonzero(mask & (reach > 0))
    if lone.size > N_ALONE:  # of those that are a candidate each the nearest
        far = np.abs(z.ravel()[lone, None] - np.asarray(block.link.kinks, z.dtype)).min(1)
        mask.flat[lone[np.argpartition(far, N_ALONE)[N_ALONE:]]] = False
    return mask, np.where(reach > 0, own, NOTHING)


def one_block_a_row(row: np.ndarray, unit: np.ndarray, entries: Entries, kin: np.ndarray) -> np.ndarray:
    """The entries that may be candidates, those of one candidate side by side.

    The model adds kinks up, so an observation has them in one block only, that of its nearest, and wherever
    it sits at one.
    """
    far = np.abs(entries.offset)
    order = np.argsort(far, kind="stable")
    rows, nearest = np.unique(row[order], return_index=True)
    block = entries.block[order][nearest][np.searchsorted(rows, row)]
    order = np.lexsort((kin, unit))
    return order[((entries.block == block) | (far < SITS))[order]]


def fingerprint(block: Block, w: np.ndarray, reads: Any) -> np.ndarray:
    """A number for every entry, equal where live weights of its unit read the same."""
    chance = np.random.default_rng(0)
    weights: Any = np.zeros(w.shape)
    live = block.slopes(w) != 0
    block.slopes(weights)[:] = np.where(live, chance.uniform(1, 2, live.shape[1]), 0)
    scale = max(float(np.abs(reads).max(initial=0.0)), np.finfo(float).tiny)
    return np.round(np.asarray(block.linear(weights, reads.astype(float) / scale)), DIGITS)


def nearest_of_all(problem: Problem, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the candidates that every process found (columns) those to take, and where this one's went, or -1.

    Convex and nearest are to be taken. Entries at their unit's bias are one candidate, whoever has them:
    its jump is known only when all have said theirs, so all such candidates are sent, and of the others those
    that may be among the nearest.
    """
    allsum, n_found = problem.allsum, found.shape[1]
    offset, _, alone, _, jump = found
    worth = np.flatnonzero((alone >= 0) & (jump > 0))
    worth = worth[np.argsort(np.abs(offset[worth]), kind="stable")[:N_CANDIDATES]]
    sent = np.sort(np.concatenate([worth, np.flatnonzero(alone < 0)]))
    counts = allsum.gather(np.asarray(sent.size))
    padded = np.zeros((len(found) + 1, int(counts.max())))
    padded[:-1, : sent.size], padded[-1] = found[:, sent], allsum.rank
    table = np.concatenate([one[:, :n] for one, n in zip(allsum.gather(padded), counts)], axis=1)
    offset, unit, alone, row, jump, owner = table
    lone = np.where(alone >= 0, owner, -1)
    order = np.lexsort((lone, alone, unit, offset))
    keys = np.stack([offset, unit, alone, lone])[:, order]
    new = (np.diff(keys, axis=1, prepend=np.nan) != 0).any(0)
    group, heads = np.cumsum(new) - 1, order[new]
    jump = np.bincount(group, jump[order], heads.size)
    convex = np.flatnonzero(jump > 0)
    best = convex[np.argsort(np.abs(offset[heads[convex]]), kind="stable")[:N_CANDIDATES]]
    place = np.full(heads.size, -1)
    place[best] = np.arange(best.size)
    of_sent = np.empty(order.size, int)
    of_sent[order] = place[group]
    went, first = np.full(n_found, -1), int(counts[: allsum.rank].sum())
    went[sent] = of_sent[first : first + sent.size]
    heads = heads[best]
    row = np.where(owner[heads] == allsum.rank, row[heads], -1)
    return np.stack([offset[heads], unit[heads], alone[heads], row, jump[best]]), went


@jax.jit
def _derivatives(problem: Problem, W: Weights, slopes: Slopes, pick: Array) -> Array:
    """Derivative in all weights of one chosen entry of every observation of a small problem."""

    def entry(W: Weights, x: Array, slopes: Slopes, pick: Array) -> Array:
        one = lambda a: a[None]  # noqa: E731
        alone = Problem(problem.network, problem.loss, one(x), problem.y[:1], problem.weight[:1])
        slopes = jax.tree.map(one, slopes)
        Z = forward(alone, W, slopes, jnp.zeros((1, 1), bool)).Z
        return jnp.concatenate(Z, axis=1)[0, pick]

    gradients = jax.vmap(jax.grad(entry), (None, 0, 0, 0))(W, problem.X, slopes, pick)
    return jnp.concatenate([g.reshape(len(pick), -1) for g in gradients], axis=1)


def jacobian(problem: Problem, W: Weights, slopes: Slopes, rows: Any, units: Any) -> np.ndarray:
    """The derivative in all weights of the ``z`` of a unit at an observation, for each of some.

    Another process has the row of a number below zero. What a unit of a dense first block reads does not
    depend on weights, and is the derivative in its own.
    """
    J = np.zeros((len(rows), sum(w.size for w in W)))
    n_first = len(W[0]) if problem.network.blocks[0].by_unit else 0
    first = np.flatnonzero((rows >= 0) & (units < n_first))
    if first.size:
        X = np.asarray(problem.X)[rows[first]]
        of_units = J[:, : W[0].size].reshape(len(J), *np.shape(W[0]))
        of_units[first, units[first]] = np.insert(X, 0, 1, axis=1)
    later = np.flatnonzero((rows >= 0) & (units >= n_first))
    if later.size:
        row, unit = np.zeros((2, N_CANDIDATES), int)
        row[: later.size], unit[: later.size] = rows[later], units[later]
        X, y, weight = (np.asarray(a)[row] for a in (problem.X, problem.y, problem.weight))
        few = Problem(problem.network, problem.loss, X, y, weight)
        J[later] = np.asarray(_derivatives(few, W, slopes.of(row), unit), float)[: later.size]
    return np.asarray(problem.allsum(J))
