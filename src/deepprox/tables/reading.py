"""Reading a table from CSV, TSV, Parquet, Feather or standard input."""

import gzip
import io
import lzma
import os
import re
import stat
import sys
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepprox.files import opened
from deepprox.tables.refusals import Refused, refuse

TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
ARROW = {".parquet": "Parquet", ".feather": "Feather", ".arrow": "Feather"}
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.I)
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def read_table(
    path: str,
    separator: str | None = None,
    part: tuple[int, int] = (0, 1),
    na_values: Sequence[str] | None = None,
) -> Any:
    """The table as a DataFrame; ``-`` is CSV from standard input.

    ``part`` is ``(k, of)``: of so many readers the ``k``-th takes its share of the rows and no others, as
    whole row groups of a Parquet file that has enough of them. ``na_values`` are the texts that are missing
    values in a text file, beside the empty one; those of pandas (NA, nan, null and more) otherwise.
    """
    kind = _kind(path)
    source = _source(path)
    if kind in ARROW:
        try:
            table = _read_arrow(source, ARROW[kind], part)
        except ImportError:
            raise ValueError(f"{ARROW[kind]} files need pyarrow: pip install 'deepprox[arrow]'.") from None
        except Refused:
            raise
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} is damaged or no {ARROW[kind]} file: {_first(error)}.") from None
    else:
        try:
            table = _read_text(source, path, separator or TEXT[kind], part, na_values)
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not text in UTF-8: save it in that encoding.") from None
        except DAMAGED as error:
            raise ValueError(f"{path} is damaged: it cannot be unpacked ({_first(error)}).") from None
        except re.error as error:
            raise ValueError(
                f"{separator!r} is no sign and no pattern that separates columns: {error}."
            ) from None
        if table.shape[1] == 1 and separator is None and any(sign in table.columns[0] for sign in ";\t|,"):
            raise ValueError(
                f"The first line of {path} is {table.columns[0]!r}, one column: if another sign separates "
                f"the columns, say which, as in --separator ';'."
            )
    table.columns = need_names(table.columns)
    if not len(table):
        raise ValueError(f"The table in {path} has no rows.")
    return table.reset_index(drop=True)


def need_names(names: Any) -> list[str]:
    """The names of columns as texts, each of them there and no two the same."""
    texts, problems = [str(name) for name in names], []
    empty = [str(k) for k, name in enumerate(texts, 1) if not name.strip()]
    if empty:
        some = f"column {empty[0]}" if len(empty) == 1 else f"columns {', '.join(empty)}"
        problems.append(
            f"The table has no name for {some}: give it one, or write the table without row names "
            f"(index=False in pandas, row.names=FALSE in R)."
        )
    equal = sorted({name for name in texts if name.strip() and texts.count(name) > 1}, key=texts.index)
    problems += [
        f"The table has {texts.count(name)} columns named {name!r}: give each its own." for name in equal
    ]
    refuse(problems)
    return texts


def _source(path: str) -> Any:
    """What pandas reads: a full path, which is never an address, or all of standard input."""
    if path == "-":
        return io.BytesIO(_standard_input())
    if ADDRESS.match(path) and not os.path.exists(path):
        raise ValueError(f"{path} is an address, and a table is a file of this machine: fetch it first.")
    if not os.path.isdir(path):  # a Parquet table may be a folder
        opened(path).close()
    return os.path.abspath(path)


def to_the_last_digit() -> dict[str, str]:
    """How pandas is told to read numbers as they are written: from 3.1 on it does, and is not told."""
    import pandas as pd

    new = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    return {} if new else {"float_precision": "round_trip"}


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise ValueError("There is no standard input: give the name of a file.")
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except io.UnsupportedOperation:  # it was replaced by something that is no file
        kind = stat.S_IFREG
    if stat.S_ISCHR(kind) and not sys.stdin.isatty():
        raise ValueError("Standard input is a device and not a table: send a table into it.")
    return sys.stdin.buffer.read()


def _read_text(
    source: Any, path: str, sign: str, part: tuple[int, int], na_values: Sequence[str] | None
) -> Any:
    import pandas as pd

    rows = None if part[1] == 1 else lambda line: line > 0 and (line - 1) % part[1] != part[0]
    missing: dict[str, Any] = (
        {} if na_values is None else {"keep_default_na": False, "na_values": ["", *na_values]}
    )
    engine = {"engine": "c"} | to_the_last_digit() if len(sign) == 1 else {"engine": "python"}
    form: dict[str, Any] = {"sep": sign, **engine}
    try:  # of equal and missing names pandas would make others
        header = pd.read_csv(source, header=None, nrows=1, dtype=str, na_filter=False, **form)
    except pd.errors.EmptyDataError:
        name = "Standard input" if path == "-" else path
        raise ValueError(f"{name} is empty: a table has a line of column names, then rows.") from None
    names = need_names(header.iloc[0])
    if path == "-":
        source.seek(0)
    table = {"header": 0, "names": names, "index_col": False, "skiprows": rows}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # cells would be lost
        try:
            return pd.read_csv(source, **table, **form, **missing)
        except pd.errors.ParserWarning:
            raise ValueError(
                f"The rows of {path} have more cells than its first line has names: name every column."
            ) from None
        except pd.errors.ParserError as error:
            raise ValueError(f"{path} is no table: {_first(error)}.") from None


def _read_arrow(path: str, kind: str, part: tuple[int, int]) -> Any:
    import pandas as pd

    k, of = part
    if kind == "Parquet" and os.path.isfile(path):
        from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]

        with ParquetFile(path) as file:
            need_names(file.schema_arrow.names)
            if 1 < of <= file.num_row_groups:
                return file.read_row_groups([*range(file.num_row_groups)][k::of]).to_pandas()
    return (pd.read_parquet if kind == "Parquet" else pd.read_feather)(path).iloc[k::of]


def _first(error: BaseException) -> str:
    """The first line of what a library says, without the names of its parts."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line.removeprefix("Error tokenizing data. ").removeprefix("C error: ").rstrip(" .")


def _kind(path: str) -> str:
    if path == "-":
        return ".csv"
    if not path:
        raise ValueError("The name of the table is empty: give that of a file.")
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in PACKED]
    kind = suffixes[-1] if suffixes else ""
    if kind not in TEXT | ARROW:
        known = ", ".join([*TEXT, *ARROW])
        raise ValueError(f"{path} is of an unknown kind {kind!r}: give a file that ends in one of {known}.")
    return kind
