"""From a table and options to an estimator and its observations."""

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepprox.cli.voice import Voice
from deepprox.estimators import DeepClassifier, DeepRegressor
from deepprox.estimators._resolve import CLASSIFICATION_LOSSES, PENALTIES, REGRESSION_LOSSES
from deepprox.penalties import GroupL2
from deepprox.tables import Columns, Response, read_response, read_table


class Prepared(NamedTuple):
    """Inputs as numbers, the response, how the table was read, and facts about it for the record."""

    X: Any
    y: np.ndarray
    task: str
    columns: Columns
    facts: dict[str, Any]


def prepare(voice: Voice, options: dict[str, Any]) -> Prepared:
    """Read the table and make numbers of it, telling every choice that was made."""
    data, target = options["data"], options["target"]
    table = read_table(data, options["separator"])
    need_columns(table, [target, *options["drop"], *options["factor"]])
    used = table.drop(columns=[*options["drop"]])
    n_rows = len(used)
    used = _complete(used, target, options["missing"], voice)
    response = _response(used[target], task_of(options), voice)
    inputs = used.drop(columns=[target])
    columns = Columns("mean" if options["missing"] == "mean" else "error", factors=options["factor"])
    X = columns.fit_transform(inputs)
    facts = {
        "data": data if data == "-" else Path(data).name,
        "sha256": "" if data == "-" else _digest(data),
        "rows": n_rows,
        "rows_used": len(X),
        "target": target,
        "task": response.task,
    }
    return Prepared(X, response.values, response.task, columns, facts)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def task_of(options: dict[str, Any]) -> str:
    """The task that was asked for, by name or by its loss."""
    if options["task"] != "auto":
        return options["task"]
    known = {"classification": CLASSIFICATION_LOSSES, "regression": REGRESSION_LOSSES}
    return next((task for task, losses in known.items() if options["loss"] in losses), "auto")


def need_folder(path: str) -> None:
    """Complain before a long fit about a file that cannot be written after it."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder} for {Path(path).name}.")


def need_columns(table: Any, names: Sequence[str]) -> None:
    """One sentence about the first name that is no column."""
    for name in names:
        if name not in table.columns:
            known = ", ".join(repr(column) for column in table.columns[:20])
            more = f" and {len(table.columns) - 20} more" if len(table.columns) > 20 else ""
            raise ValueError(f"The table has no column {name!r}: it has {known}{more}.")


def _complete(table: Any, target: str, missing: str, voice: Voice) -> Any:
    """The rows that can be used, as the choice for missing values says."""
    if missing == "error":
        return table
    holes = table.isna().any(axis=1) if missing == "drop" else table[target].isna()
    if holes.all():
        raise ValueError("Every row has a missing value: nothing is left.")
    if holes.any():
        why = "a value is missing" if missing == "drop" else f"{target!r} is missing"
        voice.note(f"{int(holes.sum())} of {len(table)} rows are left out: {why}.")
    if missing == "mean":
        filled = [name for name in table.columns if name != target and table[name].isna().any()]
        if filled:
            voice.note(f"Missing values are filled in {', '.join(map(repr, filled))}.")
    return table[~holes].reset_index(drop=True)


def _response(column: Any, task: str, voice: Voice) -> Response:
    response = read_response(column, task)
    if task == "auto":
        voice.note(f"Taken as {response.task}: {response.reason} (--task says otherwise).")
    return response


def estimator(prepared: Prepared, options: dict[str, Any], alpha: float, verbose: bool) -> Any:
    """The estimator that the options ask for."""
    make = DeepClassifier if prepared.task == "classification" else DeepRegressor
    given = {"loss": options["loss"]} if options["loss"] else {}
    links = options["link"].split(",") if "," in options["link"] else options["link"]
    return make(
        hidden_layer_sizes=options["hidden"],
        link=links,
        **given,
        **penalty(options["penalty"], alpha, prepared.columns.groups_, len(options["hidden"]) + 1),
        fit_intercept=not options["no_intercept"],
        n_init=options["starts"],
        max_iter=options["max_iter"],
        tol=options["tol"],
        random_state=options["seed"],
        verbose=int(verbose),
    )


def penalty(name: str, alpha: float, groups: tuple[int, ...], n_blocks: int) -> dict[str, Any]:
    """Parameters for the penalty: by name, or with the columns of every factor as one group of block one.

    A group of ``k`` columns has strength ``alpha sqrt(k)`` (Yuan and Lin 2006), so that a factor of many
    levels is not chosen for their number.
    """
    sizes = np.bincount(groups)
    if name not in PENALTIES or name == "none" or sizes.max() == 1:
        return {"penalty": name, "alpha": alpha}
    factors = GroupL2(alpha * np.sqrt(sizes), by=groups)  # type: ignore[arg-type]
    return {"penalty": (factors, *(PENALTIES[name](alpha) for _ in range(n_blocks - 1)))}


def largest_unit(groups: tuple[int, ...]) -> float:
    """The largest strength of a penalty of :func:`penalty` where ``alpha`` is 1."""
    return math.sqrt(np.bincount(groups).max())
