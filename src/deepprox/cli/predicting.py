"""``deepprox predict``: from a saved model and a table to predictions."""

from pathlib import PurePath
from typing import Any

import numpy as np

from deepprox.cli.training import need_columns, table_for
from deepprox.cli.voice import Voice
from deepprox.files import need_writable, replacing
from deepprox.loading import Saved, read
from deepprox.tables.kinds import is_number

TEXT = {".csv": ",", ".tsv": "\t"}
# what makes a formula of a cell, also in full width, and what a reader may leave out before it
FORMULAS = (*"=+-@", *"\uff1d\uff0b\uff0d\uff20", *"\t\r\n")


def predict_rows(voice: Voice, options: dict[str, Any]) -> None:
    """Predict every row, in the order of the table."""
    import pandas as pd

    if options["out"]:
        need_kind(options["out"])
        need_writable(options["out"])
    saved = read(options["model"])
    table = table_for(saved, options)
    if saved.columns is not None:
        saved.columns.set_params(unknown=options["unknown"])
    rows = usable(saved, table, options["missing"], voice, "predictions are empty")
    X = inputs(saved, table[rows])
    found = {"prediction": saved.network.predict(X)}
    if options["probabilities"]:
        found |= _probabilities(saved.network, X)
    columns = {name: pd.Series(values, table.index[rows]) for name, values in found.items()}
    frame = pd.DataFrame({name: column.reindex(table.index) for name, column in columns.items()})
    if options["out"]:
        write_table(frame, options["out"])
    record = {name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame}
    if options["out"]:
        voice.result(record, f"Saved in {options['out']}.")
    else:
        voice.result(record, csv_of(frame).rstrip("\n"), exact=True)


def inputs(saved: Saved, table: Any) -> Any:
    """What the network reads of a table."""
    if saved.columns is not None:
        return saved.columns.transform(table)
    names = vars(saved.network).get("feature_names_in_")
    if names is not None:
        need_columns(table, [*names])
        return table[[*names]]
    if table.shape[1] != saved.network.n_features_in_:
        raise ValueError(
            f"The model was fitted without names of inputs and reads {saved.network.n_features_in_} columns, "
            f"but the table has {table.shape[1]}."
        )
    return table.to_numpy()


def usable(saved: Saved, table: Any, missing: str, voice: Voice, otherwise: str) -> np.ndarray:
    """Rows that can be predicted: all of them, unless there is a choice about those with holes."""
    columns = saved.columns
    if missing == "error" or (columns is not None and columns.missing == "mean"):
        return np.ones(len(table), bool)
    names = columns.names_ if columns is not None else [*table.columns]
    need_columns(table, names)
    holes = table[names].isna().any(axis=1).to_numpy()
    if holes.all():
        raise ValueError("Every row has a missing value: nothing can be predicted.")
    if holes.any():
        voice.note(f"{int(holes.sum())} of {len(table)} {otherwise}: a value is missing.")
    return ~holes


def _probabilities(network: Any, X: Any) -> dict[str, np.ndarray]:
    if "classes_" not in vars(network) or not network.fitted_.loss.likelihood:
        raise ValueError("This model has no probabilities: leave out --probabilities.")
    return {f"p({label})": column for label, column in zip(network.classes_, network.predict_proba(X).T)}


def write_table(frame: Any, path: str) -> None:
    """Write a table in the format that the name asks for."""
    kind = need_kind(path)
    with replacing(path) as file:
        if kind in TEXT:
            file.write(csv_of(frame, TEXT[kind]).encode())
        elif kind == ".parquet":
            frame.to_parquet(file)
        else:
            frame.to_feather(file)


def need_kind(path: str) -> str:
    """The ending of a file for a table; ValueError for one of which no format is known."""
    kind = PurePath(path).suffix.lower()
    if kind not in (*TEXT, ".parquet", ".feather", ".arrow"):
        raise ValueError(f"{path} is of an unknown kind {kind!r}: name it .csv, .tsv, .parquet or .feather.")
    return kind


def csv_of(frame: Any, sign: str = ",") -> str:
    """A table as text, in which no cell is a formula for a spreadsheet."""
    texts = {name: frame[name].map(inert) for name in frame.select_dtypes(exclude="number")}
    return frame.assign(**texts).to_csv(index=False, sep=sign)


def inert(value: Any) -> Any:
    """A text that a spreadsheet would run, behind an apostrophe; numbers and all else as they are."""
    runs = isinstance(value, str) and value.startswith(FORMULAS) and not is_number(value)
    return f"'{value}" if runs else value
