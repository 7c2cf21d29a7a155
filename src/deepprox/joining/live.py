"""The canonical form of a sparse network, and the small network that it is.

A unit without a live input is a constant: it is absorbed in the next bias, if that may move and costs no
more. A unit without a live output, or an input without a live unit, does nothing: it is removed. The function
stays the same.
"""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from deepprox import traces
from deepprox.arrays import as_taken
from deepprox.problem import Network, Problem, Weights
from deepprox.struct import replace

SMALL = 1000  # weights of a problem that is taken whole: up to there compiling a smaller one costs more
# weights times observations times steps that take as long as compiling another program
CPU, GPU = 2e10, 2e13
Kept = tuple[np.ndarray, ...]  # of every hidden block: mask of the units that stay as they are
LADDER = 16, *sorted(b * 2**k for k in range(20) for b in (32, 48))  # widths that get compiled


class Live(NamedTuple):
    """Which inputs and which units of every block take part; the outputs always do."""

    reads: tuple[np.ndarray, ...]

    @property
    def inputs(self) -> np.ndarray:
        """Mask of the inputs that reach the output."""
        return self.reads[0]

    def weights(self, network: Network, l: int) -> np.ndarray:
        """Mask of the weights of block ``l`` between live places, biases included."""
        block, reads = network.blocks[l], network.read(l, self.reads[l], self.inputs)
        units = np.ones(block.size, bool)
        if l + 1 < len(self.reads) and self.reads[l + 1].size == block.numbers(reads.size):
            units = block.by_owner(self.reads[l + 1])  # but a pooled unit is kept
        mask = np.zeros(block.shape(reads.size), bool)
        mask[block.grid(np.flatnonzero(units), np.flatnonzero(reads), reads.size)] = True
        return mask


def absorbed(network: Network, W: Weights, kept: Kept | None = None) -> tuple[np.ndarray, ...]:
    """The same function in the same shapes: constant units are in the next biases, dead ones at zero.

    Units that are ``kept``, a mask for every hidden block, stay as they are.
    """
    out, changed = [np.array(w) for w in W], True
    wiring = network.wiring(network.n_inputs(W))
    while changed:
        changed = False
        for l, (block, after) in enumerate(pairwise(network.blocks)):
            if not block.link.elementwise:
                continue  # what is read is not one unit's
            goes = np.ones(len(out[l]), bool) if kept is None else ~kept[l]
            feeds = block.by_owner(after.used(out[l + 1])[wiring[l + 1].before])
            constant = goes & feeds & ~block.reading(out[l])
            if constant.any():
                level = np.asarray(block.link(as_taken(block.biases(out[l]), block.link)))
                levels = np.full(wiring[l + 1].n_reads, np.nan, level.dtype)
                levels[wiring[l + 1].before] = block.by_place(
                    np.where(constant, level, np.nan), wiring[l].numbers
                )
                moved = after.absorbed(out[l + 1], levels)
                changed |= bool((moved != out[l + 1]).any())
                out[l + 1] = moved
                feeds = block.by_owner(after.used(moved)[wiring[l + 1].before])
            dead = goes & ~feeds
            if out[l][dead].any():
                out[l][dead] = 0
                changed = True
    return tuple(out)


def canonical(network: Network, W: Weights) -> tuple[tuple[np.ndarray, ...], Live]:
    """Weights of the canonical form, in the same shapes, and what is live in it.

    It costs no more than ``W``: a unit stays whose constant no bias may take over, or whose absence would be
    charged for. Such a unit is live although it does not vary.
    """
    kept = tuple(np.full(block.size, not block.rests) for block in network.blocks[:-1])
    out = absorbed(network, W, kept)
    if _dearer(network, W, out):
        out = _one_by_one(network, W, out, kept)
    return out, Live(network.used(out))


def _one_by_one(network: Network, W: Weights, all_gone: Weights, kept: Kept) -> tuple[np.ndarray, ...]:
    """``W`` without those units that may leave, of the units that would have to for ``all_gone``.

    One that may not now may yet when another has left.
    """
    out, kept = tuple(map(np.array, W)), tuple(mask.copy() for mask in kept)
    stay = [(np.asarray(w) != v).any(1) & ~mask for w, v, mask in zip(W, all_gone, kept)]
    for mask, units in zip(kept, stay):
        mask |= units
    left = True
    while left:
        left = False
        for mask, units in zip(kept, stay):
            for unit in np.flatnonzero(mask & units):
                mask[unit] = False
                trial = absorbed(network, W, kept)
                mask[unit] = _dearer(network, out, trial)
                if not mask[unit]:
                    out, left = trial, True
    return out


@traces.jit
def _penalties(network: Network, W: Weights, V: Weights) -> tuple[Array, Array]:
    return network.penalty(W), network.penalty(V)


def _dearer(network: Network, W: Weights, V: Weights) -> bool:
    """Whether the penalty is higher at ``V`` than at ``W``, by more than rounding."""
    if all((np.asarray(w) == v).all() for w, v in zip(W, V)):
        return False
    before, after = _penalties(network, W, V)
    return not float(after) <= float(before) * (1 + 8 * float(np.finfo(before.dtype).eps))


class Part(NamedTuple):
    """A smaller problem on all inputs and some units, and where they sit in the whole network."""

    problem: Problem
    places: tuple[np.ndarray, ...]
    network: Network

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many inputs and units there are in the whole."""
        return len(self.places[0]), *self.network.numbers(len(self.places[0]))

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """The shapes of the whole weights."""
        return self.network.shapes(len(self.places[0]))

    @property
    def all_of_it(self) -> bool:
        """Whether the part is the whole."""
        return tuple(len(place) for place in self.places) == self.sizes

    def cut(self, network: Network) -> Network:
        """The part of a network of the same shape."""
        blocks = zip(network.blocks, self.places[1:])
        return Network(tuple(replace(block, size=len(place)) for block, place in blocks))

    def take(self, W: Weights) -> Weights:
        """The weights of the part."""
        if self.all_of_it:
            return tuple(np.asarray(w) for w in W)
        return tuple(np.asarray(w)[grid] for w, grid in zip(W, self._grids()))

    def put(self, small: Weights) -> tuple[np.ndarray, ...]:
        """Whole weights: the part's in their places, zeros elsewhere."""
        if self.all_of_it:
            return tuple(np.asarray(w) for w in small)
        places = zip(small, self._grids(), self.shapes)
        return tuple(_place(w, grid, shape) for w, grid, shape in places)

    def put_columns(self, arrays: Iterable) -> tuple:
        """Arrays over observations and hidden units: the part's columns in their places."""
        spots = zip(arrays, self.places[1:], self.sizes[1:])
        return tuple(_place(a, np.ix_(np.arange(len(a)), place), (len(a), n)) for a, place, n in spots)

    def take_columns(self, arrays: Iterable) -> tuple:
        """The part's columns of arrays over observations and hidden units."""
        return tuple(np.asarray(a)[:, place] for a, place in zip(arrays, self.places[1:]))

    def take_rows(self, rows: Any) -> Any:
        """The part's entries of vectors of all weights."""
        if self.all_of_it:
            return np.asarray(rows)
        return np.asarray(rows)[..., self._index()]

    def put_rows(self, rows: Any) -> np.ndarray:
        """Vectors of all weights: the part's entries in their places, zeros elsewhere."""
        rows = np.asarray(rows)
        if self.all_of_it:
            return rows
        out = np.zeros((*rows.shape[:-1], n_weights(self.shapes)), rows.dtype)
        out[..., self._index()] = rows
        return out

    def _index(self) -> np.ndarray:
        ends = np.cumsum([n_out * n_read for n_out, n_read in self.shapes])
        every = [np.arange(end - a * b, end).reshape(a, b) for end, (a, b) in zip(ends, self.shapes)]
        return np.concatenate([places[grid].ravel() for places, grid in zip(every, self._grids())])

    def _grids(self) -> list:
        masks = [np.isin(np.arange(n), place) for n, place in zip(self.sizes, self.places[:-1])]
        rows = zip(self.network.blocks, self.places[1:], self.network.reads(masks[0], masks[1:]))
        return [block.grid(units, np.flatnonzero(mask), mask.size) for block, units, mask in rows]


def _place(small: Any, grid: Any, shape: tuple[int, int]) -> np.ndarray:
    small = np.asarray(small)
    out = np.zeros(shape, small.dtype)
    out[grid] = small
    return out


def whole(problem: Problem) -> Part:
    """The problem as a part of itself."""
    n_in = problem.X.shape[1]
    return Part(problem, tuple(map(np.arange, (n_in, *problem.network.numbers(n_in)))), problem.network)


def live_part(problem: Problem, live: Live, widths: tuple[int, ...] = (), steps: float = math.inf) -> Part:
    """The problem on its live units and all inputs, widths rounded up so that few shapes compile.

    Hidden blocks have at least ``widths``. The rounding is filled with dead units: they, and every input, are
    free to come alive. Where that would not halve the number of weights, or there are few, the whole problem
    is cheaper than compiling another; not where ``widths`` say that many more are to come. So it is where all
    that ``steps`` steps on the live units could save on a GPU is little.
    """
    full = whole(problem)
    n_all = problem.n_weights
    if jax.default_backend() != "cpu" and not widths and not _worth(problem, n_all, steps):
        return full
    if not all(block.shrinks for block in problem.network.blocks):
        return full
    wanted = np.maximum(live_widths(live), widths or 0)
    places = (full.places[0], *map(_fill, live.reads[1:], wanted), full.places[-1])
    if n_all <= SMALL and not widths:
        return full
    part = full._replace(places=places)
    network = part.cut(problem.network)
    smaller = replace(problem, network=network)
    return full if smaller.n_weights > n_all / 2 else part._replace(problem=smaller)


def shrinks(problem: Problem, W: Weights, widths: tuple[int, ...], steps: int) -> bool:
    """Whether so many units have died that ``steps`` steps without them are worth another compilation."""
    if not problem.allsum.in_memory or not _worth(problem, problem.n_weights, steps):
        return False
    return not live_part(problem, canonical(problem.network, W)[1], widths).all_of_it


def _worth(problem: Problem, n_weights: int, steps: float) -> bool:
    """Whether half of the products of so many steps take longer than compiling another program."""
    price = CPU if jax.default_backend() == "cpu" else GPU
    return not problem.allsum.in_memory or steps * problem.n_rows * n_weights / 2 >= price


def n_weights(shapes: Iterable[tuple[int, int]]) -> int:
    """How many weights there are in matrices of these shapes."""
    return sum(n_out * n_read for n_out, n_read in shapes)


def live_widths(live: Live) -> tuple[int, ...]:
    """How many units the hidden blocks have alive, rounded up to a width that gets compiled."""
    return tuple(width(int(mask.sum()), mask.size) for mask in live.reads[1:])


def width(wanted: int, most: int) -> int:
    """The least width that gets compiled and has so many units."""
    return min(next((size for size in LADDER if size >= wanted), most), most)


def _fill(mask: np.ndarray, wanted: int) -> np.ndarray:
    order = np.argsort(~mask, kind="stable")
    return np.sort(order[: min(wanted, mask.size)])
