"""Network + data = problem: what is minimised, in one place."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array

from deepprox.blocks import Dense
from deepprox.losses import Loss
from deepprox.struct import static, struct

Weights = tuple[Any, ...]  # one array for each block, on the host or on a device


def same(tree: Any) -> Any:
    """The sum over observations when all of them are here."""
    return tree


@struct
class Network:
    """Blocks from the input to the output; the last link is not used."""

    blocks: tuple[Dense, ...]

    def widths(self, n_in: int) -> tuple[int, ...]:
        """How many numbers every block reads."""
        return (n_in, *(block.link.width(block.size) for block in self.blocks[:-1]))

    def shapes(self, n_in: int) -> list[tuple[int, int]]:
        """The shapes of the weights: a row for every unit, columns for the bias and what is read."""
        return [(block.size, 1 + n) for block, n in zip(self.blocks, self.widths(n_in))]

    def init(self, rng: np.random.Generator, n_in: int) -> tuple[np.ndarray, ...]:
        """Independent random weights for every block."""
        return tuple(block.init(rng, n) for block, n in zip(self.blocks, self.widths(n_in)))

    def forward(self, W: Weights, X: Array) -> tuple[Array, ...]:
        """``z_1, ..., z_L`` of the forward pass; the last is ``eta``."""
        Z, reads = [], X
        for block, w in zip(self.blocks, W):
            Z.append(block.linear(w, reads))
            reads = block.link(Z[-1])
        return tuple(Z)

    def penalty(self, W: Weights) -> Array:
        """``sum_l penalty_l(W_l)``."""
        return sum(block.value(w) for block, w in zip(self.blocks, W))  # type: ignore[return-value]

    def prox(self, V: Weights, step: Any) -> Weights:
        """The prox of the sum: block by block."""
        return tuple(block.prox(v, step) for block, v in zip(self.blocks, V))


@struct
class Problem:
    """``sum_i weight_i loss(eta_i, y_i) + sum_l penalty_l(W_l)``, weights summing to one.

    An observation of weight 0 changes nothing: padding. ``allsum`` is the only place where
    observations meet: the identity on one device, a ``psum`` when they are sharded.
    """

    network: Network
    loss: Loss
    X: Any
    y: Any
    weight: Any
    allsum: Callable[[Any], Any] = static(default=same)

    def mean_loss(self, W: Weights) -> Array:
        """The smooth part of the objective (this device's observations)."""
        eta = self.network.forward(W, self.X)[-1]
        return (self.weight * self.loss.value(eta, self.y)).sum()

    def loss_and_gradient(self, W: Weights) -> tuple[Array, Weights]:
        """The smooth part and its gradient over all observations."""
        return self.allsum(jax.value_and_grad(self.mean_loss)(W))

    def objective(self, W: Weights) -> Array:
        """Mean loss of the forward pass plus penalties: the number that counts."""
        return self.allsum(self.mean_loss(W)) + self.network.penalty(W)
