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
from deepprox.blocks import Dense
from deepprox.struct import replace, struct

NEAR_ZERO = 1e-6  # activations below it bend as if they were there

Weights = tuple[Any, ...]  # one array for each block, on the host or on a device
Tap = Callable[[int, Array], Array]  # of the number of a block and its ``z``


class Pass(NamedTuple):
    """A forward pass: every ``z``, the activations ``a`` of the hidden blocks, and what every block reads."""

    Z: tuple[Array, ...]
    activations: tuple[Array, ...]
    reads: tuple[Array, ...]


class Columns(NamedTuple):
    """Which of the numbers that a block reads come from the block before, and which are inputs."""

    before: slice
    inputs: slice


@struct
class Network:
    """Blocks from the input to the output; the last link is not used."""

    blocks: tuple[Dense, ...]

    @property
    def smooth(self) -> bool:
        """Whether the penalties have their kinks at zero only."""
        return all(block.penalty.smooth for block in self.blocks)

    @property
    def is_chain(self) -> bool:
        """Whether every block reads the one before and nothing else."""
        return all(block.reads == ("before",) for block in self.blocks[1:])

    def sources(self, n_in: int) -> tuple[int, ...]:
        """How many numbers there are to read: the inputs, and the activations of every hidden block."""
        return (n_in, *(block.link.width(block.size) for block in self.blocks[:-1]))

    def columns(self, n_in: int) -> list[Columns]:
        """Where the sources of every block stand in what it reads; the first reads the inputs alone."""
        found = [Columns(slice(0), slice(n_in))]
        for block, n_before in zip(self.blocks[1:], self.sources(n_in)[1:]):
            end = n_before + n_in * ("inputs" in block.reads)
            found.append(Columns(slice(n_before), slice(n_before, end)))
        return found

    def widths(self, n_in: int) -> tuple[int, ...]:
        """How many numbers every block reads."""
        return tuple(columns.inputs.stop for columns in self.columns(n_in))

    def shapes(self, n_in: int) -> list[tuple[int, int]]:
        """The shapes of the weights: a row for every unit, columns for the bias and what is read."""
        return [(block.size, 1 + n) for block, n in zip(self.blocks, self.widths(n_in))]

    def n_inputs(self, W: Weights) -> int:
        """How many inputs weights are for."""
        return W[0].shape[1] - 1

    def used(self, W: Weights) -> tuple[np.ndarray, ...]:
        """Masks of what is read through weights that are not zero: inputs, and activations of every block."""
        every = [(np.asarray(w)[:, 1:] != 0).any(0) for w in W]
        parts = [*zip(every, self.columns(self.n_inputs(W)))]
        inputs = [mask[part.inputs] for mask, part in parts if mask[part.inputs].size]
        return np.any(inputs, axis=0), *(mask[part.before] for mask, part in parts[1:])

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

    def activations(self, Z: Sequence[Array]) -> tuple[Array, ...]:
        """The activations ``link_l(z_l)`` of the hidden blocks."""
        return tuple(block.link(z) for block, z in zip(self.blocks[:-1], Z))

    def reads(self, X: Any, activations: Sequence[Any]) -> list[Any]:
        """What every block reads, given the activations of the hidden ones."""
        return [self.read(l, before, X) for l, before in enumerate((X, *activations))]

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
