"""Observations in a form that does not depend on how they were written down."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import _check_sample_weight

from deepprox.estimators._given import numbers_of

DENSE_LIMIT = 2 * 2**30  # bytes that a sparse input may take once it is dense
SORT_LIMIT = 10**7  # numbers in a data set up to which its rows are sorted
FEW_NUMBERS = 10**6  # the same where the fit itself takes no longer


def dense(X: Any) -> np.ndarray:
    """The same numbers as one dense array."""
    if not scipy.sparse.issparse(X):
        return np.asarray(X)
    size = X.shape[0] * X.shape[1] * X.dtype.itemsize
    if size > DENSE_LIMIT:
        raise ValueError(
            f"A sparse X of shape {X.shape} would take {size / 2**30:.1f} GiB once dense, and the solver "
            f"needs it dense: at most {DENSE_LIMIT / 2**30:.0f} GiB, so select columns first."
        )
    return np.asarray(X.toarray())


def counted(sample_weight: Any, X: np.ndarray) -> np.ndarray:
    """How often every observation counts."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    numbers = numbers_of(sample_weight)
    if numbers.shape not in ((), (X.shape[0],)):
        raise ValueError(f"sample_weight.shape == {numbers.shape}, expected {(X.shape[0],)}.")
    weight = np.asarray(_check_sample_weight(numbers, X, dtype=np.float64))
    if (weight < 0).any():
        raise ValueError("Negative values in sample_weight: the weight of an observation is at least 0.")
    if not weight.any():
        raise ValueError("All values in sample_weight are zero: nothing is left to fit.")
    if weight.max() > np.finfo(float).max / len(weight):
        raise ValueError("The sum of sample_weight is not finite: make all smaller, since only ratios count.")
    return weight


def merge(
    X: np.ndarray, Y: np.ndarray, weight: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Equal observations as one with the sum of their weights, all in sorted order, and where each went.

    A fit then gives the same digits for a weight of 3 as for three repetitions, and in whatever order
    the observations come; bootstrap samples lose a third of their rows. Data of more than ``most`` numbers
    stay as they are.
    """
    if X.size + Y.size > most:
        return X, Y, weight, np.arange(len(X))
    rows = np.ascontiguousarray(np.column_stack([X, Y]) + 0.0)  # minus zero is zero
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return X[first], Y[first], np.bincount(group, weight), group


def padded(rows: np.ndarray, room: int) -> np.ndarray:
    """The rows and then the first of them again, up to ``room``: as padding, any loss can take it."""
    if len(rows) == room:
        return rows
    return np.concatenate([rows, np.broadcast_to(rows[:1], (room - len(rows), *rows.shape[1:]))])
