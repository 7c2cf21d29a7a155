"""Losses of a response on the whole line: its mean, without or with outliers, or a quantile."""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.arrays import namespace
from deepprox.losses.contract import Loss, Separable, need
from deepprox.losses.rounding import plus, plus_prox
from deepprox.struct import struct


@struct
class Squared(Loss):
    """``|eta - y|^2 / 2``: a Gaussian response of unit variance, up to a constant."""

    convex: ClassVar[bool] = True
    free_scale: ClassVar[bool] = True

    def value(self, eta: Array, y: Array) -> Array:
        return ((eta - y) ** 2).sum(-1) / 2

    def mean(self, eta: Array) -> Array:
        return eta

    def inverse_mean(self, mu: Array) -> Array:
        return mu

    def log_base(self, y: np.ndarray) -> np.ndarray:
        return np.full(len(y), -y.shape[1] / 2 * math.log(2 * math.pi))

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        return rng.normal(mu, 1 / np.sqrt(count))

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """A weighted mean of ``v`` and ``y``."""
        return (v + step * y) / (1 + step)


@struct
class Huber(Separable):
    """``r^2 / 2`` where ``|r| <= delta``, else ``delta |r| - delta^2 / 2``, with ``r = eta - y``.

    An outlier pulls no harder than ``delta``, which is in the units of the response.
    """

    delta: float = 1.35
    endless = ("delta",)
    likelihood: ClassVar[bool] = False

    def check(self) -> None:
        """Somewhere the parabola ends."""
        need(self, "delta", "positive", lambda delta: delta > 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        r = eta - y
        core = namespace(r).clip(r, -self.delta, self.delta)
        return core * (r - core / 2)

    def mean(self, eta: Array) -> Array:
        return eta

    def inverse_mean(self, mu: Array) -> Array:
        return mu

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """Towards ``y``: a share of the way, or ``step delta`` at most."""
        r = v - y
        return v - jnp.clip(step * r / (1 + step), -step * self.delta, step * self.delta)


@struct
class Quantile(Separable):
    """``q max(r, 0) + (1 - q) max(-r, 0)`` with ``r = y - eta``: the quantile of level ``q``.

    Exact without a ``width``. A positive one, in the units of the response, rounds the kink by a parabola
    where ``|r| <= width``: at most ``width / 4`` more than the exact loss, the same outside, and with a
    gradient everywhere. The join phase follows gradients and stalls at kinks of a loss, so estimators
    take a hundredth of the response's standard deviation where none is given.
    """

    q: float = 0.5
    width: float | None = None
    likelihood: ClassVar[bool] = False
    smooth: ClassVar[bool] = False

    def check(self) -> None:
        """A level is a probability, a width a length."""
        need(self, "q", "between 0 and 1", lambda q: (q > 0) & (q < 1))
        need(self, "width", "at least 0", lambda width: width >= 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return plus(y - eta, self.width) + (self.q - 1) * (y - eta)

    def mean(self, eta: Array) -> Array:
        """The quantile."""
        return eta

    def inverse_mean(self, mu: Array) -> Array:
        return mu

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """That of a positive part, in ``y - eta``."""
        return y - plus_prox(y - v - step * (self.q - 1), step, self.width)
