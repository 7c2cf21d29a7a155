"""From a table to numbers: number columns as they are, factors as one 0/1 column for each level."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from deepprox.tables.kinds import as_text, first_missing, is_text, leaving_out, refuse_strange
from deepprox.tables.reading import need_names
from deepprox.tables.refusals import Refused, gathering, refuse

MISSING_CHOICES, UNKNOWN_CHOICES = ("error", "mean"), ("error", "ignore")
MISSING = "(missing)"  # the level of a factor where it has no value


class Columns(TransformerMixin, BaseEstimator):
    """``x_j`` for a number column, ``[x = level]`` for every level of a factor.

    A transformer of scikit-learn for DataFrames. Dates, identifiers and nested values are refused, missing
    values and levels that were not there in the fit are too unless a choice is made.

    Parameters
    ----------
    missing : {"error", "mean"}, default="error"
        What to do where a value is missing: complain, or take the mean of a number column and a level of its
        own for a factor.
    unknown : {"error", "ignore"}, default="error"
        What to do with a level that the fit did not see: complain, or set all columns of the factor to 0.
    factors : sequence of str, default=()
        Names of number columns that are factors.
    numbers : sequence of str, default=()
        Names of columns of whole numbers that look like identifiers and are none.

    Attributes
    ----------
    names_ : list of str
        The columns that are read.
    levels_ : list
        For every column None, or the levels of the factor.
    means_ : list of float
        For every column its mean; 0 for a factor.
    """

    def __init__(self, missing="error", unknown="error", factors=(), numbers=()):
        self.missing = missing
        self.unknown = unknown
        self.factors = factors
        self.numbers = numbers

    def fit(self, X, y=None):
        """Learn the kinds, levels and means of the columns.

        Parameters
        ----------
        X : DataFrame
            The inputs.
        y : None
            Not used.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        for name, value, known in (
            ("missing", self.missing, MISSING_CHOICES),
            ("unknown", self.unknown, UNKNOWN_CHOICES),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}.")
        for names, kind in ((self.factors, "factor"), (self.numbers, "number")):
            absent = [name for name in names if name not in X.columns]
            if absent:
                raise ValueError(f"There is no column {absent[0]!r} to take as a {kind}.")
        if not len(X.columns):
            raise ValueError("No columns are left to read.")
        self.names_ = need_names(X.columns)
        learnt: list[tuple[list[str] | None, float]] = []
        reasons: list[str] = []
        for name in X.columns:
            with gathering(reasons):
                learnt.append(self._learn(X[name]))
        refuse(reasons)
        self.levels_, self.means_ = ([*part] for part in zip(*learnt))
        return self

    def _learn(self, column: Any) -> tuple[list[str] | None, float]:
        if column.name not in self.factors:
            refuse_strange(column, column.name in self.numbers)
            if column.isna().all():
                raise Refused(f"Column {column.name!r} is empty: {leaving_out(column.name)}.")
        self._refuse_missing(column)
        if column.name not in self.factors and not is_text(column):
            return None, float(np.nanmean(_numbers(column)))
        levels = sorted({as_text(value) for value in column.dropna()})
        return levels + [MISSING] * bool(column.isna().any() and MISSING not in levels), 0.0

    def transform(self, X):
        """The numbers of a table.

        Parameters
        ----------
        X : DataFrame
            A table with at least the columns of the fit.

        Returns
        -------
        numbers : DataFrame of float
            One column for each number column, and for each level of each factor.
        """
        import pandas as pd

        check_is_fitted(self)
        absent = [name for name in self.names_ if name not in X.columns]
        if absent:
            raise ValueError(f"The table lacks the column{_s(absent)} {_listed(absent)} of the fit.")
        parts, reasons = [], list[str]()
        for name, levels, mean in self._known():
            with gathering(reasons):
                parts.append(self._numbers_of(X[name], levels, mean))
        refuse(reasons)
        return pd.DataFrame(np.column_stack(parts), columns=self.get_feature_names_out(), index=X.index)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the numbers: that of a column, or ``column=level``.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        names : ndarray of str
            As many as ``transform`` has columns.
        """
        check_is_fitted(self)
        names = [
            name if level is None else f"{name}={level}"
            for name, levels, _ in self._known()
            for level in (levels if levels is not None else [None])
        ]
        return np.array(names, object)

    @property
    def groups_(self) -> tuple[int, ...]:
        """The number of the table's column that each of the numbers comes from."""
        return tuple(k for k, levels in enumerate(self.levels_) for _ in levels or ["the number"])

    def check_fitted(self) -> None:
        """ValueError unless names, levels and means fit each other: asked of what comes from a file."""
        parts: list[Any] = [vars(self).get(name) for name in ("names_", "levels_", "means_")]
        names, levels, means = (part if isinstance(part, list) else [] for part in parts)
        right = (
            0 < len(names) == len(levels) == len(means)
            and (self.missing in MISSING_CHOICES and self.unknown in UNKNOWN_CHOICES)
            and all(isinstance(name, str) for name in names)
            and all(isinstance(mean, float) and np.isfinite(mean) for mean in means)
            and all(of is None or _texts(of) for of in levels)
        )
        if not right:
            raise ValueError("the columns of its table do not fit each other")

    def _known(self) -> Iterator[tuple[str, list[str] | None, float]]:
        return zip(self.names_, self.levels_, self.means_, strict=True)

    def _numbers_of(self, column: Any, levels: list[str] | None, mean: float) -> np.ndarray:
        self._refuse_missing(column)
        if levels is None:
            return np.where(column.isna(), mean, _numbers(column))[:, None]
        texts = [MISSING if missing else as_text(value) for value, missing in zip(column, column.isna())]
        unknown = sorted({*texts} - {*levels})
        if unknown and self.unknown == "error":
            raise Refused(
                f"Column {column.name!r} has the level {unknown[0]!r}, which the fit did not see (it saw "
                f"{_listed(levels)}): read it as none of these with unknown='ignore', on the command line "
                f"--unknown ignore."
            )
        return np.array(texts)[:, None] == np.array(levels)[None, :]

    def _refuse_missing(self, column: Any) -> None:
        row = first_missing(column)
        if row is not None and self.missing == "error":
            rows = np.flatnonzero(column.isna())
            raise Refused(
                f"Column {column.name!r} has {len(rows)} missing value{_s(rows)}, the first in row {row}: "
                f"fill what is missing, or choose missing='mean', on the command line --missing; there "
                f"--na-values says which texts are missing."
            )


def _numbers(column: Any) -> np.ndarray:
    import pandas as pd

    try:
        numbers = pd.to_numeric(column).to_numpy(float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise Refused(f"Column {column.name!r} was numbers in the fit, but now is not: {error}.") from None
    if np.isinf(numbers).any():
        raise Refused(
            f"Column {column.name!r} has an infinite value in row {1 + int(np.isinf(numbers).argmax())}."
        )
    return numbers


def _listed(names: list[str], most: int = 8) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _s(items: Any) -> str:
    return "" if len(items) == 1 else "s"


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)
