"""From a fitted model to its file."""

import os
from importlib.metadata import version
from typing import Any

import numpy as np

from deepprox.files import path_of
from deepprox.saving.archive import FORMAT, Archive, write
from deepprox.saving.tree import encode


def save(
    model: Any, path: str | os.PathLike[str], columns: Any = None, notes: dict[str, Any] | None = None
) -> None:
    """Write a fitted network, how it reads a table, and notes (plain JSON) to one file."""
    file = path_of(path, "path")
    arrays: list[np.ndarray] = []
    document = {
        "format": FORMAT,
        "library": version("deepprox"),
        "model": encode(model, arrays),
        "columns": encode(columns, arrays),
        "notes": notes or {},
    }
    write(file, Archive(document, arrays))
