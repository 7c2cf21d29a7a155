"""The contract of a penalty, and what several penalties are made of."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from jax import Array

from deepprox.arrays import namespace
from deepprox.checks import shown

Number = float | Array


class Penalty(ABC):
    """``penalty(w)`` for an array of weights ``w``: one row a unit, one column an input."""

    smooth: ClassVar[bool] = True
    """Differentiable where no weight is zero, apart from points at which no minimiser sits."""

    any_shape: ClassVar[bool] = True
    """Fits weights of every shape; False for what was made for weights of one shape."""

    convex: ClassVar[bool] = False
    """Convex, so that a convex loss of one block has one minimum: a fit begins at zero and goes straight."""

    straight: ClassVar[bool] = False
    """Linear on either side of zero: it bends nowhere, and no second derivative is asked for."""

    restricts: ClassVar[bool] = True
    """Weights held at zero change nothing for the others: among these the prox is what it was."""

    wide: ClassVar[bool] = False
    """More columns change nothing where their weights are zero: they cost nothing and stay zero."""

    screens: ClassVar[bool] = False
    """Charges every column by itself and holds it at zero against a small pull: columns can be left out."""

    by_formula: ClassVar[bool] = False
    """Adds up weights one by one by formulas for NumPy as well, one of them for :meth:`derivatives`."""

    endless: ClassVar[tuple[str, ...]] = ()
    """Names of parameters that may be infinite: all others are finite numbers."""

    @abstractmethod
    def value(self, w: Array) -> Array:
        """The penalty, a number."""

    @abstractmethod
    def prox(self, v: Array, step: Number) -> Array:
        """``argmin_w penalty(w) + |w - v|^2 / (2 step)``, the global minimiser."""

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        """First and second derivatives in every weight, where it is not zero; of those ``by_formula``."""
        raise NotImplementedError(f"{type(self).__name__} has no formula for its derivatives.")

    def check(self) -> None:  # noqa: B027
        """Raise one sentence if a parameter is out of its range; asked once, before a fit."""


def soft_threshold(v: Array, threshold: Number) -> Array:
    """``sign(v) max(|v| - threshold, 0)``, with exact zeros."""
    xp = namespace(v)
    return xp.sign(v) * xp.maximum(xp.abs(v) - threshold, 0.0)


def need(rule: str, record: Penalty, holds: Any) -> None:
    """Say which rule a parameter breaks."""
    if not np.all(holds):
        raise ValueError(f"{type(record).__name__} needs {rule}, got {shown(record)}.")
