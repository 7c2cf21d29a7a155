"""Reading a table from CSV, TSV, Parquet, Feather or standard input."""

import sys
from pathlib import Path
from typing import Any

TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
ARROW = {".parquet": "Parquet", ".feather": "Feather", ".arrow": "Feather"}
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


def read_table(path: str, separator: str | None = None, part: tuple[int, int] = (0, 1)) -> Any:
    """The table as a DataFrame; ``-`` is CSV from standard input.

    ``part`` is ``(k, of)``: of so many readers the ``k``-th takes its share of the rows and no others, as
    whole row groups of a Parquet file that has enough of them.
    """
    import pandas as pd

    kind = _kind(path)
    if kind in ARROW:
        try:
            table = _read_arrow(path, ARROW[kind], part)
        except ImportError:
            raise ValueError(f"{ARROW[kind]} files need pyarrow: pip install 'deepprox[arrow]'.") from None
    else:
        source = sys.stdin.buffer if path == "-" else path
        try:
            rows = None if part[1] == 1 else lambda line: line > 0 and (line - 1) % part[1] != part[0]
            table = pd.read_csv(source, sep=separator or TEXT[kind], skiprows=rows)
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not text in UTF-8: save it in that encoding.") from None
        except pd.errors.EmptyDataError:
            name = "Standard input" if path == "-" else path
            raise ValueError(f"{name} is empty: a table has a line of column names, then rows.") from None
        if table.shape[1] == 1 and separator is None and any(sign in table.columns[0] for sign in ";\t|,"):
            raise ValueError(
                f"The first line of {path} is {table.columns[0]!r}, one column: if another sign separates "
                f"the columns, say which, as in --separator ';'."
            )
    table.columns = [str(name) for name in table.columns]
    if not table.columns.is_unique:
        raise ValueError(f"The table has two columns named {table.columns[table.columns.duplicated()][0]!r}.")
    if not len(table):
        raise ValueError(f"The table in {path} has no rows.")
    return table.reset_index(drop=True)


def _read_arrow(path: str, kind: str, part: tuple[int, int]) -> Any:
    import pandas as pd

    k, of = part
    if kind == "Parquet" and of > 1:
        from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]

        with ParquetFile(path) as file:
            if file.num_row_groups >= of:
                return file.read_row_groups([*range(file.num_row_groups)][k::of]).to_pandas()
    return (pd.read_parquet if kind == "Parquet" else pd.read_feather)(path).iloc[k::of]


def _kind(path: str) -> str:
    if path == "-":
        return ".csv"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix.lower() not in PACKED]
    kind = suffixes[-1] if suffixes else ""
    if kind not in TEXT | ARROW:
        known = ", ".join([*TEXT, *ARROW])
        raise ValueError(f"{path} is of an unknown kind {kind!r}: give a file that ends in one of {known}.")
    return kind
