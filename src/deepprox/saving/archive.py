"""The file: a zip of one JSON document and NumPy arrays, written whole or not at all, distrusted on reading.

``numpy.load(path, allow_pickle=False)`` opens it too. Nothing is unpacked to disk, nothing is unpickled,
and no more than a given number of bytes is ever unpacked.
"""

import io
import json
import math
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np

from deepprox.saving.tree import KINDS

FORMAT = 1
LIMIT = 2 * 2**30  # bytes that a file may unpack to, unless the caller allows more
DOCUMENT = "model.json"
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError)
THE_EPOCH = (1980, 1, 1, 0, 0, 0)  # of zip files: equal models make equal files


class Archive(NamedTuple):
    """A JSON document and the arrays that it numbers."""

    document: dict[str, Any]
    arrays: list[np.ndarray]


def write(path: str | os.PathLike[str], archive: Archive, quick: bool = False) -> None:
    """Write the file in one go: a reader sees the old one or the new one, never a part.

    ``quick`` packs only arrays that are mostly zeros: others hardly shrink and take long.
    """
    with replacing(Path(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        text = json.dumps(archive.document, allow_nan=False, ensure_ascii=False, indent=1)
        packed.writestr(_entry(DOCUMENT), text.encode("utf-8", "surrogatepass"))
        for number, array in enumerate(archive.arrays):
            entry = _entry(_array_name(number))
            if quick and np.count_nonzero(array) > array.size / 10:
                entry.compress_type = zipfile.ZIP_STORED
            with packed.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` once it is complete and on the disk."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path: str | os.PathLike[str], limit: int = LIMIT) -> Archive:
    """Read and check the file; ValueError with a reason for one that ``write`` did not make."""
    try:
        with zipfile.ZipFile(path) as packed:
            entries = packed.infolist()
            _check_entries(entries, limit)
            document = _document(packed.read(entries[0]))
            arrays = [_array(packed.read(entry)) for entry in entries[1:]]
    except BROKEN as error:
        raise ValueError(f"it is damaged or not a deepprox file ({error or type(error).__name__})") from None
    return Archive(document, arrays)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, THE_EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"


def _check_entries(entries: list[zipfile.ZipInfo], limit: int) -> None:
    expected = [DOCUMENT, *(_array_name(number) for number in range(len(entries) - 1))]
    if [entry.filename for entry in entries] != expected:
        raise ValueError(f"it does not hold {DOCUMENT} and its numbered arrays, in order and nothing else")
    size = sum(entry.file_size for entry in entries)  # no entry unpacks to more than it declares
    if size > limit:
        raise ValueError(
            f"it unpacks to {size} bytes, and the limit is {limit}: raise max_bytes if you trust it"
        )


def _document(text: bytes) -> dict[str, Any]:
    def number(written: str) -> float:
        value = float(written)
        if not math.isfinite(value):
            raise ValueError(f"{written[:20]} is not a finite number")
        return value

    def constant(written: str) -> float:
        raise ValueError(f"{written} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a name is given twice")
        return dict(pairs)

    try:
        document = json.loads(
            text.decode("utf-8", "surrogatepass"),
            parse_float=number,
            parse_constant=constant,
            object_pairs_hook=unique,
        )
    except RecursionError:
        raise ValueError(f"{DOCUMENT} is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"{DOCUMENT} cannot be read ({error})") from None
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise ValueError(f"{DOCUMENT} does not say its format")
    if document["format"] != FORMAT:
        raise ValueError(
            f"it has format {document['format']} (of deepprox {document.get('library')!s:.20}), and this "
            f"version reads format {FORMAT}: load it with the version that wrote it"
        )
    return document


def _array(data: bytes) -> np.ndarray:
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        headers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in headers:
            raise ValueError(f"version {version} of the array format")
        shape, _, dtype = headers[version](file)
        if dtype.hasobject or dtype.fields or dtype.kind not in KINDS:
            raise ValueError(f"an array of {dtype}")
        # before anything of that size is allocated
        if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
            raise ValueError(f"an array of shape {shape} does not fit its entry")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, TypeError, OverflowError, MemoryError, SyntaxError, TokenError) as error:
        raise ValueError(f"an array cannot be read ({str(error)[:200]})") from None
