"""Convex penalties that add up weights one by one: none, lasso, ridge, and both."""

from typing import ClassVar

import numpy as np
from jax import Array

from deepprox.arrays import namespace
from deepprox.penalties.contract import Number, Penalty, need, soft_threshold
from deepprox.struct import struct


@struct
class Zero(Penalty):
    """``0``: no penalty."""

    convex: ClassVar[bool] = True
    by_formula: ClassVar[bool] = True
    straight: ClassVar[bool] = True
    wide: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return namespace(w).zeros_like(w).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return v

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        none = namespace(w).zeros_like(w)
        return none, none


@struct
class L1(Penalty):
    """``alpha * sum |w_j|``: the lasso (a Laplace prior), sparse weights."""

    alpha: Number = 1.0
    convex: ClassVar[bool] = True
    by_formula: ClassVar[bool] = True
    straight: ClassVar[bool] = True
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return (self.alpha * namespace(w).abs(w)).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return soft_threshold(v, step * self.alpha)

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        xp = namespace(w)
        return self.alpha * xp.sign(w), xp.zeros_like(w)


@struct
class L2(Penalty):
    """``alpha / 2 * sum w_j^2``: ridge, small weights."""

    alpha: Number = 1.0
    convex: ClassVar[bool] = True
    wide: ClassVar[bool] = True
    by_formula: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return (self.alpha / 2 * w**2).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return v / (1 + step * self.alpha)

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        return self.alpha * w, self.alpha * namespace(w).ones_like(w)


@struct
class ElasticNet(Penalty):
    """``alpha * sum (l1_ratio |w_j| + (1 - l1_ratio) / 2 w_j^2)``: sparse and small."""

    alpha: Number = 1.0
    l1_ratio: Number = 0.5
    convex: ClassVar[bool] = True
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True
    by_formula: ClassVar[bool] = True

    def check(self) -> None:
        """A share lies between 0 and 1."""
        need("0 <= l1_ratio <= 1", self, abs(np.asarray(self.l1_ratio) - 0.5) <= 0.5)

    def value(self, w: Array) -> Array:
        lasso, ridge = self._parts()
        return lasso.value(w) + ridge.value(w)

    def prox(self, v: Array, step: Number) -> Array:
        lasso, ridge = self._parts()
        return ridge.prox(lasso.prox(v, step), step)

    def _parts(self) -> tuple[L1, L2]:
        return L1(self.alpha * self.l1_ratio), L2(self.alpha * (1 - self.l1_ratio))

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        lasso, ridge = self._parts()
        return lasso.derivatives(w)[0] + ridge.derivatives(w)[0], ridge.derivatives(w)[1]


def adaptive(w: Array, power: Number = 1.0, floor: Number = 1e-6) -> Array:
    """``1 / (|w_j| + floor)^power``: Zou's (2006) weights, as in ``L1(alpha * adaptive(coef))``."""
    return 1 / (namespace(w).abs(w) + floor) ** power
