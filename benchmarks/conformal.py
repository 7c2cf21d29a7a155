"""How often intervals and sets of level 90 % hold the truth: three simulations, and ten tables.

``--repetitions=200`` of each simulation and ``--splits=20`` of each table say more than the defaults.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import show
from benchmarks.tables.sets import load
from deepprox import DeepClassifierCV, DeepRegressorCV

LEVEL, TRAIN, NEW, INPUTS = 0.9, 200, 500, 6
TABLES = ["diabetes", "iris", "wine", "breast_cancer", "star98", "fair", "units", "waves", "logits", "line"]
MOST = 500  # rows to train


def inputs(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((TRAIN + NEW, INPUTS))


def spreading(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A linear response whose noise grows with an input."""
    X = inputs(rng)
    return X, X[:, 0] - X[:, 1] + (0.2 + np.abs(X[:, 2])) * rng.standard_normal(len(X))


def tails(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A bent response with the noise of Student's t of three degrees of freedom."""
    X = inputs(rng)
    return X, np.abs(X[:, 0]) + np.sin(2 * X[:, 1]) + rng.standard_t(3, len(X)) / 2


def regions(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three classes with probabilities from bent functions."""
    X = inputs(rng)
    eta = np.column_stack([2 * np.abs(X[:, 0]) - 1.5, 2 * X[:, 1], -X[:, 1] * X[:, 2]])
    return X, (eta + rng.gumbel(size=eta.shape)).argmax(1)


SIMULATIONS: dict[str, tuple[Callable, bool]] = {
    "noise that grows": (spreading, False),
    "heavy tails": (tails, False),
    "three classes": (regions, True),
}


def covered(parts: list[Any], classes: bool, seed: int) -> tuple[float, float]:
    """The share of new rows whose truth is inside, and the mean width or number of classes."""
    X, new, y, truth = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: Any = (DeepClassifierCV if classes else DeepRegressorCV)(random_state=seed).fit(X, y)
    if classes:
        sets = model.predict_set(new, LEVEL)
        return sets[truth[:, None] == model.classes_].sum() / len(truth), sets.sum(1).mean()
    low, high = model.predict_interval(new, LEVEL)
    return float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean())


def line(name: str, found: list[tuple[float, float]], classes: bool) -> list[object]:
    """A row of the page, written as soon as it is known."""
    share, width = np.transpose(found)
    error = share.std(ddof=1) / np.sqrt(len(share))
    what = "classes" if classes else "width"
    told = [name, len(share), f"{100 * share.mean():.1f} ({100 * error:.1f})", f"{width.mean():.3g} {what}"]
    print(*told, flush=True)
    return told


def option(name: str, default: int) -> int:
    """The number that an option gives."""
    given = [arg.split("=")[1] for arg in sys.argv if arg.startswith(f"--{name}=")]
    return int(given[0]) if given else default


def main() -> None:
    """Simulations, then tables, half of each to train: rows are drawn, and classes are not evened out."""
    rows = []
    for name, (draw, classes) in SIMULATIONS.items():
        found = []
        for seed in range(option("repetitions", 40)):
            X, y = draw(np.random.default_rng(seed))
            found.append(covered([X[:TRAIN], X[TRAIN:], y[:TRAIN], y[TRAIN:]], classes, seed))
        rows.append(line(name, found, classes))
    for table in load([*TABLES])[0]:
        found = []
        for seed in range(option("splits", 5)):
            n = min(len(table.y) // 2, MOST)
            parts = train_test_split(table.X, table.y, train_size=n, random_state=seed)
            found.append(covered(parts, table.classes, seed))
        rows.append(line(table.name, found, table.classes))
    columns = ["rows", "fits", "% inside (standard error)", "mean size"]
    show.table(f"Intervals and sets of level {LEVEL:.0%} on new rows", columns, rows)


if __name__ == "__main__":
    main()
