"""The certificate: how far a point is from being stationary, measured by the prox alone."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from deepprox.problem import Problem, Weights


class Flat(NamedTuple):
    """The objective of a problem as functions of one vector of all its weights."""

    problem: Problem
    unravel: Any

    def loss_and_gradient(self, w: Array) -> tuple[Array, Array]:
        """Mean loss and its gradient."""
        loss, gradient = self.problem.loss_and_gradient(self.unravel(w))
        return loss, ravel_pytree(gradient)[0]

    def penalty(self, w: Array) -> Array:
        """The sum of the blocks' penalties."""
        return self.problem.network.penalty(self.unravel(w))

    def penalty_gradient(self, w: Array) -> Array:
        """Its derivative where it has one; autodiff's choice at a kink."""
        return jax.grad(self.penalty)(w)

    def prox(self, v: Array, step: Array) -> Array:
        """Its prox."""
        return ravel_pytree(self.problem.network.prox(self.unravel(v), step))[0]

    @property
    def smooth(self) -> bool:
        """Whether all penalties are differentiable wherever no weight is zero."""
        return self.problem.network.smooth

    def kinked(self, w: Array) -> Array:
        """Which weights their penalty holds at zero: its prox puts a small one of some sign there."""
        one = jnp.ones((), w.dtype)
        return (self.prox(jnp.full_like(w, 1e-8), one) == 0) | (self.prox(jnp.full_like(w, -1e-8), one) == 0)

    def residual(self, w: Array, gradient: Array, step: Array) -> Array:
        """``(w - prox(w - step g, step)) / step``: zero at a stationary point, and only there."""
        return (w - self.prox(w - step * gradient, step)) / step


def flatten(problem: Problem, W: Weights) -> tuple[Array, Flat]:
    """The vector of all weights and the problem as functions of it."""
    w, unravel = ravel_pytree(W)
    return w, Flat(problem, unravel)


def certificate(residual: Array) -> Array:
    """``max_j |residual_j|``: in the units of a derivative of the objective, as ``alpha`` is."""
    return jnp.abs(residual).max()


def bounded(step: float, dtype: Any) -> float:
    """The step, neither so short that rounding hides a residual nor so long that a large weight does."""
    return min(max(step, float(np.finfo(dtype).eps) ** (1 / 3)), 1.0)


def ravel(W: Weights) -> np.ndarray:
    """The vector of all weights, on the host."""
    return np.concatenate([np.asarray(w).ravel() for w in W])


def unravel(w: Any, like: Weights) -> tuple[np.ndarray, ...]:
    """The weights in a vector, in the shapes of ``like``, on the host."""
    ends = np.cumsum([x.size for x in like])
    return tuple(part.reshape(x.shape) for part, x in zip(np.split(np.asarray(w), ends[:-1]), like))
