"""Inputs on a common scale, and the weights of the first block on both scales."""

from typing import Any, NamedTuple

import numpy as np

from deepprox.spreading import Spread, same


class Scale(NamedTuple):
    """``(x - mean) / spread``, input by input; ``constant`` marks the inputs that never vary."""

    mean: np.ndarray
    spread: np.ndarray
    constant: np.ndarray

    def standardize(self, X: np.ndarray) -> np.ndarray:
        """Inputs on the solver's scale; a constant one is 0, not the rounding error of its mean."""
        if not self.mean.any() and (self.spread == 1).all() and not self.constant.any():
            return X
        scaled = np.subtract(X, self.mean, dtype=X.dtype)
        scaled /= self.spread.astype(X.dtype)
        scaled[:, self.constant] = 0.0
        return scaled

    def to_inputs(self, W: np.ndarray) -> np.ndarray:
        """First-block weights, bias in column 0, for the user's inputs."""
        slopes = W[:, 1:] / self.spread
        return np.column_stack([W[:, 0] - slopes @ self.mean, slopes])

    def from_inputs(self, W: np.ndarray) -> np.ndarray:
        """First-block weights, bias in column 0, for standardised inputs: the inverse."""
        return np.column_stack([W[:, 0] + W[:, 1:] @ self.mean, W[:, 1:] * self.spread])


def scale_of(X: np.ndarray, weight: np.ndarray, standardize: bool, allsum: Spread = same) -> Scale:
    """Weighted means and standard deviations; weights sum to one, a constant input has spread 1."""
    if not standardize:
        n_in = X.shape[1]
        return Scale(np.zeros(n_in), np.ones(n_in), np.zeros(n_in, bool))
    mean = allsum(weight @ X)
    variance = allsum(weight @ (X - mean) ** 2)
    # below the rounding error of the variance an input is constant, as scikit-learn's scaler has it
    rounding = allsum(len(X)) * np.finfo(X.dtype).eps
    constant = variance <= rounding * variance + (rounding * mean) ** 2
    return Scale(mean, np.where(constant, 1.0, np.sqrt(variance)), constant)


class Moments(NamedTuple):
    """Weighted means and sums of squares around them, merged batch by batch (Chan, Golub, LeVeque 1983)."""

    n: int
    weight: float
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def none(cls, width: int) -> "Moments":
        """Those of no rows."""
        return cls(0, 0.0, np.zeros(width), np.zeros(width))

    def added(self, X: np.ndarray, weight: np.ndarray) -> "Moments":
        """Those with more rows."""
        total = float(weight.sum())
        if not total:
            return self._replace(n=self.n + len(X))
        both, mean = self.weight + total, weight @ X / total
        apart = mean - self.mean
        squares = self.squares + weight @ (X - mean) ** 2 + apart**2 * self.weight * total / both
        return Moments(self.n + len(X), both, self.mean + apart * total / both, squares)

    def scale(self, standardize: bool, dtype: Any) -> Scale:
        """The scale on which inputs have mean 0 and variance 1; constant ones keep theirs."""
        width = len(self.mean)
        if not standardize:
            return Scale(np.zeros(width), np.ones(width), np.zeros(width, bool))
        variance, rounding = self.squares / self.weight, self.n * np.finfo(dtype).eps
        constant = variance <= rounding * variance + (rounding * self.mean) ** 2
        return Scale(self.mean, np.where(constant, 1.0, np.sqrt(variance)), constant)
