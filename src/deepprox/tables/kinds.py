"""What a column is: numbers, a factor, or something that is no input at all."""

import re
from numbers import Number
from typing import Any

import numpy as np

NAMES_OF_IDS = re.compile(r"(^|[ _.-])(id|ids|index|idx|key|uuid|guid|row|rownames?|unnamed: 0)$", re.I)
CAMEL_ID = re.compile(r"[a-z]I[dD]$")
MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
DATES = re.compile(
    rf"\s*(\d{{4}}[-/.]\d{{1,2}}([-/.]\d{{1,2}})?([ T]\d{{1,2}}:\d{{2}}.*)?"  # 2026-01-31 12:00
    rf"|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}( +\d{{1,2}}:\d{{2}}.*)?"  # 31.01.2026
    rf"|\d{{1,2}}[ -]({MONTHS})[a-z]*[ -,]+\d{{2,4}}|({MONTHS})[a-z]* \d{{1,2}},? \d{{4}}"  # 31 Jan 2026
    rf"|\d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?)\s*",  # 12:00:00
    re.I,
)
MANY = 20  # levels from which on a factor of more levels than half the rows is no factor


def is_text(column: Any) -> bool:
    """Whether a column holds texts or categories: not numbers, nor true and false."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if column.dtype == object:
        return not all(isinstance(value, Number | np.bool_) for value in column.dropna())
    return not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))


def as_text(value: Any) -> str:
    """A level as text: 1 and 1.0 are the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def first_missing(column: Any) -> int | None:
    """The first row, counted from 1, without a value."""
    missing = np.flatnonzero(column.isna().to_numpy())
    return int(missing[0]) + 1 if missing.size else None


def leaving_out(name: str) -> str:
    """How to do without a column, in Python and on the command line."""
    return f"leave it out with table.drop(columns={name!r}), on the command line --drop {name!r}"


def refuse_strange(column: Any) -> None:
    """One sentence about a column that cannot be an input: dates, identifiers, nested values."""
    import pandas as pd

    name, values = column.name, column.dropna()
    leave_out = leaving_out(name)
    if pd.api.types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        raise ValueError(_dated(name, values, leave_out))
    if pd.api.types.is_timedelta64_dtype(column) or pd.api.types.is_complex_dtype(column):
        raise ValueError(f"Column {name!r} holds {column.dtype}, which is no number: {leave_out}.")
    if pd.api.types.is_integer_dtype(column) and _is_id_name(name) and len(values) > 2:
        steps = np.diff(values.to_numpy(float))
        if (steps > 0).all() or (steps < 0).all():
            raise ValueError(
                f"Column {name!r} counts the rows and tells nothing about new ones: {leave_out}."
            )
    if is_text(column) and len(values):
        _refuse_strange_text(name, values, leave_out)


def _refuse_strange_text(name: str, values: Any, leave_out: str) -> None:
    if any(isinstance(value, list | dict | tuple | set | np.ndarray | bytes) for value in values):
        raise ValueError(f"Column {name!r} holds lists or other nested values: {leave_out}.")
    texts = [as_text(value) for value in values]
    if all(DATES.fullmatch(text) for text in texts):
        raise ValueError(_dated(name, values, leave_out))
    levels = len(set(texts))
    odd = [text for text in texts if not _is_number(text)]
    if levels > MANY and len(odd) < len(texts) / 2:
        raise ValueError(
            f"Column {name!r} holds numbers, but also {odd[0]!r}: mend it in the table, or {leave_out}."
            if odd
            else f"Column {name!r} holds numbers written as text: mend it in the table, or {leave_out}."
        )
    if (levels == len(texts) and levels > 2) or (levels > MANY and levels > len(texts) / 2):
        raise ValueError(
            f"Column {name!r} has {levels} different texts in {len(texts)} rows, as an identifier or free "
            f"text has: {leave_out}."
        )


def _dated(name: str, values: Any, leave_out: str) -> str:
    example = f", as in {str(values.iloc[0])!r}" if len(values) else ""
    return (
        f"Column {name!r} holds dates or times{example}: put what matters of them (a year, a duration) into "
        f"number columns, or {leave_out}."
    )


def _is_id_name(name: str) -> bool:
    return bool(NAMES_OF_IDS.search(name) or CAMEL_ID.search(name))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
