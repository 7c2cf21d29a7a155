"""Observations that come a chunk at a time: a sum over all of them is a pass over the chunks.

A program with one sum runs on every chunk; each run adds what the chunks before it gave, so that the last
one sees the sum over all and says what the program is to say. Second derivatives are added on the host.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from deepprox.problem import Problem
from deepprox.spreading import Spread, same
from deepprox.struct import replace

TELLING = 2**20  # rows that tell second derivatives well enough: an error of some percent costs a pass
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

    def __init__(self, chunks: Chunks, n: int) -> None:
        self.chunks, self.n, self.passes = chunks, n, 0

    def __call__(self, tree: Any) -> Any:
        """The tree: sums over observations are made by the programs."""
        return tree

    def turns(self, problem: Problem) -> Iterator[Problem]:
        """A pass on the host, over every k-th row where there are very many."""
        every = -(-self.n // TELLING)
        self.passes += 1
        for X, y, weight in self.chunks():
            X, y, some = X[::every], y[::every], weight[::every] * (len(X) / len(X[::every]))
            yield replace(problem, X=X, y=y, weight=some, allsum=same)

    def compile(self, function: Callable, static: tuple[str, ...]) -> Callable:
        """The function as a pass: a program with one sum, on every chunk."""
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
