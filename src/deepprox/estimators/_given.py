"""Data as a user gave them: kinds of columns that no fit can read are told in a sentence before it begins."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

TIMES = ("date", "time", "period", "duration", "interval")  # how the types of such columns are called
FORMATS = ["csr", "csc"]


def read(model: Any, X: Any, y: Any, **checks: Any) -> tuple[Any, np.ndarray]:
    """Inputs and responses that scikit-learn has validated for a fit of ``model``."""
    need_inputs(X)
    need_table("y", y, times=not checks.get("y_numeric", False))
    if scipy.sparse.issparse(y):
        raise TypeError("y is sparse, and a response must be dense: give y.toarray().")
    try:
        return validate_data(model, X, y, accept_sparse=FORMATS, **checks)
    except (TypeError, OverflowError) as error:
        raise TypeError(f"X and y must be of numbers: {error}.") from error


def read_new(model: Any, X: Any, dtype: Any) -> Any:
    """Inputs that scikit-learn has validated for a prediction."""
    need_inputs(X)
    try:
        return validate_data(model, X, accept_sparse=FORMATS, dtype=dtype, reset=False)
    except (TypeError, OverflowError) as error:
        raise TypeError(f"X must be of numbers: {error}.") from error


def need_inputs(X: Any) -> None:
    """A sentence about inputs that are no table of numbers with a name for each column."""
    need_table("X", X)
    need_whole(X)
    for name, count in Counter(getattr(X, "columns", [])).items():
        if count > 1:
            raise ValueError(f"{count} columns of X are named {name!r}: give every column a name of its own.")


def need_table(what: str, given: Any, times: bool = False) -> None:
    """A sentence about cells that are masked, complex, or dates and times, unless ``times`` are welcome."""
    if np.ma.is_masked(given):
        raise ValueError(
            f"{what} has masked cells, which would be read as data: fill them, or drop their rows."
        )
    for column, kind in _kinds(given):
        where = what if column is None else f"Column {column!r} of {what}"
        if kind.startswith("complex"):
            raise ValueError(f"Complex data not supported: {where} holds {kind}.")
        if kind.startswith(TIMES) and not times:
            raise ValueError(
                f"{where} holds {kind}, which is no number: put what matters of it (a year, a duration in "
                f"seconds, a middle) into a column of numbers."
            )


def _kinds(given: Any) -> Iterator[tuple[Any, str]]:
    """The types of all columns, in small letters, with their names where they have some."""
    columns = getattr(given, "columns", None)
    if columns is not None:
        yield from ((column, str(kind).lower()) for column, kind in zip(columns, given.dtypes))
    elif not scipy.sparse.issparse(given):
        yield None, str(getattr(given, "dtype", "")).lower()


def need_whole(X: Any) -> None:
    """A sentence about a sparse matrix whose indices point outside of it: SciPy would read there."""
    if not scipy.sparse.issparse(X) or X.ndim != 2:
        return
    if X.format == "coo":
        whole = _within(X.row, X.shape[0]) and _within(X.col, X.shape[1])
    elif X.format in ("csr", "csc", "bsr"):
        blocks = [n // m for n, m in zip(X.shape, getattr(X, "blocksize", (1, 1)))]
        major, minor = reversed(blocks) if X.format == "csc" else blocks
        ends = np.asarray(X.indptr)
        whole = len(ends) == major + 1 and ends[0] == 0 and bool((np.diff(ends) >= 0).all())
        whole = whole and ends[-1] <= min(len(X.indices), len(X.data))
        whole = whole and _within(X.indices[: ends[-1]], minor)
    else:
        whole = True
    if not whole:
        raise ValueError(
            f"X is a broken sparse matrix, with indices outside of its shape {X.shape}: build it again from "
            f"rows, columns and values."
        )


def _within(indices: np.ndarray, n: int) -> bool:
    return not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < n)


def numbers_of(sample_weight: Any) -> np.ndarray:
    """Weights as numbers; texts and dates are none."""
    need_table("sample_weight", sample_weight)
    try:
        given = np.asarray(sample_weight)
        numbers = given.astype(np.float64) if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None or (given.dtype.kind == "O" and any(isinstance(one, str) for one in given.flat)):
        raise ValueError(
            "sample_weight must be one finite number for each observation: make numbers of texts and dates."
        )
    return numbers
