"""Penalties on what the units do: the paper's ``phi(Z)``.

The contract is :class:`Activity`. It is charged for the pre-activations of a hidden block, or for what the
next block reads of it, over the observations. ``curvature`` majorises it by a weighted square, which is how
the Z-step and the Newton steps meet it.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from deepprox.struct import static, struct

Number = float | Array


class Activity(ABC):
    """``activity(A)``: one row of ``A`` an observation of a given weight, one column a unit.

    ``on`` says what ``A`` is: "reads", what the next block reads, or "z", the pre-activations.
    """

    on: str
    additive: ClassVar[bool] = False  # whether it is a sum over observations, each charged on its own

    @abstractmethod
    def value(self, A: Array, weight: Array) -> Array:
        """The charge, a number."""

    @abstractmethod
    def curvature(self, A: Array, weight: Array) -> Array:
        """``k`` with ``value(B) <= value(A) + sum_i weight_i k_iu (b_iu^2 - a_iu^2) / 2`` for every ``B``."""


@struct
class ActivityL1(Activity):
    """``alpha * sum_i weight_i sum_u |a_iu|``: few units speak for each observation."""

    additive = True
    alpha: Number = 1.0
    on: str = static(default="reads")

    def value(self, A: Array, weight: Array) -> Array:
        return self.alpha * (weight[:, None] * jnp.abs(A)).sum()

    def curvature(self, A: Array, weight: Array) -> Array:
        return self.alpha / jnp.maximum(jnp.abs(A), jnp.finfo(A.dtype).eps)


@struct
class ActivityGroup(Activity):
    """``alpha * sum_u sqrt(sum_i weight_i a_iu^2)``: whole units fall silent.

    The deterministic counterpart of drop-out: the number of units that speak is selected.
    """

    alpha: Number = 1.0
    on: str = static(default="reads")

    def _norms(self, A: Array, weight: Array) -> Array:
        squares = (weight[:, None] * A**2).sum(0)
        # the square root has no derivative at 0, where the whole unit is silent anyway
        return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)

    def value(self, A: Array, weight: Array) -> Array:
        return self.alpha * self._norms(A, weight).sum()

    def curvature(self, A: Array, weight: Array) -> Array:
        norms = jnp.maximum(self._norms(A, weight), jnp.finfo(A.dtype).eps)
        return jnp.broadcast_to(self.alpha / norms, A.shape)
