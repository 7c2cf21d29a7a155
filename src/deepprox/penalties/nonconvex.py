"""Penalties that add up weights one by one and flatten out for large ones: none is convex."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.arrays import namespace
from deepprox.checks import is_number, shown
from deepprox.penalties.contract import Number, Penalty, need, soft_threshold
from deepprox.struct import static, struct

# Newton from the size of v needs 8 to 12 steps for every penalty here, strength and step.
ROOT_STEPS = 16


@struct
class L0(Penalty):
    """``alpha * sum [w_j != 0]``: the count of weights that are not zero."""

    alpha: Number = 1.0
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return (self.alpha * jnp.abs(jnp.sign(w))).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return jnp.where(jnp.abs(v) > jnp.sqrt(2 * step * self.alpha), v, 0.0)


@struct
class MCP(Penalty):
    """``sum alpha |w_j| - w_j^2 / (2 gamma)`` up to ``|w_j| = gamma alpha``, flat beyond.

    Zhang's (2010) minimax concave penalty: zeros as the lasso, large weights unshrunk.
    """

    alpha: Number = 1.0
    gamma: Number = 3.0
    endless = ("gamma",)
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True
    by_formula: ClassVar[bool] = True

    def check(self) -> None:
        """A turn that takes some way."""
        need("gamma > 0", self, np.asarray(self.gamma) > 0)

    def value(self, w: Array) -> Array:
        xp = namespace(w)
        size = xp.abs(w)
        rising = self.alpha * size - size**2 / (2 * self.gamma)
        return xp.where(size <= self.gamma * self.alpha, rising, self.gamma * self.alpha**2 / 2).sum()

    def prox(self, v: Array, step: Number) -> Array:
        xp = namespace(v)
        size = xp.abs(v)
        # Below step = gamma the problem is convex between the kinks: a firm threshold.
        slack = xp.where(step < self.gamma, 1 - step / self.gamma, 1.0)
        firm = xp.where(size > self.gamma * self.alpha, v, soft_threshold(v, step * self.alpha) / slack)
        # From there on it is concave between them: zero or nothing, at equal values.
        hard = xp.where(size > self.alpha * xp.sqrt(self.gamma * step), v, 0.0)
        return xp.where(step < self.gamma, firm, hard)

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        xp, size = namespace(w), namespace(w).abs(w)
        rising = size <= self.gamma * self.alpha
        slope = xp.where(rising, self.alpha * xp.sign(w) - w / self.gamma, 0.0)
        return slope, xp.where(rising, -1 / self.gamma * xp.ones_like(w), 0.0)


@struct
class SCAD(Penalty):
    """``sum phi(|w_j|)``, ``phi' = alpha`` up to ``alpha``, then falling to 0 at ``a alpha``.

    Fan and Li's (2001) smoothly clipped absolute deviation.
    """

    alpha: Number = 1.0
    a: Number = 3.7
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True
    by_formula: ClassVar[bool] = True

    def check(self) -> None:
        """Fan and Li's condition."""
        need("a > 2", self, np.asarray(self.a) > 2)

    def value(self, w: Array) -> Array:
        xp = namespace(w)
        # phi' falls by one alpha over (a - 1) alphas: what the bend takes from the lasso
        end = self.a * self.alpha
        size = xp.minimum(xp.abs(w), end)
        bend = xp.maximum(size - self.alpha, 0.0) ** 2 / (2 * (self.a - 1))
        return (self.alpha * size - bend).sum()

    def prox(self, v: Array, step: Number) -> Array:
        xp = namespace(v)
        size, end, fall = xp.abs(v), self.a * self.alpha, self.a - 1
        soft = soft_threshold(v, step * self.alpha)
        # Below step = a - 1 the problem is convex: soft, then steeper, then nothing.
        slack = xp.where(step < fall, 1 - step / fall, 1.0)
        steeper = soft_threshold(v, step * end / fall) / slack
        firm = xp.where(size > (1 + step) * self.alpha, xp.where(size > end, v, steeper), soft)
        # From there on nothing is left between soft and v, which swap where their values are equal.
        swap = xp.where(step < self.a + 1, (self.a + 1 + step) / 2, xp.sqrt((self.a + 1) * step))
        return xp.where(step < fall, firm, xp.where(size > swap * self.alpha, v, soft))

    def derivatives(self, w: Array) -> tuple[Array, Array]:
        xp, size = namespace(w), namespace(w).abs(w)
        left = (self.a * self.alpha - size) / (self.a - 1)
        slope = xp.sign(w) * xp.maximum(xp.minimum(left, self.alpha), 0.0)
        falls = (size > self.alpha) & (left > 0)
        return slope, xp.where(falls, -1 / (self.a - 1) * xp.ones_like(w), 0.0)


@struct
class CappedL1(Penalty):
    """``alpha * sum min(|w_j|, cap)``: the lasso up to ``cap``, flat beyond."""

    alpha: Number = 1.0
    cap: Number = 1.0
    endless = ("cap",)
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    def check(self) -> None:
        """Room below the cap."""
        need("cap > 0", self, np.asarray(self.cap) > 0)

    def value(self, w: Array) -> Array:
        return (self.alpha * jnp.minimum(jnp.abs(w), self.cap)).sum()

    def prox(self, v: Array, step: Number) -> Array:
        threshold = step * self.alpha
        # soft threshold and v swap where their values are equal: at soft > 0 or at soft = 0
        at_zero = jnp.sqrt(2 * threshold * self.cap)
        swap = jnp.where(threshold < 2 * self.cap, self.cap + threshold / 2, at_zero)
        return jnp.where(jnp.abs(v) > swap, v, soft_threshold(v, threshold))


@struct
class Bridge(Penalty):
    """``alpha * sum |w_j|^q``, ``0 < q < 1``: between the lasso and the count."""

    alpha: Number = 1.0
    q: float = static(default=0.5)
    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (is_number(self.q) and 0 < self.q < 1):
            raise ValueError(f"Bridge needs 0 < q < 1, got q={shown(self.q)}; L1 is q = 1 and L0 is q = 0.")
        object.__setattr__(self, "q", float(self.q))  # programs know no fractions

    def value(self, w: Array) -> Array:
        size = jnp.abs(w)
        # a power below 1 has no derivative at 0
        return jnp.where(size > 0, self.alpha * jnp.where(size > 0, size, 1.0) ** self.q, 0.0).sum()

    def prox(self, v: Array, step: Number) -> Array:
        size, q = jnp.abs(v), self.q
        # the weight that is worth as much as zero, and the v it belongs to
        least = (2 * (1 - q) * step * self.alpha) ** (1 / (2 - q))
        kept = size > least * (2 - q) / (2 * (1 - q))
        # x = w / v solves x + k q x^(q - 1) = 1; from the right, Newton falls on its largest root
        k = (jnp.where(kept, least / jnp.where(kept, size, 1.0), 0.0)) ** (2 - q) / (2 * (1 - q))
        x, steps = _bridge_start(k, q)
        for _ in range(steps):
            x = x - (x - 1 + k * q * x ** (q - 1)) / (1 - k * q * (1 - q) * x ** (q - 2))
        return jnp.where(kept, v * x, 0.0)


def _bridge_start(k: Array, q: float) -> tuple[Array, int]:
    """Where Newton starts and how many steps it needs; one cleans the rounding of a closed form."""
    if q == 1 / 2:  # Xu et al. (2012)
        return 2 / 3 * (1 + jnp.cos(2 / 3 * jnp.arccos(-(3**1.5) / 4 * k))), 1
    if q == 2 / 3:  # Cao et al. (2013), without its difference of cube roots
        cube_root = jnp.cbrt(1 / 16 + jnp.sqrt(1 / 256 - 8 / 729 * k**3))
        z = jnp.sqrt(2 * (cube_root + 2 / 9 * k / cube_root))
        return ((z + jnp.sqrt(2 / z - z**2)) / 2) ** 3, 1
    return jnp.ones_like(k), 8


class _Concave(Penalty):
    """``sum phi(|w_j|)``, ``phi(0) = 0``, ``phi`` rising and concave, ``phi'`` convex."""

    wide: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    @abstractmethod
    def _phi(self, size: Array) -> Array:
        """``phi``, entry by entry."""

    @abstractmethod
    def _slope(self, size: Array) -> Array:
        """``phi'``, entry by entry."""

    def value(self, w: Array) -> Array:
        return self._phi(jnp.abs(w)).sum()

    def prox(self, v: Array, step: Number) -> Array:
        size = jnp.abs(v)
        # Convex in t: from t = size down, Newton falls on its largest root, the only one that can
        # be a minimum. Without a root it falls to nothing, and zero wins.
        t = _root(lambda t: t - size + step * self._slope(t), jnp.zeros_like(size), size, size)
        # the value at t less the value at 0, as two positive numbers: nothing cancels
        return jnp.where(self._phi(t) < t * (size - t / 2) / step, jnp.sign(v) * t, 0.0)


@struct
class LogSum(_Concave):
    """``alpha * sum log(1 + |w_j| / eps)``: the penalty of reweighted l1 (Candes et al. 2008)."""

    alpha: Number = 1.0
    eps: Number = 0.1

    def check(self) -> None:
        """A logarithm that starts at 0."""
        need("eps > 0", self, np.asarray(self.eps) > 0)

    def _phi(self, size: Array) -> Array:
        return self.alpha * jnp.log1p(size / self.eps)

    def _slope(self, size: Array) -> Array:
        return self.alpha / (size + self.eps)


@struct
class HorseshoeLike(_Concave):
    """``alpha * sum log(L(0) / L(w_j))``, ``L(w) = log(1 + scale^2 / (|w| + floor)^2)``.

    The horseshoe-like prior (Bhadra, Datta, Polson, Willard 2019) has density proportional to
    ``log(1 + scale^2 / w^2)``, which has no end at 0. Here ``|w| + floor`` takes the place of
    ``|w|``: a kink at 0 instead of the pole, so that zeros are exact and the value at 0 is 0.
    """

    alpha: Number = 1.0
    scale: Number = 1.0
    floor: Number = 0.01

    def check(self) -> None:
        """A pole that is cut off."""
        need("scale > 0 and floor > 0", self, (np.asarray(self.scale) > 0) & (np.asarray(self.floor) > 0))

    def _phi(self, size: Array) -> Array:
        scale, size = self.scale / self.floor, size / self.floor
        start, odds = jnp.log1p(scale**2), (scale / (size + 1)) ** 2
        # L(0) - L(w) as one logarithm, which is exact for the small sizes where they are equal
        fall = jnp.log1p(scale**2 / (1 + odds) * (size / (size + 1)) * ((size + 2) / (size + 1)))
        near = fall < start / 2
        far_off = jnp.log(start) - jnp.log(jnp.log1p(odds))
        return self.alpha * jnp.where(near, -jnp.log1p(-jnp.where(near, fall, 0.0) / start), far_off)

    def _slope(self, size: Array) -> Array:
        size = size + self.floor
        odds = (self.scale / size) ** 2
        return 2 * self.alpha / size * odds / (1 + odds) / jnp.log1p(odds)


@struct
class StudentT(Penalty):
    """``alpha * sum log(1 + w_j^2 / (df scale^2))``: Student's t prior, small weights, free large ones.

    Smooth and not convex. With the likelihood on the scale of a sum, ``alpha = (df + 1) / 2``.
    """

    alpha: Number = 1.0
    df: Number = 1.0
    scale: Number = 1.0
    wide: ClassVar[bool] = True

    def check(self) -> None:
        """The parameters of a distribution."""
        need("df > 0 and scale > 0", self, (np.asarray(self.df) > 0) & (np.asarray(self.scale) > 0))

    def _phi(self, size: Array) -> Array:
        return self.alpha * jnp.log1p((size / self.scale) ** 2 / self.df)

    def value(self, w: Array) -> Array:
        return self._phi(w).sum()

    def prox(self, v: Array, step: Number) -> Array:
        size, width = jnp.abs(v), self.df * self.scale**2
        pull = 2 * step * self.alpha
        # (t - size) (width + t^2) + pull t = 0: a cubic that rises up to its first turning point and
        # from its second on, with at most one root in either part, and those are the minima
        excess = lambda t: (t - size) * (width + t**2) + pull * t  # noqa: E731
        half_gap = jnp.sqrt(jnp.maximum(size**2 - 3 * (width + pull), 0.0))
        first, second = (size - half_gap) / 3, (size + half_gap) / 3
        near = _root(excess, jnp.zeros_like(size), first, jnp.zeros_like(size))
        far = _root(excess, second, size, size)
        value = lambda t: self._phi(t) + (t - size) ** 2 / (2 * step)  # noqa: E731
        return jnp.sign(v) * jnp.where(value(near) < value(far), near, far)


def _root(f: Callable[[Array], Array], low: Array, high: Array, start: Array) -> Array:
    """The root of a rising ``f`` between ``low`` and ``high``: Newton steps, halves where one leaves."""

    def step(_: int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, t = carry
        value, slope = jax.jvp(f, (t,), (jnp.ones_like(t),))
        low, high = jnp.where(value < 0, t, low), jnp.where(value < 0, high, t)
        newton = t - value / slope
        # a slope of zero or an overflow makes a newton that is in no interval
        return low, high, jnp.where((newton >= low) & (newton <= high), newton, (low + high) / 2)

    return lax.fori_loop(0, ROOT_STEPS, step, (low, high, start))[2]
