"""Penalties on the weights of a block: a value and its prox, nothing more.

The contract is :class:`Penalty`. The strength ``alpha`` is a leaf, so a path over it compiles
once: a number, or for a penalty that adds up weights an array that broadcasts to them (see
:func:`adaptive`). ``prox`` is the global minimiser for every step, non-convex penalties included.
LassoNet's hierarchy ties the first weights to a linear skip layer, which a block does not have: it
is not here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.struct import static, struct

Number = float | Array
Groups = str | tuple[int, ...]

# Newton from the size of v needs 8 to 12 steps for every penalty here, strength and step.
ROOT_STEPS = 16


class Penalty(ABC):
    """``penalty(w)`` for an array of weights ``w``: one row a unit, one column an input."""

    smooth: ClassVar[bool] = True
    """Differentiable where no weight is zero, apart from points at which no minimiser sits."""

    any_shape: ClassVar[bool] = True
    """Fits weights of every shape; False for what was made for weights of one shape."""

    convex: ClassVar[bool] = False
    """Convex, so that a convex loss of one block has one minimum: a fit begins at zero and goes straight."""

    @abstractmethod
    def value(self, w: Array) -> Array:
        """The penalty, a number."""

    @abstractmethod
    def prox(self, v: Array, step: Number) -> Array:
        """``argmin_w penalty(w) + |w - v|^2 / (2 step)``, the global minimiser."""

    def check(self) -> None:  # noqa: B027
        """Raise one sentence if a parameter is out of its range; asked once, before a fit."""


def adaptive(w: Array, power: Number = 1.0, floor: Number = 1e-6) -> Array:
    """``1 / (|w_j| + floor)^power``: Zou's (2006) weights, as in ``L1(alpha * adaptive(coef))``."""
    return 1 / (jnp.abs(w) + floor) ** power


def soft_threshold(v: Array, threshold: Number) -> Array:
    """``sign(v) max(|v| - threshold, 0)``, with exact zeros."""
    return jnp.sign(v) * jnp.maximum(jnp.abs(v) - threshold, 0.0)


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


def _need(rule: str, record: Penalty, holds: Any) -> None:
    """Say which rule a parameter breaks."""
    if not np.all(holds):
        raise ValueError(f"{type(record).__name__} needs {rule}, got {record!r}.")


def _unless(allowed: Array, dtype: Any) -> Array:
    """``0`` where allowed, infinite elsewhere."""
    return jnp.where(allowed, 0.0, jnp.inf).astype(dtype)


@struct
class Zero(Penalty):
    """``0``: no penalty."""

    convex: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return jnp.zeros((), w.dtype)

    def prox(self, v: Array, step: Number) -> Array:
        return v


@struct
class L1(Penalty):
    """``alpha * sum |w_j|``: the lasso (a Laplace prior), sparse weights."""

    alpha: Number = 1.0
    convex: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return (self.alpha * jnp.abs(w)).sum()

    def prox(self, v: Array, step: Number) -> Array:
        return soft_threshold(v, step * self.alpha)


@struct
class L2(Penalty):
    """``alpha / 2 * sum w_j^2``: ridge, small weights."""

    alpha: Number = 1.0
    convex: ClassVar[bool] = True

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

    def check(self) -> None:
        """A share lies between 0 and 1."""
        _need("0 <= l1_ratio <= 1", self, abs(np.asarray(self.l1_ratio) - 0.5) <= 0.5)

    def value(self, w: Array) -> Array:
        return L1(self.alpha * self.l1_ratio).value(w) + L2(self.alpha * (1 - self.l1_ratio)).value(w)

    def prox(self, v: Array, step: Number) -> Array:
        lasso, ridge = L1(self.alpha * self.l1_ratio), L2(self.alpha * (1 - self.l1_ratio))
        return ridge.prox(lasso.prox(v, step), step)


@struct
class L0(Penalty):
    """``alpha * sum [w_j != 0]``: the count of weights that are not zero."""

    alpha: Number = 1.0

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

    def check(self) -> None:
        """A turn that takes some way."""
        _need("gamma > 0", self, np.asarray(self.gamma) > 0)

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


@struct
class SCAD(Penalty):
    """``sum phi(|w_j|)``, ``phi' = alpha`` up to ``alpha``, then falling to 0 at ``a alpha``.

    Fan and Li's (2001) smoothly clipped absolute deviation.
    """

    alpha: Number = 1.0
    a: Number = 3.7

    def check(self) -> None:
        """Fan and Li's condition."""
        _need("a > 2", self, np.asarray(self.a) > 2)

    def value(self, w: Array) -> Array:
        # phi' falls by one alpha over (a - 1) alphas: what the bend takes from the lasso
        end = self.a * self.alpha
        size = jnp.minimum(jnp.abs(w), end)
        bend = jnp.maximum(size - self.alpha, 0.0) ** 2 / (2 * (self.a - 1))
        return (self.alpha * size - bend).sum()

    def prox(self, v: Array, step: Number) -> Array:
        size, end, fall = jnp.abs(v), self.a * self.alpha, self.a - 1
        soft = soft_threshold(v, step * self.alpha)
        # Below step = a - 1 the problem is convex: soft, then steeper, then nothing.
        slack = jnp.where(step < fall, 1 - step / fall, 1.0)
        steeper = soft_threshold(v, step * end / fall) / slack
        firm = jnp.where(size > (1 + step) * self.alpha, jnp.where(size > end, v, steeper), soft)
        # From there on nothing is left between soft and v, which swap where their values are equal.
        swap = jnp.where(step < self.a + 1, (self.a + 1 + step) / 2, jnp.sqrt((self.a + 1) * step))
        return jnp.where(step < fall, firm, jnp.where(size > swap * self.alpha, v, soft))


@struct
class CappedL1(Penalty):
    """``alpha * sum min(|w_j|, cap)``: the lasso up to ``cap``, flat beyond."""

    alpha: Number = 1.0
    cap: Number = 1.0

    def check(self) -> None:
        """Room below the cap."""
        _need("cap > 0", self, np.asarray(self.cap) > 0)

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

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise ValueError(f"Bridge needs 0 < q < 1, got q={self.q!r}; L1 is q = 1 and L0 is q = 0.")

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
        _need("eps > 0", self, np.asarray(self.eps) > 0)

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
        _need("scale > 0 and floor > 0", self, (np.asarray(self.scale) > 0) & (np.asarray(self.floor) > 0))

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

    def check(self) -> None:
        """The parameters of a distribution."""
        _need("df > 0 and scale > 0", self, (np.asarray(self.df) > 0) & (np.asarray(self.scale) > 0))

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


class _Grouped(Penalty):
    """A penalty on groups ``by`` "input", "unit", or given for each column by a number from 0 on."""

    by: Groups

    def check(self) -> None:
        """Groups that cover the columns."""
        if isinstance(self.by, tuple):
            whole = all(isinstance(number, Integral) for number in self.by)
            known = whole and {*self.by} == {*range(len({*self.by}))}
        else:
            known = self.by in ("input", "unit")
        if not known:
            raise ValueError(
                f"by must be 'input', 'unit', or a tuple with the group of each column, numbered from 0 "
                f"without a gap, got {self.by!r}."
            )

    @property
    def any_shape(self) -> bool:  # type: ignore[override]
        """Given groups belong to weights with as many columns."""
        return isinstance(self.by, str)


@struct
class GroupL2(_Grouped):
    """``alpha * sum_g |w_g|_2``: whole inputs (columns) or whole units (rows) leave together.

    ``by`` is "input", "unit", or a tuple with the number of each column's group, as for the
    columns that code one factor.
    """

    alpha: Number = 1.0
    by: Groups = static(default="input")
    convex: ClassVar[bool] = True

    def _norms(self, w: Array) -> Array:
        """The sizes of the groups, one row or one column."""
        self.check()
        if isinstance(self.by, str):
            squares = (w**2).sum({"input": -2, "unit": -1}[self.by], keepdims=True)
        elif len(self.by) != w.shape[-1]:
            raise ValueError(
                f"by has {len(self.by)} group numbers, but the weights have {w.shape[-1]} columns."
            )
        else:
            columns = (w**2).sum(-2)
            squares = (
                jnp.zeros_like(columns, shape=1 + max(self.by)).at[jnp.array(self.by)].add(columns)[None]
            )
        # the square root has no derivative at 0, where the whole group is 0 anyway
        return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)

    def value(self, w: Array) -> Array:
        return (self.alpha * self._norms(w)).sum()

    def prox(self, v: Array, step: Number) -> Array:
        norms, threshold = self._norms(v), step * self.alpha
        # the norm is compared, not the factor: a group too small to square is thresholded too
        factor = jnp.where(norms > threshold, 1 - threshold / jnp.where(norms > 0, norms, 1.0), 0.0)
        return v * (factor if isinstance(self.by, str) else factor[:, jnp.array(self.by)])


@struct
class SparseGroup(_Grouped):
    """``alpha * (l1_ratio sum |w_j| + (1 - l1_ratio) sum_g |w_g|_2)``: groups leave, and weights within."""

    alpha: Number = 1.0
    l1_ratio: Number = 0.5
    by: Groups = static(default="input")
    convex: ClassVar[bool] = True

    def check(self) -> None:
        """Groups that cover the columns, and a share between 0 and 1."""
        super().check()
        _need("0 <= l1_ratio <= 1", self, abs(np.asarray(self.l1_ratio) - 0.5) <= 0.5)

    def _parts(self) -> tuple[L1, GroupL2]:
        return L1(self.alpha * self.l1_ratio), GroupL2(self.alpha * (1 - self.l1_ratio), self.by)

    def value(self, w: Array) -> Array:
        lasso, group = self._parts()
        return lasso.value(w) + group.value(w)

    def prox(self, v: Array, step: Number) -> Array:
        lasso, group = self._parts()
        return group.prox(lasso.prox(v, step), step)


@struct
class MaxNorm(Penalty):
    """``alpha * sum_u max_j |w_uj|``: the largest weights of a unit are level, or the unit leaves."""

    alpha: Number = 1.0
    smooth: ClassVar[bool] = False
    convex: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return (self.alpha * jnp.abs(w).max(-1, keepdims=True)).sum()

    def prox(self, v: Array, step: Number) -> Array:
        # Moreau: v less its projection on an l1 ball cuts v at the level at which what is cut off
        # has the radius of the ball, the highest level that the largest k entries ask for
        sums = jnp.cumsum(-jnp.sort(-jnp.abs(v), axis=-1), axis=-1)
        levels = (sums - step * self.alpha) / jnp.arange(1, 1 + v.shape[-1], dtype=v.dtype)
        level = jnp.maximum(levels.max(-1, keepdims=True), 0.0)
        return jnp.clip(v, -level, level)


@struct
class Nuclear(Penalty):
    """``alpha * sum of the singular values of w``: weights of low rank."""

    alpha: Number = 1.0
    smooth: ClassVar[bool] = False
    convex: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return self.alpha * jnp.linalg.svd(w, compute_uv=False).sum()

    def prox(self, v: Array, step: Number) -> Array:
        left, sizes, right = jnp.linalg.svd(v, full_matrices=False)
        threshold = step * self.alpha
        # what is taken away, not what is left: nothing is exactly nothing
        rest = v - (left * jnp.minimum(sizes, threshold)) @ right
        return jnp.where(sizes.max() > threshold, rest, 0.0)


@struct
class NonNegative(Penalty):
    """``0`` where every ``w_j >= 0``, infinite elsewhere: weights that only add."""

    convex: ClassVar[bool] = True

    def value(self, w: Array) -> Array:
        return _unless((w >= 0).all(), w.dtype)

    def prox(self, v: Array, step: Number) -> Array:
        return jnp.maximum(v, 0.0)


@struct
class Box(Penalty):
    """``0`` where every ``low <= w_j <= high``, infinite elsewhere; ``low <= 0 <= high``."""

    low: Number = -1.0
    high: Number = 1.0
    smooth: ClassVar[bool] = False
    convex: ClassVar[bool] = True

    def check(self) -> None:
        """Zero weights are in the box."""
        _need("low <= 0 <= high", self, (np.asarray(self.low) <= 0) & (np.asarray(self.high) >= 0))

    def value(self, w: Array) -> Array:
        return _unless(((w >= self.low) & (w <= self.high)).all(), w.dtype)

    def prox(self, v: Array, step: Number) -> Array:
        return jnp.clip(v, self.low, self.high)


@struct
class Mask(Penalty):
    """``0`` where ``w_j = 0`` for every ``j`` not in ``mask``, infinite elsewhere: given zeros.

    ``mask`` has the shape of the weights, true (not 0) where a weight is free.
    """

    mask: Any
    any_shape: ClassVar[bool] = False
    convex: ClassVar[bool] = True

    def _free(self, w: Array) -> Array:
        free = jnp.asarray(self.mask) != 0
        if free.shape != w.shape:
            raise ValueError(f"mask has shape {free.shape}, but the weights have shape {w.shape}.")
        return free

    def value(self, w: Array) -> Array:
        return _unless((self._free(w) | (w == 0)).all(), w.dtype)

    def prox(self, v: Array, step: Number) -> Array:
        return jnp.where(self._free(v), v, 0.0)
