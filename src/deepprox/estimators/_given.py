"""Data as a user gave them: kinds of columns that no fit can read are told in a sentence before it begins."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_consistent_length, validate_data

from deepprox.checks import shown_text
from deepprox.memory import need, of_data

NUMBERS = ("bool", "int", "uint", "float", "double", "half", "sparse")  # kinds that need no second look
TIMES = ("date", "time", "period", "duration", "interval")  # how the types of such columns are called
FORMATS = ["csr", "csc"]


def read(model: Any, X: Any, y: Any, **checks: Any) -> tuple[Any, np.ndarray]:
    """Inputs and responses that scikit-learn has validated for a fit of ``model``."""
    need_inputs(X)
    numbers = checks.get("y_numeric", False)
    need_table("y", y, numbers)
    if scipy.sparse.issparse(y):
        raise TypeError("y is sparse, and a response must be dense: give y.toarray().")
    check_consistent_length(X, y)
    try:
        X, y = validate_data(model, X, y, accept_sparse=FORMATS, **checks)
    except (TypeError, OverflowError) as error:
        raise TypeError(f"X and y must be of numbers: {_said(error)}.") from error
    return X, y if y.dtype.kind in "biuf" else read_new_response(y, numbers)


def read_new(model: Any, X: Any, dtype: Any) -> Any:
    """Inputs that scikit-learn has validated for a prediction."""
    need_inputs(X)
    try:
        return validate_data(model, X, accept_sparse=FORMATS, dtype=dtype, reset=False)
    except (TypeError, OverflowError) as error:
        raise TypeError(f"X must be of numbers: {_said(error)}.") from error


def read_new_response(y: Any, numbers: bool) -> np.ndarray:
    """New responses as an array, of numbers where that is asked for."""
    need_table("y", y, numbers)
    try:
        array = np.asarray(y, float if numbers else None)
        if array.dtype.kind == "O":
            np.unique(array)  # labels are put in order
        return array
    except (TypeError, ValueError, OverflowError) as error:
        kind = "numbers" if numbers else "labels of one kind"
        raise ValueError(f"y must be {kind}, one or a row for each row of X: {_said(error)}.") from error


def _said(error: BaseException) -> str:
    """What others said, in one line that is not long and has no full stop."""
    return shown_text(str(error)).rstrip(".")


def need_inputs(X: Any) -> None:
    """A sentence about inputs that are no table of numbers with a name for each column."""
    need_table("X", X)
    if scipy.sparse.issparse(X):
        need(of_data(X.shape[0], 1, 8))
        need_whole(X)


def need_table(what: str, given: Any, numbers: bool = True) -> None:
    """A sentence about columns of one name, cells that are masked, and what is no number where it must be."""
    if np.ma.is_masked(given):
        raise ValueError(
            f"{what} has masked cells, which would be read as data: fill them, or drop their rows."
        )
    if getattr(getattr(given, "dtype", None), "names", None):
        raise TypeError(f"{what} is an array of records: make it a DataFrame, or an array of numbers.")
    kinds = [*_kinds(given)]
    for column, count in Counter(column for column, _ in kinds).items():
        if count > 1:
            raise ValueError(
                f"{count} columns of {what} are named {column!r}: give every column a name of its own."
            )
    for column, kind in kinds:
        where = what if column is None else f"Column {column!r} of {what}"
        if kind.startswith("complex"):
            raise ValueError(f"Complex data not supported: {where} holds {kind}.")
        if kind.startswith(TIMES) and numbers:
            raise ValueError(
                f"{where} holds {kind}, which is no number: put what matters of it (a year, a duration in "
                f"seconds, a middle) into a column of numbers."
            )
        if column is not None and numbers and not kind.startswith(NUMBERS):
            _need_numbers(given[column], where)


def _kinds(given: Any) -> Iterator[tuple[Any, str]]:
    """The types of all columns, in small letters, with their names where they have some."""
    if hasattr(given, "columns") and hasattr(given, "dtypes"):  # of pandas, Polars, Dask
        columns = zip(given.columns, given.dtypes)
    elif hasattr(given, "column_names") and hasattr(given, "schema"):  # of Arrow
        columns = zip(given.column_names, given.schema.types)
    else:
        columns = None
    if columns is not None:
        yield from ((column, str(kind).lower()) for column, kind in columns)
    elif not scipy.sparse.issparse(given):
        yield None, str(getattr(given, "dtype", "")).lower()


def _need_numbers(column: Any, where: str) -> None:
    """A sentence about a column whose cells are no numbers; texts that can be read as numbers are."""
    try:
        np.asarray(column, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{where} must be of numbers ({_said(error)}): make numbers of it, such as a column of 0 and 1 "
            f"for each level, or leave it out."
        ) from error


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
        usual = given.ndim < 2 and given.dtype.kind in "biufO"
        numbers = given.astype(np.float64, copy=False) if usual else None
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None or (given.dtype.kind == "O" and any(isinstance(one, str) for one in given.flat)):
        raise ValueError(
            "sample_weight must be one finite number for each observation, in one column: make numbers of "
            "texts and dates."
        )
    return numbers
