"""A table: inputs, a response, where it comes from; and how it is split."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

ROWS = 2500  # of larger tables so many, drawn once
TEST = 0.3  # share of the rows of a split that predictions are judged on


class Table(NamedTuple):
    """Numbers ``X``, classes or numbers ``y``; ``truth``, of drawn tables, says which inputs act.

    ``best``, of drawn tables, is the mean of ``y``, or its likeliest class, at every row. What is ``held``
    is kept out of sight while defaults are chosen.
    """

    name: str
    source: str
    X: np.ndarray
    y: np.ndarray
    classes: bool
    held: bool = False
    truth: np.ndarray | None = None
    best: np.ndarray | None = None

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows to train and rows to test, every class in its proportion."""
        return train_test_split(
            np.arange(len(self.y)),
            test_size=TEST,
            random_state=number,
            stratify=self.y if self.classes else None,
        )


def table_of(name: str, source: str, frame: Any, response: str, classes: bool, held: bool = False) -> Table:
    """A table of a data frame: rows with all values, columns of words as indicators of all but one level."""
    import pandas as pd

    frame = frame.dropna()
    if len(frame) > ROWS:
        frame = frame.sample(ROWS, random_state=0)
    y = frame[response]
    X = pd.get_dummies(frame.drop(columns=response), drop_first=True).astype(float)
    X = X.loc[:, X.std() > 0]
    kept = np.unique(y.astype(str), return_inverse=True)[1] if classes else y.to_numpy(float)
    if classes:  # a class needs a few rows on either side of a split
        counts = np.bincount(kept)
        there = counts[kept] >= 8
        X, kept = X[there], np.unique(kept[there], return_inverse=True)[1]
    return Table(name, source, np.ascontiguousarray(X.to_numpy(float)), kept, classes, held)
