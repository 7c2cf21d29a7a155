"""What the networks of folds say of rows that they have not seen, and what new rows may then be.

With ``S_i`` how far row ``i`` is from what the network without its fold says, ``f_k`` the network without
fold ``k``, and ``n`` rows, a new row has at level ``1 - a``

    interval   from the floor(a (n + 1))-th smallest of  f_k(i)(x) - S_i
               to the ceil((1 - a)(n + 1))-th smallest of  f_k(i)(x) + S_i
    set        the classes c with  #{i: S_i < S(f_k(i)(x), c)} < (1 - a)(n + 1)

which are CV+ (Barber, Candes, Ramdas and Tibshirani, 2021) and its sets (Romano, Sesia and Candes, 2020).
Rows that are exchangeable are then covered with probability ``1 - 2a`` at least, up to a term that is small
where folds are large, and in practice with about ``1 - a``.
"""

from dataclasses import dataclass

import numpy as np

PIECE = 2**22  # numbers that are held at once
ROUNDING = 1e-9  # of counts that weights add up to


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Every row of every test fold: its number, its fold, its weight, what was predicted, and the truth.

    Weights of a row add up to its share of ``n_counted`` over the folds that it is in: observations count in
    proportion to their weights, and the mean weight is 1. ``predicted`` has a column for each class or
    output, ``truth`` the number of the class or the outputs. ``n`` is the number of rows of the data.
    """

    rows: np.ndarray
    fold: np.ndarray
    weight: np.ndarray
    predicted: np.ndarray
    truth: np.ndarray
    n: int

    @classmethod
    def of(
        cls,
        outside: list[np.ndarray],
        predicted: list[np.ndarray],
        truth: list[np.ndarray],
        weight: np.ndarray,
    ) -> "HeldOut":
        """From the rows that each fold leaves out, and the weights of all rows."""
        rows = np.concatenate(outside)
        fold = np.repeat(np.arange(len(outside)), [len(part) for part in outside])
        times, there = np.bincount(rows, minlength=len(weight)), np.unique(rows)
        mean = weight[there].sum() / np.count_nonzero(weight[there])
        own = weight[rows] / times[rows] / mean
        return cls(rows, fold, own, np.concatenate(predicted), np.concatenate(truth), len(weight))

    def check(self, n_folds: int, width: int, classes: bool) -> None:
        """ValueError unless every row of so many folds has a truth and a prediction of this width."""
        entries = len(self.rows) if isinstance(self.rows, np.ndarray) and self.rows.ndim == 1 else -1
        shapes = {
            "rows": ((entries,), "i"),
            "fold": ((entries,), "i"),
            "weight": ((entries,), "f"),
            "predicted": ((entries, width), "f"),
            "truth": ((entries, 1 if classes else width), "f"),
        }
        for name, (shape, kind) in shapes.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind != kind:
                raise ValueError(f"{name} of its folds is missing, or of another shape")
        inside = type(self.n) is int and entries > 0 and 0 <= self.rows.min() <= self.rows.max() < self.n
        inside = inside and 0 <= self.fold.min() <= self.fold.max() < n_folds
        if not inside or (classes and not np.isin(self.truth, np.arange(width)).all()):
            raise ValueError("the rows of its folds are out of range")

    @property
    def n_counted(self) -> float:
        """How many rows count."""
        return float(self.weight.sum())

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    def mean(self) -> np.ndarray:
        """The prediction of every row of the data, over the folds that it is in; nan where it is in none."""
        total, times = np.zeros((self.n, self.predicted.shape[1])), np.zeros((self.n, 1))
        np.add.at(total, self.rows, self.predicted)
        np.add.at(times, self.rows, 1)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(times > 0, total / times, np.nan))

    def mean_truth(self) -> np.ndarray:
        """The truth in the rows of ``mean``."""
        out = np.full((self.n, self.truth.shape[1]), np.nan)
        out[self.rows] = self.truth
        return out

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows in a test fold that count, and how often."""
        weight = np.bincount(self.rows, self.weight, self.n)
        rows = np.flatnonzero(weight)
        return rows, weight[rows]

    def residuals(self) -> np.ndarray:
        """``|truth - predicted|`` of numbers."""
        return np.asarray(np.abs(self.truth - self.predicted))

    def interval(self, predicted: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Ends for new rows from what the network of every fold says of them, of shape (n_folds, n, k)."""
        apart, target = self.residuals(), level * (self.n_counted + 1)
        low, high = np.empty(predicted.shape[1:]), np.empty(predicted.shape[1:])
        step = max(PIECE // len(self.rows), 1)
        for at in range(0, predicted.shape[1], step):
            own = predicted[self.fold, at : at + step]
            for j in range(predicted.shape[2]):
                centre, reach = own[:, :, j], apart[:, j, None]
                high[at : at + step, j] = reaching(centre + reach, self.weight, target)
                low[at : at + step, j] = -reaching(reach - centre, self.weight, target)
        return low, high

    def sets(self, predicted: np.ndarray, level: float) -> np.ndarray:
        """Which classes new rows may have, from what every fold says of them, of shape (n_folds, n, k)."""
        own = -np.take_along_axis(self.predicted, self.truth.astype(int), axis=1)[:, 0]
        closer = np.zeros(predicted.shape[1:])
        for k, values in enumerate(predicted):
            there = self.fold == k
            order = np.argsort(own[there])
            below = np.append(0.0, np.cumsum(self.weight[there][order]))
            closer += below[np.searchsorted(own[there][order], -values, side="left")]
        return np.asarray(closer < level * (self.n_counted + 1) - ROUNDING)


def reaching(values: np.ndarray, weight: np.ndarray, target: float) -> np.ndarray:
    """The least number of every column up to which the weight reaches the target; infinite without one."""
    order = np.argsort(values, axis=0)
    reached = np.cumsum(weight[order], axis=0) >= target - ROUNDING
    first = reached.argmax(axis=0)
    at = np.take_along_axis(order, first[None], axis=0)
    found = np.take_along_axis(values, at, axis=0)[0]
    return np.where(reached[-1], found, np.inf)
