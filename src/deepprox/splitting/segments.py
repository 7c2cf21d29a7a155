"""Segments: blocks between two splits, where ``z = W [1; reads]`` holds exactly.

With a split at every block the pieces of a split network are its blocks. Splits at chosen blocks leave longer
pieces: the pre-activations inside them are no variables but the forward pass from the split below.
"""

from itertools import pairwise
from typing import Any, ClassVar

from jax import Array

from deepprox.activities import Activity
from deepprox.blocks import Block
from deepprox.links import Link
from deepprox.penalties import Number
from deepprox.problem import Network, Problem, Weights
from deepprox.struct import replace, struct


@struct
class Segment:
    """``z_b = g(W_a, ..., W_b; reads_a)``: consecutive blocks of which the last alone is split.

    It stands in a network where a block does; its weights are the tuple of theirs.
    """

    network: Network
    reads: ClassVar[tuple[str, ...]] = ("before",)

    def numbers(self, n_in: int) -> int:
        """How many numbers are split."""
        return self.network.numbers(n_in)[-1]

    @property
    def link(self) -> Link:
        """What the next piece reads ``z_b`` through."""
        return self.network.blocks[-1].link

    @property
    def activity(self) -> Activity | None:
        """The charge at the split; for those of the blocks before it see ``acts_inside``."""
        return self.network.blocks[-1].activity

    def acts(self, z: Array, reads: Array) -> Array:
        """What the activity at the split is charged for."""
        return self.network.blocks[-1].acts(z, reads)

    def acts_inside(self, W: Weights, reads: Array) -> list[tuple[Activity, Array]]:
        """The activities of the blocks before the last, each with what it is charged for."""
        at = self.network.run(W, reads)
        rows = zip(self.network.blocks[:-1], at.Z, at.activations)
        return [(b.activity, b.acts(z, a)) for b, z, a in rows if b.activity is not None]

    def features(self, reads: Array) -> Array:
        """What the forward pass takes."""
        return reads

    def linear(self, W: Weights, reads: Array) -> Array:
        """``g(W; reads)`` of every observation."""
        return self.network.forward(W, reads)[-1]

    def value(self, W: Weights) -> Array:
        """The penalties of all blocks."""
        return self.network.penalty(W)

    def prox(self, V: Weights, step: Number) -> Weights:
        """The prox of their sum."""
        return self.network.prox(V, step)


def group(row: tuple, splits: tuple[int, ...]) -> tuple:
    """One entry for each block as one for each piece: ``(a, b, c)`` split at 2 is ``((a, b), c)``.

    ``splits`` are the numbers of the hidden blocks that are split, from 1; the output always is.
    """
    pieces = [row[begin:end] for begin, end in pairwise((0, *splits, len(row)))]
    return tuple(piece[0] if len(piece) == 1 else piece for piece in pieces)


def at_splits(row: tuple, splits: tuple[int, ...]) -> tuple:
    """Of one entry for each block those of the split ones."""
    return *(row[l - 1] for l in splits), row[-1]


def grouped(problem: Problem, splits: tuple[int, ...]) -> Problem:
    """The problem as the split phase sees it: a piece is a block, or a segment of several."""
    pieces: Any = group(problem.network.blocks, splits)
    if not problem.network.is_chain and any(isinstance(piece, tuple) for piece in pieces):
        raise ValueError(
            "A block that reads the inputs beside the block before cannot be within a segment: "
            "split at every block."
        )
    pieces = tuple(Segment(Network(piece)) if isinstance(piece, tuple) else piece for piece in pieces)
    return replace(problem, network=Network(pieces))


def pieces_of(problem: Problem) -> tuple[Block | Segment, ...]:
    """The blocks and segments of such a problem, from the input to the output."""
    return problem.network.blocks


def fit(piece: Block | Segment, W: Any, F: Array, n: int) -> Array:
    """What the constraint asks ``n`` rows of ``z`` to be: ``W F``, or the forward pass of a segment."""
    return piece.linear(W, F) if isinstance(piece, Segment) else (F @ W.T).reshape(n, -1)
