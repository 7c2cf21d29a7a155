"""What a fit can go on from after the loss of a worker: all that is not about single rows.

A run is a sequence of stages (:class:`deepprox.diary.Stages`). Their results are the same for every worker,
but for the ``rows()`` of records: ``Z`` and ``U`` of the split phase, and the slopes at which Newton's method
holds pre-activations. These begin again: ``Z = W F`` and ``U = 0``, and no slopes.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from deepprox.diary import Stages
from deepprox.problem import Network, Problem
from deepprox.splitting.state import State
from deepprox.struct import change_rows, replace


class Pages(NamedTuple):
    """The finished stages of a run and the one that was interrupted, without what is about single rows."""

    done: list
    begun: tuple | None

    @classmethod
    def of(cls, stages: Stages) -> "Pages":
        """What can be kept of a run, as NumPy."""
        here = lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf  # noqa: E731
        return cls(*with_zeros(jax.tree.map(here, (stages.done, stages.begun)), 0))

    def stages(self, problem: Problem) -> Stages:
        """The run as it goes on with the rows of a problem."""

        def feasible(record: Any) -> Any:
            if not isinstance(record, State):
                return record
            return replace(record, Z=forward(problem.network, record.W, problem.X))

        is_state = lambda node: isinstance(node, State)  # noqa: E731
        begun = with_zeros((self.done, self.begun), problem.X.shape[0])
        return Stages(*jax.tree.map(feasible, begun, is_leaf=is_state))


def with_zeros(pages: Any, n: int) -> Any:
    """The pages with zeros for ``n`` observations in place of every array over others."""

    def zeros(array: np.ndarray, axis: int) -> np.ndarray:
        return np.zeros((*array.shape[:axis], n, *array.shape[axis + 1 :]), array.dtype)

    return change_rows(zeros, pages)


def forward(network: Network, W: Any, X: Any) -> tuple[Any, ...]:
    """``Z`` of the forward pass of one start, or of several side by side."""
    each = jax.vmap(network.forward, (0, None)) if W[0].ndim > 2 else network.forward
    return tuple(np.asarray(z) for z in jax.jit(each)(W, np.asarray(X, W[0].dtype)))
