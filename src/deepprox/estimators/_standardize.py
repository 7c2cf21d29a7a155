"""Inputs and responses on a common scale, and the first and last weights on both scales."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from deepprox.blocks import Block
from deepprox.design import by_columns
from deepprox.losses import Loss
from deepprox.losses.real import Real
from deepprox.spreading import Spread, same
from deepprox.struct import replace

NORMAL = 1.4826  # standard deviations of a normal response in its median absolute deviation
HALVINGS = 80  # of the range in which a median is looked for
ROUNDING = 0.01  # half width of a rounded kink, as a share of a margin or of the response's deviation


class Scale(NamedTuple):
    """``(x - mean) / spread``, input by input; ``constant`` marks the inputs that never vary."""

    mean: np.ndarray
    spread: np.ndarray
    constant: np.ndarray

    @property
    def trivial(self) -> bool:
        """Whether inputs are as they were given."""
        return not self.mean.any() and bool((self.spread == 1).all())

    def standardize(self, X: np.ndarray) -> np.ndarray:
        """Inputs on the solver's scale; a constant one is 0, not the rounding error of its mean."""
        if self.trivial and not self.constant.any():
            return X
        # in units of the spread, where no difference of two numbers overflows
        unit = power_of_two(self.spread, X.dtype)
        scaled: np.ndarray = X * (1 / unit).astype(X.dtype)
        scaled -= (self.mean / unit).astype(X.dtype)
        scaled /= (self.spread / unit).astype(X.dtype)
        scaled[:, self.constant] = 0.0
        return scaled

    def after(self, first: "Scale") -> "Scale":
        """Both scales as one, this one of inputs on the other."""
        mean, spread = first.mean + first.spread * self.mean, first.spread * self.spread
        return Scale(mean, spread, first.constant | self.constant)

    def to_inputs(self, W: np.ndarray) -> np.ndarray:
        """First-block weights, bias in column 0, for the user's inputs."""
        if self.trivial:
            return W
        slopes = Block.slopes(W) / self.spread
        return np.column_stack([Block.biases(W) - slopes @ self.mean, slopes])

    def from_inputs(self, W: np.ndarray) -> np.ndarray:
        """First-block weights, bias in column 0, for standardised inputs: the inverse."""
        if self.trivial:
            return W
        slopes = Block.slopes(W)
        return np.column_stack([Block.biases(W) + slopes @ self.mean, slopes * self.spread])


def power_of_two(size: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """Powers of two of about these sizes: to divide by one rounds nothing, and is finite both ways."""
    numbers = np.finfo(dtype)
    exponent = np.frexp(np.maximum(size, numbers.tiny))[1]
    return np.asarray(np.ldexp(1.0, np.minimum(exponent, numbers.maxexp - 2)))


def largest_of(X: np.ndarray) -> np.ndarray:
    """``max_i |x_ij|`` of every input, 0 without rows."""
    return np.asarray(np.maximum(X.max(0, initial=0.0), -X.min(0, initial=0.0)))


def of_moments(
    mean: np.ndarray,
    variance: np.ndarray,
    unit: np.ndarray,
    rounding: float,
    centre: bool,
    what: str = "Input",
) -> Scale:
    """The scale of inputs with these means and variances in units ``unit``.

    Below the rounding error of the variance an input is constant, as scikit-learn's scaler has it. Its spread
    is 1. Without a ``centre`` inputs keep their means, and one that is always 1 is the user's intercept.
    """
    spread = np.sqrt(variance) * unit
    constant = (variance <= rounding * variance + (rounding * mean) ** 2) | (spread == 0)
    least = np.finfo(spread.dtype).tiny
    if (~constant & (spread < least)).any():
        number = int(np.argmax(~constant & (spread < least)))
        raise ValueError(
            f"{what} {number} (from 0) has a standard deviation below {least:.1e}, and its weights would be "
            f"no numbers: take it in a smaller unit."
        )
    spread = np.where(constant, 1.0, spread)
    if centre:
        return Scale(mean * unit, spread, constant)
    return Scale(np.zeros_like(mean), spread, constant & (mean == 0))


def _sparse_moments(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, variances and units of the columns of a sparse matrix, whose zeros count with their weight."""
    A = by_columns(X)
    (n, n_in), count = A.shape, np.diff(A.indptr)
    column, size = np.repeat(np.arange(n_in), count), np.zeros(n_in)
    np.maximum.at(size, column, np.abs(A.data))
    unit, of_rows = power_of_two(size), weight[A.indices]
    scaled = A.data / unit[column]
    mean = np.bincount(column, of_rows * scaled, n_in)
    rest = np.where(count < n, np.maximum(weight.sum() - np.bincount(column, of_rows, n_in), 0.0), 0.0)
    variance = np.bincount(column, of_rows * (scaled - mean[column]) ** 2, n_in)
    return mean, variance + rest * mean**2, unit


def scale_of(
    X: Any,
    weight: np.ndarray,
    standardize: bool,
    allsum: Spread = same,
    centre: bool = True,
    what: str = "Input",
) -> Scale:
    """Weighted means and standard deviations; weights sum to one, a constant input has spread 1.

    Squares of large numbers overflow, of small ones underflow: every input is taken in units of its largest.
    Without a bias that makes up for it there is no ``centre``. A sparse matrix stays what it is.
    """
    if not standardize:
        n_in = X.shape[1]
        return Scale(np.zeros(n_in), np.ones(n_in), np.zeros(n_in, bool))
    if scipy.sparse.issparse(X):
        return of_moments(*_sparse_moments(X, weight), X.shape[0] * np.finfo(X.dtype).eps, centre, what)
    unit = power_of_two(allsum.gather(largest_of(X)).max(0))
    scaled = X / unit
    mean = allsum(weight @ scaled)
    scaled -= mean
    variance = allsum(weight @ np.square(scaled, out=scaled))
    return of_moments(mean, variance, unit, allsum(len(X)) * np.finfo(X.dtype).eps, centre, what)


def response_scale(
    Y: np.ndarray, weight: np.ndarray, standardize: bool, allsum: Spread = same, centre: bool = True
) -> Scale | None:
    """Weighted means and standard deviations of the responses, if these are to be taken out."""
    return scale_of(Y, weight, True, allsum, centre, "Response") if standardize else None


def measured(
    loss: Loss,
    Y: np.ndarray,
    weight: np.ndarray,
    scale: Scale | None,
    allsum: Spread = same,
    centre: bool = True,
) -> Loss:
    """The loss in the units of the response, of this ``scale``, where it has units and none were given.

    Weights sum to one. Without a free bias of the outputs there is no ``centre``. Where outliers are
    expected, medians tell the level and the unit. A kink whose width nobody gave is rounded within a share of
    the deviation.
    """
    if scale is not None and isinstance(loss, Real):
        level, spread = scale.mean, scale.spread
        if loss.robust:
            level = median(Y, weight, allsum) if centre else level
            apart = NORMAL * median(np.abs(Y - level), weight, allsum)
            spread = np.where(apart > 0, apart, spread)
        facts = {"centre": level, "spread": spread}
        given = {name: one.astype(Y.dtype) for name, one in facts.items() if getattr(loss, name) is None}
        loss = replace(loss, **given)
    if not loss.smooth and getattr(loss, "width", 0.0) is None:
        scaled = loss.scaled(Y) if isinstance(loss, Real) else Y
        apart = np.ones(1) if loss.binary else scale_of(scaled, weight, True, allsum).spread
        width = ROUNDING * (apart[0] if apart.size == 1 else apart)
        loss = replace(loss, width=np.asarray(width, Y.dtype))
    return loss


def median(Y: np.ndarray, weight: np.ndarray, allsum: Spread) -> np.ndarray:
    """The least number of every column that half of the weight does not exceed, by halving its range."""
    ends = np.stack([-Y.min(0, initial=np.inf), Y.max(0, initial=-np.inf)])
    low, high = allsum.gather(ends).max(0) * [[-1], [1]]
    for _ in range(HALVINGS):
        middle = low / 2 + high / 2
        enough = allsum(weight @ (middle >= Y)) >= 0.5
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)


def to_responses(loss: Loss, W: np.ndarray) -> np.ndarray:
    """Last-block weights in the units of the response."""
    out = np.array(W, float)
    if isinstance(loss, Real):
        out *= 1.0 if loss.spread is None else np.reshape(loss.spread, (-1, 1))
        Block.biases(out)[:] += 0.0 if loss.centre is None else np.ravel(loss.centre)
    return out


def from_responses(loss: Loss, W: np.ndarray) -> np.ndarray:
    """Last-block weights for a response without its units: the inverse."""
    out = np.array(W, float)
    if isinstance(loss, Real):
        Block.biases(out)[:] -= 0.0 if loss.centre is None else np.ravel(loss.centre)
        out /= 1.0 if loss.spread is None else np.reshape(loss.spread, (-1, 1))
    return out


class Moments(NamedTuple):
    """Weighted means and sums of squares around them, merged batch by batch (Chan, Golub, LeVeque 1983).

    The squares are in units ``unit`` of their inputs, for the reason that :func:`scale_of` gives.
    """

    n: int
    weight: float
    mean: np.ndarray
    squares: np.ndarray
    unit: Any = 1.0

    @classmethod
    def none(cls, width: int) -> "Moments":
        """Those of no rows."""
        return cls(0, 0.0, np.zeros(width), np.zeros(width), power_of_two(np.zeros(width)))

    @classmethod
    def of(cls, n: int, scale: Scale, mean: Any = 0.0, variance: Any = 1.0) -> "Moments":
        """Those of ``n`` rows of weight 1 with this mean and variance on a scale."""
        mean = scale.mean + scale.spread * mean
        unit = power_of_two(np.maximum(np.abs(mean), scale.spread))
        squares = np.where(scale.constant, 0.0, n * variance * (scale.spread / unit) ** 2)
        return cls(n, float(n), mean, squares, unit)

    def added(self, X: np.ndarray, weight: np.ndarray) -> "Moments":
        """Those with more rows."""
        total = float(weight.sum())
        if not total:
            return self._replace(n=self.n + len(X))
        unit = np.maximum(self.unit, power_of_two(largest_of(X)))
        before, squares = self.mean / unit, self.squares * (self.unit / unit) ** 2
        scaled = X / unit
        both, mean = self.weight + total, weight @ scaled / total
        scaled -= mean
        apart = mean - before
        squares = squares + weight @ np.square(scaled, out=scaled) + apart**2 * self.weight * total / both
        return Moments(self.n + len(X), both, (before + apart * total / both) * unit, squares, unit)

    def scale(self, standardize: bool, dtype: Any, centre: bool = True) -> Scale:
        """The scale with variances of 1 and, with a ``centre``, means of 0; constant inputs keep theirs."""
        width = len(self.mean)
        if not standardize:
            return Scale(np.zeros(width), np.ones(width), np.zeros(width, bool))
        mean, variance = self.mean / self.unit, self.squares / self.weight
        return of_moments(mean, variance, self.unit, self.n * np.finfo(dtype).eps, centre)
