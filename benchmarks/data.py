"""The data sets of the measurements, split and scaled as the design fixes them."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits, load_iris


class Split(NamedTuple):
    """Training and test parts."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def digits() -> Split:
    """1797 digits, X/16 minus column means, 1257 to train."""
    X, y = load_digits(return_X_y=True)
    X = X / 16 - (X / 16).mean(0)
    rows = np.random.default_rng(1).permutation(1797)
    return Split(X[rows[:1257]], y[rows[:1257]], X[rows[1257:]], y[rows[1257:]])


def iris() -> Split:
    """150 flowers, standardised over all rows, 105 to train."""
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    rows = np.random.default_rng(1).permutation(150)
    return Split(X[rows[:105]], y[rows[:105]], X[rows[105:]], y[rows[105:]])
