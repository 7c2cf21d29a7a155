"""Penalties on the weights of a block: a value and its prox, nothing more.

The contract is :class:`Penalty`. The strength ``alpha`` is a leaf, so a path over it compiles
once. ``prox`` is the global minimiser for every step, non-convex penalties included.
"""

from abc import ABC, abstractmethod

import jax.numpy as jnp
from jax import Array

from deepprox.struct import static, struct

Number = float | Array


class Penalty(ABC):
    """``penalty(w)`` for an array of weights ``w``: one row a unit, one column an input."""

    @abstractmethod
    def value(self, w: Array) -> Array:
        """The penalty, a number."""

    @abstractmethod
    def prox(self, v: Array, step: Number) -> Array:
        """``argmin_w penalty(w) + |w - v|^2 / (2 step)``, the global minimiser."""


def soft_threshold(v: Array, threshold: Number) -> Array:
    """``sign(v) max(|v| - threshold, 0)``, with exact zeros."""
    return jnp.sign(v) * jnp.maximum(jnp.abs(v) - threshold, 0.0)


@struct
class Zero(Penalty):
    """``0``: no penalty."""

    def value(self, w: Array) -> Array:
        return jnp.zeros((), w.dtype)

    def prox(self, v: Array, step: Number) -> Array:
        return v


@struct
class L1(Penalty):
    """``alpha * sum |w_j|``: the lasso, sparse weights."""

    alpha: Number = 1.0

    def value(self, w: Array) -> Array:
        return self.alpha * jnp.abs(w).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return soft_threshold(v, step * self.alpha)


@struct
class L2(Penalty):
    """``alpha / 2 * sum w_j^2``: ridge, small weights."""

    alpha: Number = 1.0

    def value(self, w: Array) -> Array:
        return self.alpha / 2 * (w**2).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return v / (1 + step * self.alpha)


@struct
class ElasticNet(Penalty):
    """``alpha * sum (l1_ratio |w_j| + (1 - l1_ratio) / 2 w_j^2)``: sparse and small."""

    alpha: Number = 1.0
    l1_ratio: Number = 0.5

    def value(self, w: Array) -> Array:
        return L1(self.alpha * self.l1_ratio).value(w) + L2(self.alpha * (1 - self.l1_ratio)).value(w)

    def prox(self, v: Array, step: Number) -> Array:
        lasso, ridge = L1(self.alpha * self.l1_ratio), L2(self.alpha * (1 - self.l1_ratio))
        return ridge.prox(lasso.prox(v, step), step)


@struct
class GroupL2(Penalty):
    """``alpha * sum_g |w_g|_2``: whole inputs (columns) or whole units (rows) leave together."""

    alpha: Number = 1.0
    by: str = static(default="input")

    def _norms(self, w: Array) -> Array:
        squares = (w**2).sum({"input": -2, "unit": -1}[self.by], keepdims=True)
        # the square root has no derivative at 0, where the whole group is 0 anyway
        return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)

    def value(self, w: Array) -> Array:
        return self.alpha * self._norms(w).sum()

    def prox(self, v: Array, step: Number) -> Array:
        norms, threshold = self._norms(v), step * self.alpha
        # the norm is compared, not the factor: a group too small to square is thresholded too
        return jnp.where(norms > threshold, v * (1 - threshold / jnp.where(norms > 0, norms, 1.0)), 0.0)


@struct
class MCP(Penalty):
    """``sum alpha |w_j| - w_j^2 / (2 gamma)`` up to ``|w_j| = gamma alpha``, flat beyond.

    Zhang's (2010) minimax concave penalty: zeros as the lasso, large weights unshrunk.
    """

    alpha: Number = 1.0
    gamma: Number = 3.0

    def value(self, w: Array) -> Array:
        size = jnp.abs(w)
        rising = self.alpha * size - size**2 / (2 * self.gamma)
        return jnp.where(size <= self.gamma * self.alpha, rising, self.gamma * self.alpha**2 / 2).sum()

    def prox(self, v: Array, step: Number) -> Array:
        size = jnp.abs(v)
        # Below step = gamma the problem is convex between the kinks: a firm threshold.
        slack = jnp.where(step < self.gamma, 1 - step / self.gamma, 1.0)
        firm = jnp.where(size > self.gamma * self.alpha, v, soft_threshold(v, step * self.alpha) / slack)
        # From there on it is concave between them: zero or nothing, at equal values.
        hard = jnp.where(size > self.alpha * jnp.sqrt(self.gamma * step), v, 0.0)
        return jnp.where(step < self.gamma, firm, hard)
