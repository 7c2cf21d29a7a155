"""The spool: all rows as numbers in files of a scratch folder, and what one pass over them tells.

Whatever the rows came from, later passes then read as fast as the disk does, and need no memory but a chunk.
"""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from deepprox.estimators._given import need_table, numbers_of
from deepprox.estimators._standardize import Moments
from deepprox.streaming.sources import Batch, Source

MIXED = "The labels are texts in some rows and numbers in others: make them texts in all rows."


class Sample:
    """Rows drawn at random, each as likely as any other: those with the smallest of random numbers."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng
        self.keys = np.zeros(0)
        self.rows: list[np.ndarray] = []

    def add(self, *columns: np.ndarray, always: np.ndarray) -> None:
        """Take in more rows: arrays of one length; some of them are drawn for certain."""
        keys = self.rng.random(len(columns[0]))
        keys[always] = -1
        chosen = (
            np.flatnonzero(keys < self.keys.max()) if len(self.keys) == self.size else np.arange(len(keys))
        )
        fresh = [column[chosen] for column in columns]
        self.keys = np.concatenate([self.keys, keys[chosen]])
        rows = [np.concatenate(pair) for pair in zip(self.rows, fresh, strict=True)] if self.rows else fresh
        keep = np.argsort(self.keys, kind="stable")[: self.size]
        self.keys, self.rows = self.keys[keep], [column[keep] for column in rows]


class Labels:
    """Classes as numbers in the order in which they come."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def code(self, y: np.ndarray, before: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of labels, as a column, and the first rows of those that are new.

        ``before`` is how many rows came before these.
        """
        missing = ~np.isfinite(y) if y.dtype.kind == "f" else pd.isna(y)
        if missing.any():
            row = before + np.argmax(missing)
            raise ValueError(f"The response is missing or infinite in row {row}: fill or drop such rows.")
        try:
            found, first, places = np.unique(y, return_index=True, return_inverse=True)
        except TypeError:
            raise ValueError(MIXED) from None
        new = first[[label not in self.numbers for label in found.tolist()]]
        numbers = [self.numbers.setdefault(label, len(self.numbers)) for label in found.tolist()]
        if len({isinstance(label, str) for label in self.numbers}) > 1:
            raise ValueError(MIXED)
        return np.asarray(numbers, float)[places][:, None], new

    @property
    def classes(self) -> np.ndarray:
        """The labels by their numbers."""
        return np.asarray([*self.numbers])


class Spool(NamedTuple):
    """Files of inputs, responses and weights, and how many rows and columns they have."""

    folder: Path
    dtype: np.dtype
    n: int
    widths: tuple[int, int, int]

    def chunks(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Inputs, responses and weights, so many rows at a time; the next are read while these are used."""
        with self._open("X") as X, self._open("y") as y, self._open("weight") as weight:

            def read(begin: int) -> list[np.ndarray]:
                some = min(rows, self.n - begin)
                files = zip((X, y, weight), self.widths)
                return [np.fromfile(file, self.dtype, some * k).reshape(some, k) for file, k in files]

            with ThreadPoolExecutor(1) as reader:
                ahead = reader.submit(read, 0)
                for begin in range(rows, self.n + rows, rows):
                    inputs, responses, weights = ahead.result()
                    ahead = reader.submit(read, min(begin, self.n))
                    yield inputs, responses, weights[:, 0]

    def rewrite(self, rows: int, change: Callable[..., tuple[np.ndarray, ...]]) -> "Spool":
        """The same rows changed, as chunks of equal size: the last is filled with rows of weight 0."""
        after = Path(tempfile.mkdtemp(dir=self.folder))
        n, widths = -(-self.n // rows) * rows, self.widths
        with (after / "X").open("wb") as X, (after / "y").open("wb") as y, (after / "weight").open("wb") as w:
            for chunk in self.chunks(rows):
                changed = change(*chunk)
                fill = np.zeros(rows - len(changed[0]), int)
                for file, array in zip((X, y), changed):
                    np.concatenate([array, array[fill]]).astype(self.dtype).tofile(file)
                np.concatenate([changed[2], 0.0 * fill]).astype(self.dtype).tofile(w)
                widths = changed[0].shape[1], changed[1].shape[1], 1
        for name in ("X", "y", "weight"):
            (self.folder / name).unlink()
        return Spool(after, self.dtype, n, widths)

    def _open(self, name: str) -> Any:
        return (self.folder / name).open("rb")


def spool(
    source: Source, folder: Path, dtype: np.dtype, rows: int, labels: Labels | None, sample: Sample
) -> tuple[Spool, Moments, Moments]:
    """Write all rows to the folder; a sample of them is drawn on the way.

    The moments are those of inputs and of responses.
    """
    moments, widths = None, (0, 0, 1)
    with (folder / "X").open("wb") as X, (folder / "y").open("wb") as y, (folder / "weight").open("wb") as w:
        for batch in source.batches(rows):
            before = 0 if moments is None else moments.n
            raw, new = (batch.y, np.zeros(0, int)) if labels is None else labels.code(batch.y, before)
            inputs, response, weight = checked(batch._replace(y=raw), source.names, before)
            if moments is None:
                widths = inputs.shape[1], response.shape[1], 1
                moments, responses = (Moments.none(width) for width in widths[:2])
            moments, responses = moments.added(inputs, weight), responses.added(response, weight)
            sample.add(inputs, response, weight, always=new)
            for file, array in ((X, inputs), (y, response), (w, weight)):
                array.astype(dtype).tofile(file)
    if moments is None or not moments.weight:
        raise ValueError("There are no rows, or none with a positive weight: nothing is left to fit.")
    return Spool(folder, dtype, moments.n, widths), moments, responses


def checked(batch: Batch, names: list[str] | None, before: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finite numbers: inputs, responses as columns, weights."""
    need_table("X", batch.X)
    X = np.asarray(batch.X, float)
    y = np.asarray(batch.y)
    if y.dtype.kind not in "biuf":
        raise ValueError("The response is not of numbers: fit classes with DeepClassifier.")
    y = np.asarray(y, float).reshape(len(X), -1)
    weight = np.ones(len(X)) if batch.weight is None else numbers_of(batch.weight)
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        name = repr(names[column]) if names else column
        raise ValueError(
            f"Column {name} is missing or infinite in row {before + row}: fill or drop such rows."
        )
    if not np.isfinite(y).all():
        raise ValueError(
            f"The response is missing or infinite in row {before + np.argmin(np.isfinite(y).all(1))}."
        )
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError(
            "A sample_weight is negative, missing or infinite: the weight of a row is at least 0."
        )
    return X, y, weight
