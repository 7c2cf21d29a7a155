"""Observations that a blocking function reaches: it takes arrays and returns everybody's sums."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jax.flatten_util import ravel_pytree

from deepprox.spreading.contract import Spread

PIECE = 2**14  # words of 32 bits: XLA copies up to 100 KiB in the thread that asks

Reduce = Callable[[list[np.ndarray]], list[np.ndarray]]


class Reducer(Spread):
    """``reduce(arrays)``, called by every one of ``world`` processes in the same order, returns the sums.

    They must be equal to the last bit for everybody. In a program it is called back on the host; the sums of
    a program depend on each other, so that the order is the same for all.
    """

    chained = True

    def __init__(self, reduce: Reduce, rank: int, world: int) -> None:
        self.reduce, self.rank, self.world = reduce, rank, world
        self.parts = world

    def __call__(self, tree: Any) -> Any:
        """The sum, from inside a program or on the host."""
        leaves, structure = jax.tree.flatten(tree)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return self._sum_in_program(tree)
        return jax.tree.unflatten(structure, self._sums(leaves))

    def _sum_in_program(self, tree: Any) -> Any:
        """The sum by a callback: one vector, as words of 32 bits, since a callback sees no others."""
        vector, apart = ravel_pytree(tree)
        words = lax.bitcast_convert_type(vector, np.uint32)

        @custom_vmap
        def total(flat: Any) -> Any:
            return self._call_back(flat, vector.dtype)

        @total.def_vmap
        def side_by_side(size: int, batched: Any, flat: Any) -> tuple[Any, bool]:
            return self._call_back(flat.reshape(-1), vector.dtype).reshape(flat.shape), True

        return apart(lax.bitcast_convert_type(total(words.reshape(-1)).reshape(words.shape), vector.dtype))

    def _call_back(self, words: Any, dtype: Any) -> Any:
        """The sum of a vector of words, given to the host in pieces.

        What is larger is copied by a thread of XLA's pool. Where a process has one core that is the thread
        that waits for the callback, and it would wait for ever.
        """

        def add(*pieces: Any) -> np.ndarray:
            whole = np.concatenate([np.asarray(piece) for piece in pieces])
            return self._sums([whole.view(dtype)])[0].view(np.uint32)

        pieces = [words[begin : begin + PIECE] for begin in range(0, words.size, PIECE)]
        return jax.pure_callback(add, jax.ShapeDtypeStruct(words.shape, np.uint32), *pieces)

    def _sums(self, leaves: Any) -> list[np.ndarray]:
        given = [np.asarray(leaf) for leaf in leaves]
        sums = self.reduce(given)
        return [np.asarray(a, like.dtype).reshape(like.shape) for a, like in zip(sums, given, strict=True)]

    def room(self, n: int) -> int:
        """As many rows as the largest process needs: all then run programs of one shape."""
        return int(self.gather(np.asarray(n)).max())
