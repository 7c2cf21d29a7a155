"""Convex penalties that add up weights one by one: none, lasso, ridge, and both."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.penalties.contract import Number, Penalty, need, soft_threshold
from deepprox.struct import struct


@struct
class Zero(Penalty):
    """``0``: no penalty."""

    convex: ClassVar[bool] = True
    straight: ClassVar[bool] = True
    wide: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return jnp.zeros((), w.dtype)

    def prox(self, v: Array, step: Number) -> Array:
        return v


@struct
class L1(Penalty):
    """``alpha * sum |w_j|``: the lasso (a Laplace prior), sparse weights."""

    alpha: Number = 1.0
    convex: ClassVar[bool] = True
    straight: ClassVar[bool] = True
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return (self.alpha * jnp.abs(w)).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return soft_threshold(v, step * self.alpha)


@struct
class L2(Penalty):
    """``alpha / 2 * sum w_j^2``: ridge, small weights."""

    alpha: Number = 1.0
    convex: ClassVar[bool] = True
    wide: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return (self.alpha / 2 * w**2).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return v / (1 + step * self.alpha)


@struct
class ElasticNet(Penalty):
    """``alpha * sum (l1_ratio |w_j| + (1 - l1_ratio) / 2 w_j^2)``: sparse and small."""

    alpha: Number = 1.0
    l1_ratio: Number = 0.5
    convex: ClassVar[bool] = True
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    def check(self) -> None:
        """A share lies between 0 and 1."""
        need("0 <= l1_ratio <= 1", self, abs(np.asarray(self.l1_ratio) - 0.5) <= 0.5)

    def value(self, w: Array) -> Array:
        return L1(self.alpha * self.l1_ratio).value(w) + L2(self.alpha * (1 - self.l1_ratio)).value(w)

    def prox(self, v: Array, step: Number) -> Array:
        lasso, ridge = L1(self.alpha * self.l1_ratio), L2(self.alpha * (1 - self.l1_ratio))
        return ridge.prox(lasso.prox(v, step), step)


def adaptive(w: Array, power: Number = 1.0, floor: Number = 1e-6) -> Array:
    """``1 / (|w_j| + floor)^power``: Zou's (2006) weights, as in ``L1(alpha * adaptive(coef))``."""
    return 1 / (jnp.abs(w) + floor) ** power
