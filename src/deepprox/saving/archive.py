"""The file: a zip of one JSON document and NumPy arrays, written whole or not at all, distrusted on reading.

``numpy.load(path, allow_pickle=False)`` opens it too. Nothing is unpacked to disk, nothing is unpickled,
and no more than a given number of bytes is ever unpacked.
"""

import errno
import json
import math
import os
import re
import struct
import zipfile
import zlib
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np

from deepprox.files import opened, replacing
from deepprox.saving.tree import DEEPEST, KINDS, need_characters
from deepprox.saving.upgrade import upgraded

FORMAT = 2
LIMIT = 2 * 2**30  # bytes that a file may take in memory, unless the caller allows more
DOCUMENT = "model.json"
# Parsed, a document takes up to PART bytes for every sign between its values, so it has limits of its own: a
# share of the limit, and more for every byte of arrays and of the packed document. Measured: the notes of a
# path of 50 strengths over 10^5 inputs have 13 bytes and 1.1 signs for each byte of the arrays, and a history
# has 5 to 7 bytes and 0.2 to 0.3 signs for each of its own packed bytes.
SIGNS, PART = (b",", b"[", b"]", b"{", b"}"), 64
TEXT_SHARE, TEXT_RATE, SIGNS_SHARE, SIGNS_RATE = 32, 32, 512, 2
TEXTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
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
    text = json.dumps(archive.document, allow_nan=False, ensure_ascii=False, indent=1).encode()
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(_entry(DOCUMENT), text)
        for number, array in enumerate(archive.arrays):
            entry = _entry(_array_name(number))
            if quick and np.count_nonzero(array) > array.size / 10:
                entry.compress_type = zipfile.ZIP_STORED
            with packed.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read(path: str | os.PathLike[str], limit: int = LIMIT) -> Archive:
    """Read and check the file; ValueError with a reason for one that ``write`` did not make."""
    with opened(path) as file:
        try:
            with zipfile.ZipFile(file) as packed:
                entries = packed.infolist()
                _check_entries(entries, limit, os.fstat(file.fileno()).st_size)
                text = packed.read(entries[0])
                _check_shape(text, entries, limit)
                document = _document(text)
                arrays = [_array(packed, entry) for entry in entries[1:]]
        except BROKEN as error:
            raise ValueError(
                f"it is damaged or not a deepprox file ({error or type(error).__name__})"
            ) from None
        except OSError as error:
            if error.errno != errno.EINVAL:  # its directory leads to places that no file has
                raise
            raise ValueError("it is damaged: its parts are not where it says") from None
    return Archive(document, arrays)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, THE_EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"


def _check_entries(entries: list[zipfile.ZipInfo], limit: int, on_disk: int) -> None:
    expected = [DOCUMENT, *(_array_name(number) for number in range(len(entries) - 1))]
    if [entry.filename for entry in entries] != expected:
        raise ValueError(f"it does not hold {DOCUMENT} and its numbered arrays, in order and nothing else")
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
        raise ValueError("it is packed in a way that deepprox never packs")
    if sum(entry.compress_size for entry in entries) > on_disk:
        raise ValueError("it is damaged: its parts are larger than the file")
    # no entry unpacks to more than it declares
    _limit("it unpacks to", sum(entry.file_size for entry in entries), "bytes", limit)
    text, *arrays = entries
    solid = text.compress_size + sum(entry.file_size for entry in arrays)
    _limit(f"{DOCUMENT} unpacks to", text.file_size, "bytes", limit // TEXT_SHARE + TEXT_RATE * solid)


def _limit(what: str, size: int, unit: str, most: int) -> None:
    if size > most:
        raise ValueError(f"{what} {size} {unit}, and the limit is {most}: raise max_bytes if you trust it")


def _check_shape(text: bytes, entries: list[zipfile.ZipInfo], limit: int) -> None:
    """ValueError for a document that would take much memory, or many levels, before it is parsed."""
    signs = sum(text.count(sign) for sign in SIGNS)
    arrays = sum(entry.file_size for entry in entries[1:])
    solid = arrays + entries[0].compress_size
    _limit(f"{DOCUMENT} has", signs, "parts", limit // SIGNS_SHARE + SIGNS_RATE * solid)
    _limit("it takes", arrays + 2 * len(text) + PART * signs, "bytes", limit)
    bare = np.frombuffer(TEXTS.sub(b"", text), np.uint8)
    steps = np.isin(bare, [*b"[{"]).astype(np.int8) - np.isin(bare, [*b"]}"])
    if np.cumsum(steps[steps != 0]).max(initial=0) > 4 * DEEPEST:
        raise ValueError(f"{DOCUMENT} is nested too deep")


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
            text.decode(), parse_float=number, parse_constant=constant, object_pairs_hook=unique
        )
        if rb"\u" in text:  # half of a character can be escaped, and is no text
            json.dumps(document, ensure_ascii=False).encode()
    except ValueError as error:
        raise ValueError(f"{DOCUMENT} cannot be read ({error})") from None
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise ValueError(f"{DOCUMENT} does not say its format")
    if document["format"] == 1:
        return upgraded(document)
    if document["format"] != FORMAT:
        raise ValueError(
            f"it has format {document['format']} (of deepprox {document.get('library')!s:.20}), and this "
            f"version reads format {FORMAT}: load it with the version that wrote it"
        )
    return document


def _array(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    try:
        with packed.open(entry) as file:
            _check_header(file, entry.file_size)
        with packed.open(entry) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        need_characters(array, "it")
        return array
    except (ValueError, TypeError, OverflowError, MemoryError, SyntaxError, TokenError) as error:
        raise ValueError(f"an array cannot be read ({str(error)[:200]})") from None


def _check_header(file: IO[bytes], size: int) -> None:
    """ValueError unless an array of numbers, texts or times follows, as large as its entry."""
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
    if math.prod(shape) * dtype.itemsize != size - file.tell():  # before anything of that size is allocated
        raise ValueError(f"an array of shape {shape} does not fit its entry")
