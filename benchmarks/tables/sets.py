"""All tables by name, from where they are, or from one file."""

from pathlib import Path

import numpy as np

from benchmarks.tables.drawn import DRAWN
from benchmarks.tables.from_r import FROM_R
from benchmarks.tables.packaged import PACKAGED
from benchmarks.tables.record import Table

LOADERS = PACKAGED | FROM_R | DRAWN


def load(names: list[str] | None = None) -> tuple[list[Table], list[str]]:
    """The tables with these names, or all of them, and the names of those that are not on this machine."""
    unknown = sorted(set(names or []) - set(LOADERS))
    if unknown:
        raise SystemExit(f"no table {', '.join(unknown)}; there are {', '.join(LOADERS)}")
    found = {name: LOADERS[name]() for name in names or LOADERS}
    there = [table for table in found.values() if table is not None]
    return there, [name for name, table in found.items() if table is None]


def store(tables: list[Table], path: Path) -> None:
    """All tables in one compressed file."""
    arrays = {}
    for table in tables:
        for field, value in table._asdict().items():
            if field != "name" and value is not None:
                arrays[f"{table.name}/{field}"] = np.asarray(value)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)


def stored(path: Path) -> list[Table]:
    """The tables of such a file."""
    with np.load(path) as file:
        fields: dict[str, dict] = {}
        for key in file.files:
            name, field = key.split("/")
            fields.setdefault(name, {})[field] = file[key] if file[key].ndim else file[key].item()
    return [Table(name, **values) for name, values in fields.items()]
