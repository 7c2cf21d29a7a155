"""``allsum``: the sum over all observations, of which every process and every device has some.

Given the weights, observations are independent; the weights need only sums over them. So every process runs
the whole solver on its own rows, and all that they say together goes through a :class:`Spread`. Its sums are
equal to the last bit for everybody, so that all take the same decisions.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from deepprox import traces


class Spread(ABC):
    """``allsum(tree)``: everybody's trees, added; ``rank`` of ``world`` processes is this one.

    A call inside a compiled program adds what the devices hold. A call on the host, with NumPy arrays, adds
    what the processes hold.
    """

    rank: int = 0
    world: int = 1
    parts: int = 1  # how many trees a sum in a program has
    in_memory: bool = True  # whether arrays over all observations of this process can be held
    chained: bool = False  # whether sums of one program must depend on each other, to come in one order

    @abstractmethod
    def __call__(self, tree: Any) -> Any:
        """The sum of everybody's trees."""

    def compile(self, function: Callable, static: tuple[str, ...]) -> Callable:
        """A function of a problem and more as a program; its ``static`` arguments shape it."""
        return jax.jit(function, static_argnames=static)

    def resident(self, tree: Any) -> Any:
        """Variables of a loop, as a program returns them: else its second call would compile it again."""
        return tree

    def rows(self, tree: Any) -> Any:
        """Arrays over observations that a program returned: the rows of this process."""
        return tree

    def room(self, n: int) -> int:
        """How many rows every process holds, padding included, when this one has ``n``."""
        return n

    def turns(self, problem: Any) -> Iterator[Any]:
        """Problems that hold the rows of this process between them, for a sum that is made on the host."""
        yield problem

    def gather(self, table: np.ndarray) -> np.ndarray:
        """Every process's table, of one shape, along a new first axis: a sum of tables in their places."""
        table = np.asarray(table)
        places = np.zeros((self.world, *table.shape), table.dtype)
        places[self.rank] = table
        return np.asarray(self(places))

    def first(self, value: Any) -> np.ndarray:
        """What the first process says."""
        return self.gather(np.asarray(value))[0]

    def collect(self, value: Any) -> list[Any]:
        """Every process's value, of anything that JSON can hold."""
        text = np.frombuffer(json.dumps(value).encode(), np.uint8)
        lengths = self.gather(np.asarray(text.size))
        padded = np.zeros(int(lengths.max()), np.uint8)
        padded[: text.size] = text
        rows = zip(self.gather(padded), lengths, strict=True)
        return [json.loads(row[:length].astype(np.uint8).tobytes()) for row, length in rows]


class Here(Spread):
    """All observations are here: the sum is the tree itself."""

    def __call__(self, tree: Any) -> Any:
        """The tree."""
        return tree

    def compile(self, function: Callable, static: tuple[str, ...]) -> Callable:
        """A program whose trace is kept."""
        return traces.jit(function, static)

    def resident(self, tree: Any) -> Any:
        """On the device where programs run."""
        settings: Any = jax.config
        return jax.device_put(tree, settings.jax_default_device or jax.local_devices()[0])


same = Here()
