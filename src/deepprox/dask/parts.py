"""Data as parts: partitions of Dask collections, or Parquet files, dealt to the workers in order."""

from collections.abc import Sequence
from glob import glob
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd


class Part(NamedTuple):
    """Some rows: inputs (a table, an array, or the name of a file), responses and weights.

    A response or a weight that is text is a column of the inputs.
    """

    X: Any
    y: Any
    weight: Any


def parts_of(X: Any, y: Any, weight: Any) -> list[Part]:
    """The parts of the data, none of them loaded."""
    if isinstance(X, str | PathLike) or (
        isinstance(X, Sequence) and not isinstance(X, da.Array | dd.DataFrame)
    ):
        files = files_of(X)
        if not isinstance(y, str) or not (weight is None or isinstance(weight, str)):
            raise TypeError("With files, y is the name of the column to predict, and so is sample_weight.")
        return [Part(file, y, weight) for file in files]
    if isinstance(X, da.Array) and X.ndim == 2:
        inputs = [row[0] for row in X.rechunk({1: X.shape[1]}).to_delayed()]
    elif isinstance(X, dd.DataFrame):
        need_columns([*X.columns], [name for name in (y, weight) if isinstance(name, str)])
        inputs = X.to_delayed()
    else:
        raise TypeError(
            f"X must be a Dask DataFrame, a Dask Array of two dimensions, or Parquet files, got "
            f"{type(X).__name__}: deepprox.DeepClassifier and DeepRegressor fit what is in memory."
        )
    if isinstance(X, da.Array) and (isinstance(y, str) or isinstance(weight, str)):
        raise TypeError("A Dask Array has no column names: give y and sample_weight as Dask Arrays.")
    columns = [
        column_of(given, name, X, len(inputs)) for name, given in (("y", y), ("sample_weight", weight))
    ]
    return [Part(*row) for row in zip(inputs, *columns, strict=True)]


def files_of(given: Any) -> list[str]:
    """The Parquet files that a folder, a pattern or a list names, sorted where it is one text."""
    if not isinstance(given, str | PathLike):
        if not given or not all(isinstance(one, str | PathLike) for one in given):
            raise TypeError("A list must be of Parquet files: names of files, at least one.")
        return [str(one) for one in given]
    folder = Path(given)
    found = sorted(map(str, folder.glob("*.parquet")) if folder.is_dir() else glob(str(given)))
    if not found:
        raise ValueError(f"There is no Parquet file {given}: give a file, a folder, a pattern or a list.")
    return found


def column_of(given: Any, name: str, X: Any, n_parts: int) -> list[Any]:
    """A response or weights, a part for each part of the inputs."""
    if isinstance(given, str) or (given is None and name != "y"):
        return [given] * n_parts
    if isinstance(given, da.Array):
        if isinstance(X, da.Array) and given.chunks[0] != X.chunks[0]:
            if given.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows, but {name} has {given.shape[0]}.")
            given = given.rechunk({0: X.chunks[0]})
        parts = [*given.rechunk({k: -1 for k in range(1, given.ndim)}).to_delayed().ravel()]
    elif isinstance(given, dd.Series | dd.DataFrame):
        parts = given.to_delayed()
    else:
        raise TypeError(
            f"{name} must be a column name or a Dask collection like X, got {type(given).__name__}."
        )
    if len(parts) != n_parts:
        raise ValueError(
            f"X has {n_parts} partitions, but {name} has {len(parts)}: take both from one collection."
        )
    return parts


def need_columns(known: list[Any], wanted: list[str]) -> None:
    """A sentence for a column that is not there."""
    for name in wanted:
        if name not in known:
            raise ValueError(
                f"There is no column {name!r}: the columns are {', '.join(map(str, known[:20]))}."
            )


def deal(parts: list[Part], world: int) -> list[list[Part]]:
    """The parts of every rank: neighbours together, as many for each, the same whenever they are dealt."""
    ends = np.linspace(0, len(parts), world + 1).astype(int)
    return [parts[begin:end] for begin, end in pairwise(ends)]


def load(parts: list[Part]) -> tuple[Any, Any, Any]:
    """Inputs, responses and weights of all rows of some parts."""
    X, y, weight = zip(*map(_rows, parts), strict=True)
    return _join(X), _join(y), None if weight[0] is None else _join(weight)


def _rows(part: Part) -> tuple[Any, Any, Any]:
    X, y, weight = part
    if isinstance(X, str):
        X = pd.read_parquet(X)
    names = [name for name in (y, weight) if isinstance(name, str)]
    if names:
        need_columns([*X.columns], names)
        y, weight = (X[given] if isinstance(given, str) else given for given in (y, weight))
        X = X.drop(columns=names)
    if len(X) != len(y):
        raise ValueError(f"A partition of X has {len(X)} rows, but that of y has {len(y)}.")
    return X, y, weight


def _join(arrays: Sequence[Any]) -> Any:
    if isinstance(arrays[0], pd.DataFrame | pd.Series):
        return pd.concat(arrays, ignore_index=True)
    return np.concatenate(arrays)
