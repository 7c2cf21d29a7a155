"""What a column is: numbers, a factor, or something that is no input at all."""

import re
from numbers import Number
from typing import Any

import numpy as np

from deepprox.tables.refusals import Refused

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
EXPECTED = 10  # repetitions by chance of which there must be some, or whole numbers are no measurements
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


def refuse_strange(column: Any, number: bool = False) -> None:
    """One sentence about a column that cannot be an input: dates, identifiers, nested values.

    A ``number`` is known to be one, whatever its values and its name look like.
    """
    import pandas as pd

    name, values = column.name, column.dropna()
    leave_out = leaving_out(name)
    if pd.api.types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        raise Refused(_dated(name, values, leave_out))
    if pd.api.types.is_timedelta64_dtype(column) or pd.api.types.is_complex_dtype(column):
        raise Refused(f"Column {name!r} holds {column.dtype}, which is no number: {leave_out}.")
    if not number:
        _refuse_identifier(column, leave_out)
    if is_text(column) and len(values):
        _refuse_strange_text(name, values, leave_out)


def doubt(column: Any) -> str | None:
    """A sentence about whole numbers that rise or fall row by row, as those of a count or of years do."""
    numbers = _whole_numbers(column)
    if not (_unlike_chance(numbers) and _in_order(numbers)):
        return None
    return (
        f"Column {column.name!r} has a different whole number in every row, in order, as a count of the rows "
        f"has: {leaving_out(column.name)}, if it is one."
    )


def _refuse_identifier(column: Any, leave_out: str) -> None:
    """Refuse a count or a code of the rows, told by its name or by values that chance does not give."""
    numbers, name = _whole_numbers(column), column.name
    named, distinct = _is_id_name(name), len(np.unique(numbers))
    sure = f"or keep it with numbers=[{name!r}], on the command line --number {name!r}"
    if named and len(numbers) > 2 and _in_order(numbers):
        raise Refused(
            f"Column {name!r} counts the rows and tells nothing about new ones: {leave_out}, {sure}."
        )
    a_code = named and distinct == len(numbers) > MANY
    if a_code or (_unlike_chance(numbers) and not _in_order(numbers)):
        raise Refused(
            f"Column {name!r} has {distinct} different whole numbers in {len(numbers)} rows, as an "
            f"identifier has: {leave_out}, {sure}."
        )


def _whole_numbers(column: Any) -> np.ndarray:
    """The values of a column of whole numbers, which holes turn into floats; of any other column none."""
    values = column.dropna().to_numpy()
    numbers = values.dtype.kind in "iuf" and not is_text(column)
    whole = numbers and np.isfinite(values).all() and (values == np.round(values)).all()
    return values if whole else np.zeros(0)


def _in_order(numbers: np.ndarray) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all() or (numbers[1:] < numbers[:-1]).all())


def _unlike_chance(numbers: np.ndarray) -> bool:
    """Whether whole numbers repeat far less than as many drawn from their range would.

    Of ``n`` draws from ``span`` numbers ``n - span (1 - exp(-n / span))`` repeat one before, and where some
    numbers are likelier than others, as in measurements, more do. True for codes and counts, one for each
    row; among the 365 columns of the tables in scikit-learn and statsmodels, for columns of years alone.
    """
    if len(numbers) < 2:
        return False
    span = float(numbers.max()) - float(numbers.min()) + 1
    expected = len(numbers) + span * np.expm1(-len(numbers) / span)
    return bool(expected >= EXPECTED and len(numbers) - len(np.unique(numbers)) < expected / EXPECTED)


def _refuse_strange_text(name: str, values: Any, leave_out: str) -> None:
    if any(isinstance(value, list | dict | tuple | set | np.ndarray | bytes) for value in values):
        raise Refused(f"Column {name!r} holds lists or other nested values: {leave_out}.")
    texts = [as_text(value) for value in values]
    if all(DATES.fullmatch(text) for text in texts):
        raise Refused(_dated(name, values, leave_out))
    levels = len(set(texts))
    odd = [text for text in texts if not is_number(text)]
    if levels > MANY and len(odd) < len(texts) / 2:
        what = f"numbers, but also {odd[0]!r}" if odd else "numbers written as text"
        how = f", say that {odd[0]!r} is a missing value, on the command line --na-values" if odd else ""
        raise Refused(f"Column {name!r} holds {what}: mend it in the table{how}, or {leave_out}.")
    if (levels == len(texts) and levels > 2) or (levels > MANY and levels > len(texts) / 2):
        raise Refused(
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


def is_number(text: str) -> bool:
    """Whether a text is how a number is written."""
    try:
        float(text)
    except ValueError:
        return False
    return True
