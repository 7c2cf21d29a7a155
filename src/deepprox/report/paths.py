"""A regularisation path in a report: plain values that fit into a file, and the section they make."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepprox.report import figures
from deepprox.report.page import figure, paragraph, tables
from deepprox.report.table import Table
from deepprox.statistics.names import CRITERIA


def record_of_path(path: Any, unit: float = 1.0, choices: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Everything a report shows of a path; strengths are divided by ``unit``.

    Criteria choose where they are defined, and ``choices`` are those of other rules: numbers of models.
    """
    frame = path.frame()
    frame = frame.assign(alpha=frame["alpha"] / unit)
    rules = [name for name in CRITERIA if name in frame and frame[name].notna().any()]
    rules += ["1se", "validation"] if "validation_loss" in frame else []
    indices = {rule: path.select(rule).index for rule in rules} | dict(choices or {})
    columns = ("alpha", "n_inputs", "n_nonzero")
    picks = {
        rule: {"index": index} | {name: frame[name].iloc[index].item() for name in columns}
        for rule, index in indices.items()
    }
    norms = dict(zip(path.input_names, np.asarray(path.input_norms).T.tolist()))
    return {"frame": frame.to_dict("list"), "norms": norms, "picks": picks}


def check_record(record: Any) -> None:
    """ValueError unless a record is one that :func:`record_of_path` can have made."""
    names = ("frame", "norms", "picks")
    if not isinstance(record, dict) or not all(isinstance(record.get(name), dict) for name in names):
        raise ValueError("its path is not one")
    frame, norms, picks = (record[name] for name in names)
    numbers = [*(frame.get(name) for name in ("alpha", "n_inputs", "n_nonzero")), *norms.values()]
    lengths = {len(column) if isinstance(column, list) else 0 for column in (*numbers, *frame.values())}
    if len(lengths) != 1 or 0 in lengths or not all(_is_number(v) for column in numbers for v in column):
        raise ValueError("the columns of its path do not fit each other")
    wanted = {"alpha", "index", "n_inputs", "n_nonzero"}
    for pick in picks.values():
        if not isinstance(pick, dict) or pick.keys() != wanted or not all(map(_is_number, pick.values())):
            raise ValueError("the choices on its path are not numbers")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def picks_table(picks: Mapping[str, Mapping[str, Any]], title: str = "") -> Table:
    """Where every rule chooses."""
    rows = [
        (rule, f"{pick['alpha']:.4g}", str(pick["n_inputs"]), str(pick["n_nonzero"]))
        for rule, pick in picks.items()
    ]
    return Table(rows, ("rule", "alpha", "inputs", "non-zeros"), title, numeric=(1, 2, 3))


def path_section(record: Mapping[str, Any], rule: str | None) -> str:
    """Inputs along the path, sizes and criteria, and where every rule chooses."""
    alpha, picks = record["frame"]["alpha"], record["picks"]
    words = f"{len(alpha)} strengths from {alpha[0]:.3g} to {alpha[-1]:.3g}, each fitted from the last."
    if rule in picks:
        words += f" This model is the choice of {rule}."
    return paragraph(words) + figure(figures.path(record)) + tables(picks_table(picks))
