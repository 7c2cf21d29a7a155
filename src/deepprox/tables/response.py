"""The column to predict: classes or numbers."""

from typing import Any, NamedTuple

import numpy as np

from deepprox.tables.kinds import as_text, first_missing, is_text
from deepprox.tables.refusals import Refused

FEW = 10  # distinct whole numbers that count as classes when nothing else is said


class Response(NamedTuple):
    """The values, the task they make, and why, in words."""

    values: np.ndarray
    task: str
    reason: str


def read_response(column: Any, task: str = "auto") -> Response:
    """Classes or numbers, as asked for or as the values look."""
    if first_missing(column) is not None:
        raise Refused(
            f"The response {column.name!r} is missing in row {first_missing(column)}: fill it, or on the "
            f"command line leave such rows out with --missing drop; --na-values says which texts are missing."
        )
    found, reason = _look(column)
    if task != "auto":
        found, reason = task, "as asked for"
    if found == "classification":
        texts = is_text(column) or column.dtype == object
        values = np.array([as_text(v) for v in column], object) if texts else column.to_numpy()
        return Response(values, found, reason)
    if is_text(column):
        raise Refused(
            f"The response {column.name!r} is text, as in {column.iloc[0]!r}, which no regression can "
            f"take: use --task classification."
        )
    return Response(column.to_numpy(float), found, reason)


def _look(column: Any) -> tuple[str, str]:
    if is_text(column):
        return "classification", "the response is text"
    if column.dtype == bool:
        return "classification", "the response is true or false"
    numbers = column.to_numpy(float)
    distinct = len(np.unique(numbers))
    if distinct <= FEW and (numbers == np.round(numbers)).all():
        return "classification", f"the response has {distinct} distinct whole numbers"
    return "regression", f"the response has {distinct} distinct numbers"
