"""Fitted models as files that hold data and never code: a zip of JSON and arrays."""

from deepprox.saving.archive import FORMAT, LIMIT, Archive, read, write
from deepprox.saving.consistency import check_model, check_types
from deepprox.saving.save import save
from deepprox.saving.tree import build, decode, encode, name_of

__all__ = [
    "FORMAT",
    "LIMIT",
    "Archive",
    "build",
    "check_model",
    "check_types",
    "decode",
    "encode",
    "name_of",
    "read",
    "save",
    "write",
]
