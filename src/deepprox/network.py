"""Network: blocks from the input to the output, what each of them reads, and one forward pass for all.

    a_0 = X,   f_l = what block l reads of a_{l-1} and X,   z_l = W_l [1; f_l],   a_l = link_l(z_l)

The last link is not used: ``z_L`` is ``eta``. Whoever needs another pass, with a ``z`` moved or a link bent,
gives :meth:`Network.run` a tap.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.arrays import namespace
from deepprox.blocks import Block
from deepprox.struct import replace, struct

NEAR_ZERO = 1e-6  # activations below it bend as if they were there

Weights = tuple[Any, ...]  # one array for each block, on the host or on a device
Tap = Callable[[int, Array], Array]  # of the number of a block and its ``z``


class Pass(NamedTuple):
    """A forward pass: every ``z``, the activations ``a`` of the hidden blocks, and what every block reads."""

    Z: tuple[Array, ...]
    activations: tuple[Array, ...]
    reads: tuple[Array, ...]


class Wiring(NamedTuple):
    """Which of the numbers that a block reads come from the block before, which are inputs, what it gives."""

    before: slice
    inputs: slice
    numbers: int

    @property
    def n_reads(self) -> int:
        """How many numbers it reads."""
        return self.inputs.stop


@struct
class Network:
    """Blocks from the input to the output; the last link is not used."""

    blocks: tuple[Block, ...]

    @property
    def smooth(self) -> bool:
        """Whether the penalties have their kinks at zero only."""
        return all(block.penalty.smooth for block in self.blocks)

    @property
    def is_chain(self) -> bool:
        """Whether every block reads the one before and nothing else."""
        return all(block.reads == ("before",) for block in self.blocks[1:])

    @property
    def is_dense_chain(self) -> bool:
        """Whether, besides, every number is a unit with weights of its own."""
        return self.is_chain and all(block.by_unit for block in self.blocks)

    def wiring(self, n_in: int) -> list[Wiring]:
        """What every block reads and gives, for so many inputs; the first reads these alone."""
        found, before = [Wiring(slice(0), slice(n_in), self.blocks[0].numbers(n_in))], self.blocks[0]
        for block in self.blocks[1:]:
            n = before.link.width(found[-1].numbers)
            end = n + n_in * ("inputs" in block.reads)
            found.append(Wiring(slice(n), slice(n, end), block.numbers(end)))
            before = block
        return found

    def sources(self, n_in: int) -> tuple[int, ...]:
        """How many numbers there are to read: the inputs, and the activations of every hidden block."""
        return (n_in, *(wired.before.stop for wired in self.wiring(n_in)[1:]))

    def numbers(self, n_in: int) -> tuple[int, ...]:
        """How many numbers ``z`` of every block has."""
        return tuple(wired.numbers for wired in self.wiring(n_in))

    def widths(self, n_in: int) -> tuple[int, ...]:
        """How many numbers every block reads."""
        return tuple(wired.n_reads for wired in self.wiring(n_in))

    def shapes(self, n_in: int) -> list[tuple[int, int]]:
        """The shapes of the weights: a row for every unit, columns for the bias and what is read."""
        return [block.shape(n) for block, n in zip(self.blocks, self.widths(n_in))]

    def n_inputs(self, W: Weights) -> int:
        """How many inputs weights are for."""
        return self.blocks[0].n_read(W[0])

    def used(self, W: Weights) -> tuple[np.ndarray, ...]:
        """Masks of what is read through weights that are not zero: inputs, and activations of every block."""
        wiring = self.wiring(self.n_inputs(W))
        every = [block.used(w) for block, w in zip(self.blocks, W)]
        inputs = [mask[wired.inputs] for mask, wired in zip(every, wiring) if mask[wired.inputs].size]
        return np.any(inputs, axis=0), *(mask[wired.before] for mask, wired in zip(every[1:], wiring[1:]))

    def without(self, W: Weights, l: int, unit: int) -> tuple[np.ndarray, ...]:
        """The weights without one unit of a hidden block: it reads nothing, and nothing reads it."""
        out, after, wired = [*map(np.array, W)], self.blocks[l + 1], self.wiring(self.n_inputs(W))[l + 1]
        out[l][unit] = 0
        gone = np.zeros(wired.n_reads, bool)
        gone[wired.before] = self.blocks[l].by_place(np.arange(len(out[l])) == unit, wired.before.stop)
        out[l + 1] = after.without(out[l + 1], gone)
        return tuple(out)

    def n_weights(self, W: Weights) -> int:
        """How many weights there are: a bias that a block does not have is none."""
        return sum(block.own(w).size for block, w in zip(self.blocks, W, strict=True))

    def leaky(self) -> "Network":
        """The same with leaky links: itself where they are."""
        *hidden, last = self.blocks
        changed = [block for block in hidden if block.link.leaky() is not block.link]
        leaky = [replace(block, link=block.link.leaky()) for block in hidden]
        return Network((*leaky, last)) if changed else self

    def init(self, rng: np.random.Generator, n_in: int) -> tuple[np.ndarray, ...]:
        """Independent random weights for every block."""
        if not self.blocks[-1].by_unit:
            raise ValueError(
                f"The last block of a network is dense, and {type(self.blocks[-1]).__name__} is not."
            )
        return tuple(block.init(rng, n) for block, n in zip(self.blocks, self.widths(n_in)))

    def run(self, W: Weights, X: Array, shifted: Tap | None = None, linked: Tap | None = None) -> Pass:
        """The forward pass; ``shifted`` stands for every ``z``, ``linked`` for the links of hidden blocks."""
        linked = linked or (lambda l, z: self.blocks[l].link(z))
        Z: list[Array] = []
        activations: list[Array] = []
        reads: list[Array] = []
        for l, (block, w) in enumerate(zip(self.blocks, W)):
            reads.append(self.read(l, activations[-1] if l else X, X))
            z = block.linear(w, reads[-1])
            Z.append(z if shifted is None else shifted(l, z))
            if l < len(self.blocks) - 1:
                activations.append(linked(l, Z[-1]))
        return Pass(tuple(Z), tuple(activations), tuple(reads))

    def forward(self, W: Weights, X: Array) -> tuple[Array, ...]:
        """``z_1, ..., z_L`` of the forward pass; the last is ``eta``."""
        return self.run(W, X).Z

    def activations(self, Z: Sequence[Any]) -> tuple[Any, ...]:
        """The activations ``link_l(z_l)`` of the hidden blocks."""
        return tuple(block.link(z) for block, z in zip(self.blocks[:-1], Z))

    def reads(self, X: Any, activations: Sequence[Any]) -> list[Any]:
        """What every block reads, given the activations of the hidden ones."""
        return [self.read(l, before, X) for l, before in enumerate((X, *activations))]

    def hidden_reads(self, X: Any, Z: Sequence[Any]) -> list[Any]:
        """What the hidden blocks read at ``Z``, on the host: links of deepprox compile nothing there."""
        hidden: list[Any] = [np.asarray(z) for z in Z[: max(len(self.blocks) - 2, 0)]]
        return [np.asarray(reads) for reads in self.reads(np.asarray(X), self.activations(hidden))]

    def read(self, l: int, before: Any, X: Any) -> Any:
        """What block ``l`` reads, given the activations of the block before and the inputs; masks alike."""
        if l == 0 or "inputs" not in self.blocks[l].reads:
            return before
        return namespace(before).concatenate([before, X], axis=-1)

    def activity(
        self, Z: Sequence[Array], activations: Sequence[Array], weight: Array, majorised: bool = False
    ) -> Any:
        """What the hidden units are charged, or its majoriser, a square for every observation."""
        total: Any = 0.0
        for block, z, read in zip(self.blocks[:-1], Z, activations):
            if block.activity is not None:
                A = block.acts(z, read)
                if majorised:
                    # no stiffer than this: what sits at zero to rounding could not be moved again
                    away = jnp.where(jnp.abs(A) < NEAR_ZERO, NEAR_ZERO, A)
                    bend = lax.stop_gradient(block.activity.curvature(away, weight))
                    total += (weight[:, None] * bend * A**2).sum() / 2
                else:
                    total += block.activity.value(A, weight)
        return total

    def penalty(self, W: Weights) -> Array:
        """``sum_l penalty_l(W_l)``."""
        return sum(block.value(w) for block, w in zip(self.blocks, W))  # type: ignore[return-value]

    def prox(self, V: Weights, step: Any) -> Weights:
        """The prox of the sum: block by block."""
        return tuple(block.prox(v, step) for block, v in zip(self.blocks, V))
