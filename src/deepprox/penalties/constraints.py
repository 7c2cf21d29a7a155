"""Constraints: penalties that are 0 where weights may be, and infinite elsewhere."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.arrays import answers_numpy, namespace
from deepprox.checks import shown
from deepprox.penalties.contract import Number, Penalty, need
from deepprox.penalties.convex import Zero
from deepprox.struct import struct


@struct
class NonNegative(Penalty):
    """``0`` where every ``w_j >= 0``, infinite elsewhere: weights that only add."""

    convex: ClassVar[bool] = True
    wide: ClassVar[bool] = True
    by_formula: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return _unless((w >= 0).all(), w)

    def prox(self, v: Array, step: Number) -> Array:
        return namespace(v).maximum(v, 0.0)

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        none = namespace(w).zeros_like(w)
        return none, none


@struct
class Box(Penalty):
    """``0`` where every ``low <= w_j <= high``, infinite elsewhere; ``low <= 0 <= high``."""

    low: Number = -1.0
    high: Number = 1.0
    endless = ("low", "high")
    smooth: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    wide: ClassVar[bool] = True

    def check(self) -> None:
        """Zero weights are in the box."""
        need("low <= 0 <= high", self, (np.asarray(self.low) <= 0) & (np.asarray(self.high) >= 0))

    def value(self, w: Array) -> Array:
        return _unless(((w >= self.low) & (w <= self.high)).all(), w)

    def prox(self, v: Array, step: Number) -> Array:
        return jnp.clip(v, self.low, self.high)


@struct
class Mask(Penalty):
    """``penalty(w)`` where ``w_j = 0`` for every ``j`` not in ``mask``, infinite elsewhere: given zeros.

    ``mask`` has the shape of the weights, true (not 0) where a weight is free. Without a ``penalty`` the free
    ones cost nothing.
    """

    mask: Any
    penalty: Any = Zero()
    any_shape: ClassVar[bool] = False

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """As of the penalty of the others."""
        return bool(self.penalty.smooth)

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """As of the penalty of the others."""
        return bool(self.penalty.convex)

    @property
    def straight(self) -> bool:  # type: ignore[override]
        """As of the penalty of the others."""
        return bool(self.penalty.straight)

    @property
    def by_formula(self) -> bool:  # type: ignore[override]
        """As of the penalty of the others."""
        return bool(self.penalty.by_formula) and answers_numpy(self.penalty)

    def check(self) -> None:
        """A table of numbers, or of true and false, and a penalty that zeros leave as it is."""
        if not isinstance(self.penalty, Penalty):
            raise TypeError(f"Mask needs a penalty for the free weights, got {shown(self.penalty)}.")
        need("a penalty that is the same among fewer weights", self, self.penalty.restricts)
        self.penalty.check()
        rows = self.mask if isinstance(self.mask, Array | np.ndarray | list | tuple) else None
        try:
            table = np.asarray(rows)
        except ValueError:  # rows of different lengths
            table = np.asarray(None)
        need(
            "a mask of numbers, or of true and false, in the shape of the weights",
            self,
            table.dtype.kind in "biuf",
        )

    def _free(self, w: Array) -> Array:
        free = namespace(w).asarray(self.mask) != 0
        if free.shape != w.shape:
            raise ValueError(f"mask has shape {free.shape}, but the weights have shape {w.shape}.")
        return free

    def value(self, w: Array) -> Array:
        return _unless((self._free(w) | (w == 0)).all(), w) + self.penalty.value(w)

    def prox(self, v: Array, step: Number) -> Array:
        free, xp = self._free(v), namespace(v)
        return xp.where(free, self.penalty.prox(xp.where(free, v, 0.0), step), 0.0)

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        return self.penalty.derivatives(w)


def _unless(allowed: Array, w: Array) -> Array:
    """``0`` where allowed, infinite elsewhere."""
    value: Array = namespace(w).where(allowed, 0.0, math.inf).astype(w.dtype)
    return value
