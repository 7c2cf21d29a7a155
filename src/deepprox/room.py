"""The inputs that a solve sees: the user's, and zeros beside them, so that few shapes compile.

Rows are padded where a problem is posed. So are its inputs here, with columns of zeros up to a size of a
lattice, as long as it is being solved. The weight of such a column starts at zero, its gradient is zero, and
a penalty that ``widens`` leaves it there and charges nothing: the solution is that of the problem as it was.
Columns of zeros stand last in every block that reads the inputs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from deepprox.joining.certificate import ravel, unravel
from deepprox.joining.live import Live
from deepprox.joining.quasi_newton import Memory
from deepprox.problem import Network, Problem, Weights
from deepprox.runtime import lattice
from deepprox.spreading import same
from deepprox.struct import replace

NUMBERS = 2**22  # in X, with its zeros: with more of them the steps of a fit cost more than its programs


class Room(NamedTuple):
    """A problem with zeros beside its inputs, and its weights with and without those of the zeros."""

    problem: Problem
    own: Network
    n_inputs: int

    @property
    def all_of_it(self) -> bool:
        """Whether there are no zeros."""
        return self.problem.X.shape[1] == self.n_inputs

    def put(self, W: Weights) -> Weights:
        """The weights, with zeros for the zeros."""
        if self.all_of_it:
            return W
        return self._fitted(W, self.problem.X.shape[1])

    def take(self, W: Weights) -> Weights:
        """The weights without those of the zeros."""
        if self.all_of_it:
            return W
        return self._fitted(W, self.n_inputs)

    def put_memory(self, memory: Memory) -> Memory:
        """What is known of the curvature, with zeros for the zeros."""
        return self._moved(memory, self.n_inputs, self.put)

    def take_memory(self, memory: Memory) -> Memory:
        """What is known of the curvature, of the user's weights."""
        return self._moved(memory, self.problem.X.shape[1], self.take)

    def take_live(self, live: Live) -> Live:
        """Which of the user's inputs take part, and which units."""
        return Live((live.reads[0][: self.n_inputs], *live.reads[1:]))

    def _fitted(self, W: Weights, n_in: int) -> Weights:
        rows = zip(self.own.blocks, W, self.own.widths(n_in), strict=True)
        return tuple(block.fitted(w, n) for block, w, n in rows)

    def _moved(self, memory: Memory, n_in: int, move: Callable[[Weights], Weights]) -> Memory:
        if self.all_of_it:
            return memory
        like = tuple(np.empty(shape) for shape in self.own.shapes(n_in))
        return memory.moved(lambda rows: np.stack([ravel(move(unravel(row, like))) for row in rows]))


def as_it_is(problem: Problem) -> Room:
    """The problem without zeros."""
    return Room(problem, problem.network, problem.n_inputs)


def room(problem: Problem) -> Room:
    """The problem as a solve sees it: as it is where zeros could not be equal, or would cost more."""
    (n, n_inputs), blocks = problem.X.shape, problem.network.blocks
    readers = [block for l, block in enumerate(blocks) if l == 0 or "inputs" in block.reads]
    wanted = lattice(n_inputs)
    # a problem of one block has few programs
    pays = len(blocks) > 1 and n * wanted <= NUMBERS and problem.allsum == same
    if not pays or wanted == n_inputs or not all(block.widens for block in readers):
        return as_it_is(problem)
    X: Any = np.pad(np.asarray(problem.X), [(0, 0), (0, wanted - n_inputs)])
    if isinstance(problem.X, jax.Array):
        X = jax.device_put(X, problem.X.sharding)
    return Room(replace(problem, X=X, n_in=np.int32(n_inputs)), problem.network, n_inputs)
