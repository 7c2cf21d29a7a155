"""``deepprox predict``: from a saved model and a table to predictions."""

from pathlib import Path
from typing import Any

import numpy as np

from deepprox.cli.training import need_columns
from deepprox.cli.voice import Voice
from deepprox.loading import Saved, read
from deepprox.tables import read_table


def predict_rows(voice: Voice, options: dict[str, Any]) -> None:
    """Predict every row, in the order of the table."""
    import pandas as pd

    saved = read(options["model"])
    table = read_table(options["data"], options["separator"])
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
    shown = "" if options["out"] else frame.to_csv(index=False).rstrip("\n")
    record = {name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame}
    voice.result(record, shown or f"Saved in {options['out']}.")


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
    if "classes_" not in vars(network) or not network._loss.likelihood:
        raise ValueError("This model has no probabilities: leave out --probabilities.")
    return {f"p({label})": column for label, column in zip(network.classes_, network.predict_proba(X).T)}


def write_table(frame: Any, path: str) -> None:
    """Write a table in the format that the name asks for."""
    kind = Path(path).suffix.lower()
    if kind in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
    elif kind == ".parquet":
        frame.to_parquet(path)
    elif kind in (".feather", ".arrow"):
        frame.to_feather(path)
    else:
        raise ValueError(f"{path} is of an unknown kind {kind!r}: name it .csv, .tsv, .parquet or .feather.")
