"""Losses of a response on the whole line: its mean, without or with outliers, or a quantile.

Such a response has a unit and a level of its own, and ``eta`` has none: ``eta`` predicts
``(y - centre) / spread``, and ``mean(eta) = centre + spread eta`` is in the units of the response. Estimators
measure both where they are not given, so that a fit says the same in every unit.
"""

import math
from dataclasses import field
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.arrays import namespace
from deepprox.losses.contract import Loss, Separable, need
from deepprox.losses.rounding import plus, plus_prox
from deepprox.struct import struct


@struct
class Real(Loss):
    """``loss(eta, (y - centre) / spread)``: one number of each for every column, or one for all.

    ``robust`` says whether outliers are expected: the level is then the median, and the unit follows from the
    median deviation around it.
    """

    centre: float | None = field(default=None, kw_only=True)
    spread: float | None = field(default=None, kw_only=True)
    convex: ClassVar[bool] = True
    robust: ClassVar[bool] = True

    def check(self) -> None:
        """A level is a number and a unit is a length."""
        if self.centre is not None:
            need(self, "centre", "finite", np.isfinite)
        if self.spread is not None:
            need(self, "spread", "positive", lambda spread: (spread > 0) & np.isfinite(spread))

    def scaled(self, y: Any) -> Any:
        """What ``eta`` predicts: the response without its level and its unit."""
        y = y if self.centre is None else y - self.centre
        return y if self.spread is None else y / self.spread

    def mean(self, eta: Array) -> Array:
        eta = eta if self.spread is None else eta * self.spread
        return eta if self.centre is None else eta + self.centre

    def inverse_mean(self, mu: Array) -> Array:
        return self.scaled(mu)

    def unit(self) -> float:
        """The spread of one column. Several have units of their own, and numbers of all of them have none."""
        spread = np.asarray(1.0 if self.spread is None else self.spread)
        return float(spread.ravel()[0]) if spread.size == 1 else 1.0


@struct
class Squared(Real):
    """``|eta - y|^2 / 2``: a Gaussian response of unit variance, up to a constant."""

    free_scale: ClassVar[bool] = True
    robust: ClassVar[bool] = False
    by_formula: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True

    def value(self, eta: Array, y: Array) -> Array:
        return ((eta - self.scaled(y)) ** 2).sum(-1) / 2

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        return eta - self.scaled(y), namespace(eta).ones_like(eta)

    def log_base(self, y: np.ndarray) -> np.ndarray:
        logs = np.broadcast_to(np.log(1.0 if self.spread is None else self.spread), y.shape[1])
        return np.full(len(y), -y.shape[1] / 2 * math.log(2 * math.pi) - logs.sum())

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        return rng.normal(mu, (1.0 if self.spread is None else self.spread) / np.sqrt(count))

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """A weighted mean of ``v`` and the response."""
        return (v + step * self.scaled(y)) / (1 + step)


@struct
class Huber(Real, Separable):
    """``r^2 / 2`` where ``|r| <= delta``, else ``delta |r| - delta^2 / 2``, with ``r = eta - y``.

    An outlier pulls no harder than ``delta``, which counts in units of ``spread``.
    """

    delta: float = 1.35
    endless = ("delta",)
    by_formula: ClassVar[bool] = True
    likelihood: ClassVar[bool] = False

    def check(self) -> None:
        """Somewhere the parabola ends."""
        super().check()
        need(self, "delta", "positive", lambda delta: delta > 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        r = eta - self.scaled(y)
        core = namespace(r).clip(r, -self.delta, self.delta)
        return core * (r - core / 2)

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        xp = namespace(eta)
        r = eta - self.scaled(y)
        bends = xp.where(xp.abs(r) <= self.delta, xp.ones_like(eta), 0.0)
        return xp.clip(r, -self.delta, self.delta), bends

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """Towards the response: a share of the way, or ``step delta`` at most."""
        r = v - self.scaled(y)
        return v - jnp.clip(step * r / (1 + step), -step * self.delta, step * self.delta)


@struct
class Quantile(Real, Separable):
    """``q max(r, 0) + (1 - q) max(-r, 0)`` with ``r = y - eta``: the quantile of level ``q``.

    Exact without a ``width``. A positive one, in units of ``spread``, rounds the kink by a parabola
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
        super().check()
        need(self, "q", "between 0 and 1", lambda q: (q > 0) & (q < 1))
        if self.width is not None:
            need(self, "width", "at least 0", lambda width: width >= 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        r = self.scaled(y) - eta
        return plus(r, self.width) + (self.q - 1) * r

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """That of a positive part, in ``y - eta``."""
        y = self.scaled(y)
        return y - plus_prox(y - v - step * (self.q - 1), step, self.width)
