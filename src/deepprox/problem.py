"""Network + data = problem: what is minimised, in one place."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.blocks import Dense
from deepprox.losses import Loss
from deepprox.spreading import Spread, same
from deepprox.struct import replace, rows, static, struct

NEAR_ZERO = 1e-6  # activities below it bend as if they were there

Weights = tuple[Any, ...]  # one array for each block, on the host or on a device


@struct
class Network:
    """Blocks from the input to the output; the last link is not used."""

    blocks: tuple[Dense, ...]

    @property
    def smooth(self) -> bool:
        """Whether the penalties have their kinks at zero only."""
        return all(block.penalty.smooth for block in self.blocks)

    def widths(self, n_in: int) -> tuple[int, ...]:
        """How many numbers every block reads."""
        return (n_in, *(block.link.width(block.size) for block in self.blocks[:-1]))

    def shapes(self, n_in: int) -> list[tuple[int, int]]:
        """The shapes of the weights: a row for every unit, columns for the bias and what is read."""
        return [(block.size, 1 + n) for block, n in zip(self.blocks, self.widths(n_in))]

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

    def forward(self, W: Weights, X: Array) -> tuple[Array, ...]:
        """``z_1, ..., z_L`` of the forward pass; the last is ``eta``."""
        Z, reads = [], X
        for block, w in zip(self.blocks, W):
            Z.append(block.linear(w, reads))
            reads = block.link(Z[-1])
        return tuple(Z)

    def activity(
        self, Z: Sequence[Array], reads: Sequence[Array], weight: Array, majorised: bool = False
    ) -> Any:
        """What the hidden units are charged, or its majoriser, a square for every observation."""
        total: Any = 0.0
        for block, z, read in zip(self.blocks[:-1], Z, reads):
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


@jax.jit
def _level(loss: Loss, mean: Array) -> Array:
    return loss.inverse_mean(mean)


@struct
class Problem:
    """``sum_i weight_i loss(eta_i, y_i) + sum_l penalty_l(W_l)``, weights summing to one.

    An observation of weight 0 changes nothing: padding. ``allsum`` is the only place where
    observations meet: the identity where all of them are here, a sum over devices and processes where each
    has some. Its data are then the rows of this process.
    """

    network: Network
    loss: Loss
    X: Any = rows()
    y: Any = rows()
    weight: Any = rows(axis=-1)
    allsum: Spread = static(default=same)

    @property
    def n_rows(self) -> int:
        """How many rows there are, wherever they are, with their padding: the same number for everybody."""
        return int(self.allsum(np.asarray(len(self.weight))))

    @property
    def convex(self) -> bool:
        """Whether there is one minimum: one block, its penalty and the loss convex."""
        blocks = self.network.blocks
        return len(blocks) == 1 and blocks[0].penalty.convex and self.loss.convex

    @property
    def level(self) -> np.ndarray:
        """``eta`` of the best constant prediction."""
        weight, y = np.asarray(self.weight), np.asarray(self.y)
        total, mass = self.allsum((weight @ y, weight.sum()))
        return np.asarray(_level(self.loss, total / mass))

    def data_loss(self, eta: Array) -> Array:
        """The mean loss (this device's observations)."""
        return (self.weight * self.loss.value(eta, self.y)).sum()

    def mean_loss(self, W: Weights) -> Array:
        """The smooth part of the objective: the mean loss and what the activities add to it."""
        Z = self.network.forward(W, self.X)
        return self.data_loss(Z[-1]) + self.network.activity(Z, self.reads(Z)[1:], self.weight)

    def reads(self, Z: Sequence[Array]) -> list[Array]:
        """What every block reads."""
        return [self.X, *(block.link(z) for block, z in zip(self.network.blocks[:-1], Z))]

    def loss_and_gradient(self, W: Weights) -> tuple[Array, Weights]:
        """The smooth part and its gradient over all observations."""
        return self.allsum(jax.value_and_grad(self.mean_loss)(W))

    def objective(self, W: Weights) -> Array:
        """Mean loss of the forward pass plus penalties: the number that counts."""
        return self.allsum(self.mean_loss(W)) + self.network.penalty(W)
