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
from deepprox.loading import Saved
from deepprox.penalties import GroupL2
from deepprox.tables import Columns, Response, gathering, read_response, read_table, refuse
from deepprox.tables.kinds import doubt


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
    table = read_table(data, options["separator"], na_values=options["na_values"])
    used = asked(table, options)
    n_rows = len(used)
    used = _complete(used, target, options["missing"], voice)
    inputs, columns = used.drop(columns=[target]), columns_of(options)
    reasons: list[str] = []
    with gathering(reasons):
        response = _response(used[target], task_of(options), voice)
    with gathering(reasons):
        X = columns.fit_transform(inputs)
    refuse(reasons)
    for name in inputs:
        doubtful = None if name in (*options["factor"], *options["number"]) else doubt(inputs[name])
        if doubtful:
            voice.note(doubtful)
    facts = {
        "data": data if data == "-" else Path(data).name,
        "sha256": "" if data == "-" else _digest(data),
        "rows": n_rows,
        "rows_used": len(X),
        "target": target,
        "task": response.task,
    }
    facts |= missing_texts(options)
    return Prepared(X, response.values, response.task, columns, facts)


def asked(table: Any, options: dict[str, Any]) -> Any:
    """The table without what is to be left out; a sentence where the options contradict it or each other."""
    target, drop, factor, number = (options[name] for name in ("target", "drop", "factor", "number"))
    need_columns(table, [target, *drop, *factor, *number])
    if target in drop:
        raise ValueError(
            f"--drop leaves out {target!r}, which --target wants predicted: give up one of them."
        )
    for option, names in (("--factor", factor), ("--number", number)):
        idle = [name for name in names if name == target or name in drop]
        if idle:
            raise ValueError(f"{option} is for inputs, and {idle[0]!r} is none: leave it out.")
    return table.drop(columns=[*drop])


def columns_of(options: dict[str, Any]) -> Columns:
    """How the columns are to be read."""
    missing = "mean" if options["missing"] == "mean" else "error"
    return Columns(missing, factors=options["factor"], numbers=options["number"])


def missing_texts(options: dict[str, Any]) -> dict[str, str]:
    """What to note of the texts that are missing values: what was said of them, if anything."""
    return {} if options["na_values"] is None else {"na_values": ",".join(options["na_values"])}


def table_for(saved: Saved, options: dict[str, Any]) -> Any:
    """A table for a saved model, with the missing values that the options name, or its fit did."""
    asked, noted = options["na_values"], saved.notes.get("na_values")
    texts = noted.split(",") if asked is None and noted is not None else asked
    return read_table(options["data"], options["separator"], na_values=texts)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def task_of(options: dict[str, Any]) -> str:
    """The task that was asked for, by name or by its loss."""
    if options["task"] != "auto":
        return options["task"]
    known = {"classification": CLASSIFICATION_LOSSES, "regression": REGRESSION_LOSSES}
    return next((task for task, losses in known.items() if options["loss"] in losses), "auto")


def need_columns(table: Any, names: Sequence[str]) -> None:
    """One sentence about names that are no columns."""
    absent = [repr(name) for name in dict.fromkeys(names) if name not in table.columns]
    if absent:
        known = ", ".join(repr(column) for column in table.columns[:20])
        more = f" and {len(table.columns) - 20} more" if len(table.columns) > 20 else ""
        raise ValueError(f"The table has no column {' and no '.join(absent)}: it has {known}{more}.")


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
