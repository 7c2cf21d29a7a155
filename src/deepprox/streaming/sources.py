"""Sources of rows: Parquet and CSV files, .npy files and arrays, read a batch at a time."""

from collections.abc import Iterator, Sequence
from glob import glob
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from deepprox.tables.reading import need_names, to_the_last_digit

TEXT = {".csv": ",", ".tsv": "\t"}
KINDS = (".parquet", *TEXT)


class Batch(NamedTuple):
    """Some rows: inputs, responses, and weights or None."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None


class Source(NamedTuple):
    """Inputs with their names, or None, and batches of rows as often as one asks for them."""

    names: list[str] | None
    batches: Any  # from a number of rows to batches of at most so many


def source_of(X: Any, y: Any, weight: Any) -> Source:
    """The source that files or arrays are."""
    if isinstance(X, str | PathLike) and str(X).endswith(".npy"):
        X = np.load(X, mmap_mode="r")
    if isinstance(X, np.ndarray):
        return _of_arrays(X, _array(y, "y"), None if weight is None else _array(weight, "sample_weight"))
    files = _files(X)
    if not isinstance(y, str) or not (weight is None or isinstance(weight, str)):
        raise TypeError("With files, y is the name of the column to predict, and so is sample_weight.")
    known = _columns(files[0])
    for name in (y, weight):
        if name is not None and name not in known:
            raise ValueError(f"There is no column {name!r}: the columns are {', '.join(known[:20])}.")
    names = [name for name in known if name not in (y, weight)]

    def batches(rows: int) -> Iterator[Batch]:
        for file in files:
            for table in _tables(file, rows):
                if missing := [name for name in known if name not in table.columns]:
                    raise ValueError(f"{file} has no column {missing[0]!r}, but {files[0]} has.")
                yield Batch(
                    _numbers(table[names], file),
                    table[y].to_numpy(),
                    None if weight is None else _numbers(table[[weight]], file)[:, 0],
                )

    return Source(names, batches)


def _array(given: Any, name: str) -> np.ndarray:
    if isinstance(given, str | PathLike) and str(given).endswith(".npy"):
        given = np.load(given, mmap_mode="r")
    if not isinstance(given, np.ndarray):
        raise TypeError(f"With an array X, {name} is an array or a .npy file, got {type(given).__name__}.")
    return given


def _of_arrays(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Source:
    if X.ndim != 2 or len(X) != len(y) or (weight is not None and len(weight) != len(X)):
        raise ValueError(
            f"X must be a table with a row for each entry of y, but their shapes are {X.shape} and {y.shape}."
        )

    def batches(rows: int) -> Iterator[Batch]:
        for begin in range(0, len(X), rows):
            some = slice(begin, begin + rows)
            yield Batch(_read(X, some), _read(y, some), None if weight is None else _read(weight, some))

    return Source(None, batches)


def _read(array: np.ndarray, some: slice) -> np.ndarray:
    """Rows of an array; those of a mapped file by reading it, since mapped pages count as memory."""
    part = array[some]
    if not isinstance(array, np.memmap) or not array.flags.c_contiguous or array.filename is None:
        return np.asarray(part)
    row = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    offset = array.offset + some.start * row
    return np.fromfile(array.filename, array.dtype, part.size, offset=offset).reshape(part.shape)


def _files(given: Any) -> list[str]:
    """The files that a folder, a pattern, a name or a list of names stands for."""
    if isinstance(given, str | PathLike):
        folder = Path(given)
        found = sorted(map(str, folder.iterdir()) if folder.is_dir() else glob(str(given)))
        found = [file for file in found if file.endswith(KINDS)] if folder.is_dir() else found
        if not found:
            raise ValueError(f"There is no file {given}: give a file, a folder or a pattern of {KINDS}.")
    elif isinstance(given, Sequence) and given and all(isinstance(one, str | PathLike) for one in given):
        found = [str(one) for one in given]
    else:
        raise TypeError(f"X must be files or an array, got {type(given).__name__}.")
    for file in found:
        if not file.endswith(KINDS):
            raise ValueError(f"{file} is of an unknown kind: rows are read from {', '.join(KINDS)} and .npy.")
    return found


def _columns(file: str) -> list[str]:
    if file.endswith(".parquet"):
        return need_names(_parquet(file).schema_arrow.names)
    header = {"header": None, "nrows": 1, "dtype": str, "na_filter": False}
    return need_names(pd.read_csv(file, sep=TEXT[Path(file).suffix], **header).iloc[0])


def _tables(file: str, rows: int) -> Iterator[pd.DataFrame]:
    if file.endswith(".parquet"):
        with _parquet(file) as opened:
            for batch in opened.iter_batches(rows, use_threads=False):
                yield batch.to_pandas()
    else:
        with pd.read_csv(file, sep=TEXT[Path(file).suffix], chunksize=rows, **to_the_last_digit()) as tables:
            yield from tables


def _parquet(file: str) -> Any:
    try:
        from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install 'deepprox[arrow]'.") from None
    # by default all that was read stays in memory until the end of the file
    return ParquetFile(file, pre_buffer=False, buffer_size=2**20)


def _numbers(table: pd.DataFrame, file: str) -> np.ndarray:
    for name, kind in table.dtypes.items():
        if not pd.api.types.is_numeric_dtype(kind):
            raise ValueError(
                f"Column {name!r} of {file} is not of numbers: make it numbers, for instance by the command "
                f"line's tables, or leave it out."
            )
    return table.to_numpy(np.float64, na_value=np.nan)
