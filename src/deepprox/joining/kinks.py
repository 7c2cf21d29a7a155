"""Kinks of piecewise links: where pre-activations sit on them, and with which slopes.

A ReLU network is at its best with some pre-activations exactly at a kink. There the loss has no
gradient, and any slope between those of the two sides gives one of its subgradients. An entry (a unit of
a hidden block at one observation) is *held* when it is kept at its kink by a slope strictly between.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import or_
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.blocks import Block
from deepprox.links import Link
from deepprox.network import Pass
from deepprox.problem import Problem, Weights
from deepprox.spreading import same
from deepprox.struct import rows, struct

DIGITS = 9  # to which sums of products are the same for equal rows, in whichever order they were added
NOTHING = np.inf  # what reads nothing is no number
N_CANDIDATES = 256
N_ENTRIES = 8192  # the nearest, among which the candidates are found
N_ALONE = 4 * N_CANDIDATES  # the nearest of those that are a candidate each: about half are convex
EDGE = 1e-6
SITS = 1e-8  # of a pre-activation that is at its kink
BLUR = 0.2  # half of the window in which a pre-activation sees a kink, as a share of its standard deviation


@struct
class Slopes:
    """Slopes of their own at held entries: for every hidden block a mask of these, and their slopes."""

    held: tuple[Any, ...] = rows()
    slope: tuple[Any, ...] = rows()

    def of(self, some: Any) -> "Slopes":
        """Those of some observations."""
        return jax.tree.map(lambda array: array[some], self)

    def also(self, l: int, mask: np.ndarray, slope: np.ndarray) -> "Slopes":
        """The same but for entries of block ``l``, which are held with slopes of theirs."""
        held, own = [*self.held], [*self.slope]
        held[l], own[l] = held[l] | mask, np.where(mask, slope, own[l]).astype(own[l].dtype)
        return Slopes(tuple(held), tuple(own))


class Kinks(NamedTuple):
    """Candidates that may sit at a kink, and the entries that each stands for.

    Where all that a unit reads is zero, ``z`` is its bias: the observations for which that is so move
    together and make one candidate. Of every candidate: ``offset`` from the
    kink, ``jump`` of the derivative of the objective across it, and the ``row`` and ``unit`` (counted through
    all blocks) of one of its entries; the row is -1 where another process has it. Of every entry that this
    process has: its ``candidate``, its place, its two slopes.
    """

    offset: np.ndarray
    jump: np.ndarray
    row: np.ndarray
    unit: np.ndarray
    candidate: np.ndarray
    block: np.ndarray
    entry: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def slopes(self, base: Slopes, s: np.ndarray, pick: np.ndarray) -> Slopes:
        """``base`` with slopes ``left + s (right - left)`` at the entries of the picked candidates."""
        s, pick = s[self.candidate], pick[self.candidate]
        held, slope = (tuple(map(np.array, arrays)) for arrays in (base.held, base.slope))
        for l, (mask, value) in enumerate(zip(held, slope, strict=True)):
            here = pick & (self.block == l)
            mask.flat[self.entry[here]] = True
            value.flat[self.entry[here]] = (self.left + s * (self.right - self.left))[here]
        return Slopes(held, slope)


def no_slopes(problem: Problem) -> Slopes:
    """Every link with its own derivative everywhere."""
    n, n_in = problem.X.shape
    shapes = [(n, numbers) for numbers in problem.network.numbers(n_in)[:-1]]
    # zeros cost nothing on the host, and where programs run elsewhere the way there does
    zeros: Any = np.zeros if problem.allsum != same or jax.default_backend() == "cpu" else jnp.zeros
    return Slopes(tuple(zeros(s, bool) for s in shapes), tuple(zeros(s, problem.X.dtype) for s in shapes))


def any_held(slopes: Slopes) -> bool:
    """Whether any entry has a slope of its own."""
    return any(bool(held.any()) for held in slopes.held)


def none() -> Kinks:
    """No candidates: all links are smooth."""
    return Kinks(*np.zeros((2, 0)), *np.zeros((5, 0), int), *np.zeros((2, 0)))


def forward(
    problem: Problem,
    W: Weights,
    slopes: Slopes,
    ride: Array,
    on_z: Sequence[Array] | None = None,
    on_reads: Sequence[Array] | None = None,
    blurred: bool = False,
) -> Pass:
    """A forward pass with chosen slopes at held entries, every ``z`` or what follows it shifted.

    In a deep ReLU network an entry above a held one is at its own kink too, because all that it reads
    is zero there. It follows the one below: in rows that ``ride``, and in rows with a held entry, entries
    exactly at a kink take the slope of its right side. Blurred, a kink bends whatever is near it, as it does
    on the average over many observations.
    """
    rides = [*accumulate((held.any(1, keepdims=True) for held in slopes.held), or_, initial=ride)]

    def shifted(l: int, z: Array) -> Array:
        return z if on_z is None else z + on_z[l]

    def linked(l: int, z: Array) -> Array:
        link = problem.network.blocks[l].link
        read = follow(link, z, slopes.held[l], slopes.slope[l], rides[l])
        if blurred:
            off = z - lax.stop_gradient(z)
            read += lax.stop_gradient(bend(link, z, problem.weight)) * off**2 / 2
        return read if on_reads is None else read + on_reads[l]

    return problem.network.run(W, problem.X, shifted, linked)


def follow(link: Link, z: Array, held: Any, slope: Any, ride: Array) -> Array:
    """``link(z)``, with the chosen slopes as its derivative at held entries."""
    if not link.kinks:
        return link(z)
    one = jnp.ones_like(z)
    own, right = (jax.jvp(link, (at,), (one,))[1] for at in (z, z + EDGE))
    at_kink = jnp.isin(z, jnp.asarray(link.kinks, z.dtype))
    wanted = jnp.where(held, slope, jnp.where(at_kink & ride, right, own))
    # adds zero, with a derivative that replaces the link's own
    return link(z) + lax.stop_gradient(wanted - own) * (z - lax.stop_gradient(z))


def bend(link: Link, z: Array, weight: Array) -> Array:
    """The jump of the derivative at a kink, spread over a window: a second derivative of the blurred link."""
    total, share = jnp.zeros_like(z), weight / jnp.maximum(weight.sum(), jnp.finfo(z.dtype).tiny)
    half = BLUR * jnp.sqrt(share @ (z - share @ z) ** 2)
    for kink in link.kinks:
        at = jnp.asarray([kink - EDGE, kink + EDGE], z.dtype)
        left, right = jax.jvp(link, (at,), (jnp.ones_like(at),))[1]
        total += jnp.where(jnp.abs(z - kink) < half, (right - left) / jnp.where(half > 0, 2 * half, 1.0), 0.0)
    return total


def derivative(link: Link, z: Array) -> Array:
    """That of a link of single units."""
    return jax.jvp(link, (z,), (jnp.ones_like(z),))[1]


_derivative = jax.jit(derivative)


def sides(link: Link, kink: float, dtype: Any) -> np.ndarray:
    """The derivatives of a link on the left and on the right of a kink."""
    return np.asarray(_derivative(link, np.asarray([kink - EDGE, kink + EDGE], dtype)))


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
    for block, z, held, slope in zip(problem.network.blocks, Z, slopes.held, slopes.slope, strict=False):
        mask, left, right = np.zeros(held.shape, bool), np.zeros_like(slope), np.zeros_like(slope)
        for kink in block.link.kinks:
            here = (np.asarray(z) == kink) & ~np.asarray(held) & counts
            mask |= here
            left[here], right[here] = sides(block.link, kink, slope.dtype)
        out.append(Idle(mask, left, right))
    return out


def known(problem: Problem, Z: tuple[Array, ...], slopes: Slopes, kinks: Kinks) -> Slopes:
    """The chosen slopes of those entries alone that are candidates', or exactly at a kink."""
    blocks, kept = problem.network.blocks, []
    for l, (block, z, held) in enumerate(zip(blocks, Z, slopes.held, strict=False)):
        here = np.isin(np.asarray(z), np.asarray(block.link.kinks, z.dtype))
        here.flat[kinks.entry[kinks.block == l]] = True
        kept.append(held & here)
    return Slopes(tuple(kept), tuple(np.where(m, s, 0).astype(s.dtype) for m, s in zip(kept, slopes.slope)))


def shares(problem: Problem, own: tuple, slopes: Slopes, kinks: Kinks) -> np.ndarray:
    """How far the slope of every candidate, its ``own`` or a chosen one, is on the way from left to right."""
    now = np.zeros(kinks.entry.size)
    for l, (block, at) in enumerate(zip(problem.network.blocks, own, strict=False)):
        here = kinks.block == l
        if block.link.kinks:
            entry, held, slope = kinks.entry[here], slopes.held[l], slopes.slope[l]
            now[here] = np.where(held.flat[entry], slope.flat[entry], np.asarray(at).flat[entry])
    ways = (now - kinks.left) / (kinks.right - kinks.left), np.ones(now.size)
    total, count = problem.allsum([np.bincount(kinks.candidate, way, kinks.offset.size) for way in ways])
    return np.asarray(total) / np.maximum(count, 1)


def redundant_biases(problem: Problem, W: Weights, own: tuple, slopes: Slopes) -> np.ndarray:
    """Which weights are biases that change nothing, because others can do the same.

    So is the bias of a unit whose link has one slope at all observations, its ``own`` or a chosen one: moving
    it moves all that is read of the unit by one number, which the next block's biases can do. So is one bias
    of the outputs, if the loss sees their differences alone.
    """
    masks = [np.zeros(np.shape(w), bool) for w in W]
    counts = np.asarray(problem.weight) > 0
    for l, (block, after) in enumerate(pairwise(problem.network.blocks)):
        free = block.free_bias and after.free_bias and block.by_unit and after.by_unit
        if (
            free
            and not block.activity
            and block.link.kinks
            and block.link.elementwise
            and problem.allsum.in_memory
        ):
            slope = np.where(slopes.held[l], slopes.slope[l], np.asarray(own[l]))[counts]
            ends = slope.min(0, initial=np.inf), -slope.max(0, initial=-np.inf)
            lowest, highest = problem.allsum.gather(np.stack(ends)).min(0)
            block.biases(masks[l])[:] = lowest == -highest
    if problem.loss.differences and problem.network.blocks[-1].free_bias:
        problem.network.blocks[-1].biases(masks[-1])[0] = True
    return np.concatenate([mask.ravel() for mask in masks])


class Entries(NamedTuple):
    """Entries that may be candidates: their places, and the two slopes at their kinks.

    ``offset`` is how far each is from its kink, ``up`` the derivative of the mean loss in what is read of it.
    Those of one unit that have one ``kin`` move together.
    """

    block: np.ndarray
    entry: np.ndarray
    row: np.ndarray
    unit: np.ndarray
    kin: np.ndarray
    offset: np.ndarray
    left: np.ndarray
    right: np.ndarray
    up: np.ndarray

    def take(self, some: np.ndarray) -> "Entries":
        """Some of them, or all in another order."""
        return Entries(*(column[some] for column in self))


def find(
    problem: Problem, W: Weights, Z: tuple[Any, ...], upstream: tuple[Any, ...], together: bool = False
) -> Kinks:
    """The candidates nearest to a kink where the objective is convex across it.

    ``upstream`` is the derivative of the mean loss in what the next block reads of an entry. Entries that
    read nothing share the kink of their unit's bias; ``together`` lets all those share one from which a unit
    reads the same.
    """
    reads = problem.network.reads(problem.X, problem.network.activations(Z))
    every = enumerate(zip(reads, W, Z, upstream, strict=False))
    found = [entries_of(problem, l, map(np.asarray, of_block), together) for l, of_block in every]
    entries = Entries(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
    if entries.unit.size > N_ENTRIES:
        entries = entries.take(np.argpartition(np.abs(entries.offset), N_ENTRIES)[:N_ENTRIES])
    entries = entries.take(one_block_a_row(entries))
    unit, kin = entries.unit, entries.kin
    new = np.append(np.ones(min(unit.size, 1), bool), (unit[1:] != unit[:-1]) | (kin[1:] != kin[:-1]))
    candidate, heads = np.cumsum(new) - 1, np.flatnonzero(new)
    jump = np.bincount(candidate, entries.up * (entries.right - entries.left), heads.size)
    one = entries.take(heads)
    alone = np.where(one.kin == NOTHING, -1, one.row)
    table = np.stack([one.offset, one.unit, alone, one.row, jump])
    (offset, unit, _, row, jump), place = nearest_of_all(problem, table)
    place = place[candidate]
    mine = entries.take(place >= 0)
    places = place[place >= 0], mine.block, mine.entry
    return Kinks(offset, jump, row.astype(int), unit.astype(int), *places, mine.left, mine.right)


def entries_of(problem: Problem, l: int, of_block: Iterable[np.ndarray], together: bool) -> Entries:
    """Those of one block, by what it reads, its weights, its ``z``, and the derivative upstream of it.

    An entry at zero because all that it reads is at zero follows the one below and is not its own.
    """
    block, (reads, w, z, up) = problem.network.blocks[l], of_block
    if not block.link.kinks:
        return Entries(*np.zeros((4, 0), int), *np.zeros((5, 0)))
    size, biased = np.abs(w), block.by_place(block.biases(w) != 0, z.shape[1])
    block.biases(size)[:] = 0
    reach = np.asarray(block.linear(size, np.abs(reads)))
    moves = ((reach > EDGE) | biased) & (np.asarray(problem.weight)[:, None] > 0)
    own = fingerprint(block, w, reads) if together else np.arange(len(reads), dtype=float)[:, None]
    kin = np.where(reach > 0, own, NOTHING)
    at = np.asarray(block.link.kinks, z.dtype)
    # an entry between two kinks is a candidate for the nearer one
    nearer = np.abs(z[..., None] - at).argmin(-1).ravel() if at.size > 1 else np.zeros(z.size, int)
    slopes = np.array([sides(block.link, kink, z.dtype) for kink in block.link.kinks])
    entry, offset = np.flatnonzero((up != 0) & moves), z.ravel() - at[nearer]
    if not together:
        entry = entry[worth_a_look(offset[entry], reach.ravel()[entry] > 0)]
    row, unit = np.divmod(entry, z.shape[1])
    unit += sum(problem.network.numbers(problem.X.shape[1])[:l])
    numbers = kin.ravel()[entry], offset[entry], *slopes[nearer[entry]].T, up.ravel()[entry]
    return Entries(np.full(entry.size, l), entry, row, unit, *(np.asarray(a, float) for a in numbers))


def one_block_a_row(entries: Entries) -> np.ndarray:
    """The entries that may be candidates, those of one candidate side by side.

    The model adds kinks up, so an observation has them in one block only, that of its nearest, and wherever
    it sits at one.
    """
    far = np.abs(entries.offset)
    order = np.argsort(far, kind="stable")
    rows, nearest = np.unique(entries.row[order], return_index=True)
    block = entries.block[order][nearest][np.searchsorted(rows, entries.row)]
    order = np.lexsort((entries.kin, entries.unit))
    return order[((entries.block == block) | (far < SITS))[order]]


def worth_a_look(offset: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Which entries may be candidates: all that share one, and the nearest of those that are one alone."""
    keep, lone = ~alone, np.flatnonzero(alone)
    if lone.size > N_ALONE:
        lone = lone[np.argpartition(np.abs(offset[lone]), N_ALONE)[:N_ALONE]]
    keep[lone] = True
    return keep


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


def jacobian(problem: Problem, W: Weights, slopes: Slopes, kinks: Kinks) -> np.ndarray:
    """``J_k``: the derivative of every candidate in all weights, one row each.

    What a unit of a dense first block reads does not depend on weights, and is the derivative in its own.
    """
    J, here = np.zeros((kinks.offset.size, sum(w.size for w in W))), kinks.row >= 0
    n_first = len(W[0]) if problem.network.blocks[0].by_unit else 0
    first = np.flatnonzero(here & (kinks.unit < n_first))
    X = np.asarray(problem.X)[kinks.row[first]]
    of_units = J[:, : W[0].size].reshape(len(J), *np.shape(W[0]))
    of_units[first, kinks.unit[first]] = np.insert(X, 0, 1, axis=1)
    later = np.flatnonzero(here & (kinks.unit >= n_first))
    if later.size:
        row, unit = np.zeros((2, N_CANDIDATES), int)
        row[: later.size], unit[: later.size] = kinks.row[later], kinks.unit[later]
        X, y, weight = (np.asarray(a)[row] for a in (problem.X, problem.y, problem.weight))
        few = Problem(problem.network, problem.loss, X, y, weight)
        J[later] = np.asarray(_derivatives(few, W, slopes.of(row), unit), float)[: later.size]
    return np.asarray(problem.allsum(J))
