"""What a fit can go on from after the loss of a worker: all that is not about single rows.

A run is a sequence of stages (:class:`deepprox.diary.Stages`). Their results are the same for every worker,
but for arrays over its own rows: ``Z`` and ``U`` of the split phase, and the slopes at which Newton's method
holds pre-activations. These begin again: ``Z = W F`` and ``U = 0``, and no slopes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from deepprox.diary import Stages
from deepprox.joining.finish import Finish
from deepprox.problem import Network, Problem
from deepprox.solve import After
from deepprox.splitting.state import State

Rows = Callable[[np.ndarray], np.ndarray]  # from an array over observations to one over others


class Pages(NamedTuple):
    """The finished stages of a run and the one that was interrupted, without what is about single rows."""

    done: list
    begun: tuple | None

    @classmethod
    def of(cls, stages: Stages) -> "Pages":
        """What can be kept of a run, as NumPy."""
        here = lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf  # noqa: E731
        return _with_rows(cls(*jax.tree.map(here, (stages.done, stages.begun))), _rows(0))

    def stages(self, problem: Problem) -> Stages:
        """The run as it goes on with the rows of a problem."""
        done, begun = _with_rows(self, _rows(problem.X.shape[0]))
        if begun is not None and _is_split(begun):
            (variables, *more), *told = begun
            state = State(*variables)
            Z = forward(problem.network, state.W, problem.X)
            begun = ((tuple(state._replace(Z=Z)), *more), *told)
        return Stages(done, begun)


def _rows(n: int) -> Rows:
    """Zeros for ``n`` observations in place of an array over others; leading axes are starts."""
    return lambda rows: np.zeros((*rows.shape[:-2], n, rows.shape[-1]), rows.dtype)


def _is_split(begun: tuple) -> bool:
    """Whether the split phase was interrupted: its loop alone keeps its state as a plain tuple."""
    return type(begun[0][0]) is tuple


def _with_rows(pages: Pages, change: Rows) -> Pages:
    """The pages with their arrays over observations changed: the only place that knows where these are."""
    done, begun = [], pages.begun
    for result, *told in pages.done:
        if isinstance(result, Finish):
            result = result._replace(slopes=jax.tree.map(change, result.slopes))
        if isinstance(result, After):
            result = result._replace(state=None)  # for a fit that follows, and none does
        done.append((result, *told))
    if begun is not None and _is_split(begun):
        (variables, *more), *told = begun
        W, Z, U, *rest = variables
        begun = (((W, *jax.tree.map(change, (Z, U)), *rest), *more), *told)
    return Pages(done, begun)


def forward(network: Network, W: Any, X: Any) -> tuple[Any, ...]:
    """``Z`` of the forward pass of one start, or of several side by side."""
    each = jax.vmap(network.forward, (0, None)) if W[0].ndim > 2 else network.forward
    return tuple(np.asarray(z) for z in jax.jit(each)(W, np.asarray(X, W[0].dtype)))
