"""Observations that come a chunk at a time: a sum over all of them is a pass over the chunks.

A program with one sum runs on every chunk; each run adds what the chunks before it gave, so that the last
one sees the sum over all and says what the program is to say. The quasi-Newton steps have a sum in a loop:
here the loop is on the host, around a program that makes one trial. Second derivatives are added on the host.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from deepprox.diary import Stages
from deepprox.joining import quasi_newton
from deepprox.joining.certificate import flatten
from deepprox.joining.quasi_newton import CHUNK, Info, State
from deepprox.problem import Problem, Weights
from deepprox.spreading import Spread, same
from deepprox.struct import replace

TELLING = 2**20  # rows that tell second derivatives well enough: an error of some percent costs a pass
REFUSED = 6  # trials in a row that do not descend, after which a pass is not worth its time
Chunks = Callable[[], Iterator[tuple[Any, Any, Any]]]  # inputs, responses and weights, as often as one asks


class Adding(Spread):
    """The sum of what the chunks before gave and of what this one gives, inside one program."""

    def __init__(self, before: Array | None) -> None:
        self.before, self.now = before, jnp.zeros(0)
        self.sums = 0

    def __call__(self, tree: Any) -> Any:
        """The sum up to here."""
        vector, apart = ravel_pytree(tree)
        self.now = vector if self.before is None else self.before + vector
        self.sums += 1
        return apart(self.now)


class Passes(Spread):
    """``allsum`` by passes over chunks of equal size; on the host there is nobody else to add."""

    in_memory = False

    def __init__(self, chunks: Chunks, n: int, stages: Stages | None = None) -> None:
        self.chunks, self.n, self.stages = chunks, n, stages or Stages()
        self.passes = 0
        self._trial = self._one_sum(one_trial, ())

    def __call__(self, tree: Any) -> Any:
        """The tree: sums over observations are made by the programs."""
        return tree

    def compile(self, function: Callable, static: tuple[str, ...]) -> Callable:
        """The function as a pass, or as several."""
        steps = inspect.unwrap(quasi_newton.chunk)
        return self._steps if function is steps else self._one_sum(function, static)

    def turns(self, problem: Problem) -> Iterator[Problem]:
        """A pass on the host, over every k-th row where there are very many."""
        every = -(-self.n // TELLING)
        self.passes += 1
        for X, y, weight in self.chunks():
            X, y, some = X[::every], y[::every], weight[::every] * (len(X) / len(X[::every]))
            yield replace(problem, X=X, y=y, weight=some, allsum=same)

    def _one_sum(self, function: Callable, static: tuple[str, ...]) -> Callable:
        """A pass: a program with one sum, on every chunk."""
        run = adding_program(function, static)

        def call(problem: Problem, *args: Any, **kwargs: Any) -> Any:
            here = replace(problem, allsum=same)
            kind = jax.eval_shape(partial(run, **kwargs), here, None, *args)[1]
            total: Any = np.zeros(kind.shape, kind.dtype)
            self.passes += 1
            for X, y, weight in self.chunks():
                out, total = run(replace(here, X=X, y=y, weight=weight), total, *args, **kwargs)
                jax.block_until_ready(total)  # one chunk at a time
            return out

        return call

    def _steps(
        self, problem: Problem, W: Weights, state: State, tol: Any, limit: Any, lanes: bool
    ) -> tuple[State, Info, int]:
        """Up to ``limit`` quasi-Newton steps, a pass for each trial; their history and number."""
        if lanes:
            raise ValueError("Rows that are streamed are fitted from one start.")
        state, rows, refused = self.stages.resumed_within((state, [], 0))
        while float(state.certificate) > float(tol) and not bool(state.stalled) and len(rows) < int(limit):
            state, info, ok = self._trial(problem, W, state)
            refused = 0 if bool(ok) else refused + 1
            if bool(ok):
                rows.append(jax.tree.map(np.asarray, info))
            if refused == REFUSED:
                state = state._replace(stalled=jnp.asarray(True))
            self.stages.reached_within(state, [*rows], refused)
        none: Any = Info(*(np.zeros((), kind) for kind in (*[state.w.dtype] * 3, int, bool)))
        history: Any = [np.stack(column) for column in zip(*rows, *[none] * (CHUNK - len(rows)), strict=True)]
        return state, Info(*history), len(rows)


@cache
def adding_program(function: Callable, static: tuple[str, ...]) -> Callable:
    """A program on one chunk: what the function says, and the sum up to here; it serves all passes."""

    @partial(jax.jit, static_argnames=static)
    def run(problem: Problem, before: Array | None, *args: Any, **kwargs: Any) -> tuple[Any, Array]:
        adding = Adding(before)
        out = function(replace(problem, allsum=adding), *args, **kwargs)
        if adding.sums != 1:
            raise TypeError(f"{function.__name__} has {adding.sums} sums over observations, not one.")
        return out, adding.now

    return run


def one_trial(problem: Problem, W: Weights, state: State) -> tuple[State, Info, Array]:
    """A trial of a quasi-Newton step, what one looks at after it, and whether it was a step."""
    flat = flatten(problem, W)[1]
    advance = quasi_newton.advance if flat.smooth else quasi_newton.advance_envelope
    after, ok = advance(flat, state)
    changed = jnp.any((after.w == 0) != (state.w == 0))
    info = Info(after.objective, after.loss, after.certificate, jnp.count_nonzero(after.w), changed)
    return after, info, ok
