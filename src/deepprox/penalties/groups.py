"""Penalties that see weights together: groups, rows and whole matrices of them, all convex."""

from numbers import Integral
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.checks import shown
from deepprox.penalties.contract import Number, Penalty, need
from deepprox.penalties.convex import L1
from deepprox.struct import static, struct

Groups = str | tuple[int, ...]


class _Grouped(Penalty):
    """A penalty on groups ``by`` "input", "unit", or given for each column by a number from 0 on."""

    by: Groups

    def check(self) -> None:
        """Groups that cover the columns."""
        if isinstance(self.by, tuple):
            whole = all(isinstance(number, Integral) for number in self.by)
            known = whole and {*self.by} == {*range(len({*self.by}))}
        else:
            known = isinstance(self.by, str) and self.by in ("input", "unit")
        if not known:
            raise ValueError(
                f"by must be 'input', 'unit', or a tuple with the group of each column, numbered from 0 "
                f"without a gap, got {shown(self.by)}."
            )

    @property
    def any_shape(self) -> bool:  # type: ignore[override]
        """Given groups belong to weights with as many columns."""
        return isinstance(self.by, str)

    @property
    def screens(self) -> bool:  # type: ignore[override]
        """Whole inputs leave, each for itself."""
        return self.by == "input"


@struct
class GroupL2(_Grouped):
    """``alpha * sum_g |w_g|_2``: whole inputs (columns) or whole units (rows) leave together.

    ``by`` is "input", "unit", or a tuple with the number of each column's group, as for the
    columns that code one factor.
    """

    alpha: Number = 1.0
    by: Groups = static(default="input")
    convex: ClassVar[bool] = True
    wide: ClassVar[bool] = True

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
    wide: ClassVar[bool] = True

    def check(self) -> None:
        """Groups that cover the columns, and a share between 0 and 1."""
        super().check()
        need("0 <= l1_ratio <= 1", self, abs(np.asarray(self.l1_ratio) - 0.5) <= 0.5)

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
    wide: ClassVar[bool] = True

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
    restricts: ClassVar[bool] = False

    def value(self, w: Array) -> Array:
        return self.alpha * jnp.linalg.svd(w, compute_uv=False).sum()

    def prox(self, v: Array, step: Number) -> Array:
        left, sizes, right = jnp.linalg.svd(v, full_matrices=False)
        threshold = step * self.alpha
        # what is taken away, not what is left: nothing is exactly nothing
        rest = v - (left * jnp.minimum(sizes, threshold)) @ right
        return jnp.where(sizes.max() > threshold, rest, 0.0)
