"""Network + data = problem: what is minimised, in one place."""

from typing import Any

import jax
import numpy as np
from jax import Array

from deepprox.arrays import answers_numpy
from deepprox.losses import Loss
from deepprox.network import Network, Pass, Weights
from deepprox.spreading import Spread, same
from deepprox.struct import rows, static, struct


@jax.jit
def _level(loss: Loss, mean: Array) -> Array:
    return loss.inverse_mean(mean)


@struct
class Problem:
    """``sum_i weight_i loss(eta_i, y_i) + sum_l penalty_l(W_l)``, weights summing to one.

    An observation of weight 0 changes nothing: padding. ``allsum`` is the only place where
    observations meet: the identity where all of them are here, a sum over devices and processes where each
    has some. Its data are then the rows of this process. ``n_in`` is how many of the columns of ``X`` are
    inputs, where those after them are zeros: padding too.
    """

    network: Network
    loss: Loss
    X: Any = rows()
    y: Any = rows()
    weight: Any = rows(axis=-1)
    allsum: Spread = static(default=same)
    n_in: Any = None

    @property
    def n_inputs(self) -> int:
        """How many inputs there are: columns of zeros beside them, if any, are none."""
        return self.X.shape[1] if self.n_in is None else int(self.n_in)

    @property
    def n_weights(self) -> int:
        """How many weights there are, without those of columns that are no inputs."""
        return sum(n_out * n_read for n_out, n_read in self.network.shapes(self.n_inputs))

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
        if answers_numpy(self.loss):
            return np.asarray(jax.tree.map(np.asarray, self.loss).inverse_mean(np.asarray(total / mass)))
        return np.asarray(_level(self.loss, total / mass))

    def data_loss(self, eta: Array) -> Array:
        """The mean loss (this device's observations)."""
        return (self.weight * self.loss.value(eta, self.y)).sum()

    def smooth_part(self, at: Pass) -> Array:
        """The mean loss at the end of a pass, and what the activities add to it."""
        return self.data_loss(at.Z[-1]) + self.network.activity(at.Z, at.activations, self.weight)

    def mean_loss(self, W: Weights) -> Array:
        """The smooth part of the objective: the mean loss and what the activities add to it."""
        return self.smooth_part(self.network.run(W, self.X))

    def loss_and_gradient(self, W: Weights) -> tuple[Array, Weights]:
        """The smooth part and its gradient over all observations."""
        return self.allsum(jax.value_and_grad(self.mean_loss)(W))

    def objective(self, W: Weights) -> Array:
        """Mean loss of the forward pass plus penalties: the number that counts."""
        return self.allsum(self.mean_loss(W)) + self.network.penalty(W)
