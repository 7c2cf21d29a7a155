"""``sum_i loss_i(W) + gamma sum |w|`` on a data set: what all systems are given and judged by.

This file knows NumPy alone: every environment reads it.
"""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

FASHION = Path("/usr/share/datasets/fashion-mnist")
NO_FASHION = (
    f"Fashion-MNIST is not in {FASHION}: install it with `apt-get install dataset-fashion-mnist` (Debian)."
)
Weights = list[np.ndarray]  # one matrix for each layer: a row for every unit, the bias in column 0


class Task(NamedTuple):
    """Training and test rows, hidden widths (ReLU), strength, and biases "free", "penalised" or "none"."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    hidden: tuple[int, ...]
    gamma: float
    bias: str

    @property
    def n_classes(self) -> int:
        """How many classes the training rows have."""
        return int(self.y.max()) + 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, hidden widths, classes."""
        return (self.X.shape[1], *self.hidden, self.n_classes)


def save(task: Task, path: Path) -> None:
    """One file that every system reads."""
    np.savez(path, **task._asdict())


def load(path: Path) -> Task:
    """The task in a file."""
    with np.load(path) as stored:
        fields = {name: stored[name] for name in Task._fields}
    plain = {"hidden": tuple(fields["hidden"].astype(int).tolist()), "gamma": float(fields["gamma"])}
    return Task(**fields | plain | {"name": str(fields["name"]), "bias": str(fields["bias"])})


def outputs(W: Weights, X: np.ndarray) -> np.ndarray:
    """``eta`` of the ReLU network; a single output column is the second of two classes, the first being 0."""
    for w in W[:-1]:
        X = np.maximum(X @ w[:, 1:].T + w[:, 0], 0)
    eta = X @ W[-1][:, 1:].T + W[-1][:, 0]
    return np.hstack([np.zeros_like(eta), eta]) if eta.shape[1] == 1 else eta


def objective(task: Task, W: Weights) -> float:
    """The number that counts, on the sum scale, in double precision."""
    eta = outputs(W, task.X)
    top = eta.max(1)
    losses = np.log(np.exp(eta - top[:, None]).sum(1)) + top - eta[np.arange(len(eta)), task.y]
    first = 0 if task.bias == "penalised" else 1
    return float(losses.sum() + task.gamma * sum(np.abs(w[:, first:]).sum() for w in W))


def judge(task: Task, W: Weights) -> dict[str, float]:
    """Objective, non-zeros (biases included), share of zeros and test accuracy of any system's weights."""
    W = [np.asarray(w, float) for w in W]
    nonzero, total = sum(np.count_nonzero(w) for w in W), sum(w.size for w in W)
    right = outputs(W, task.X_test).argmax(1) == task.y_test
    return {
        "objective": objective(task, W),
        "nonzero": int(nonzero),
        "zeros": float(1 - nonzero / total),
        "accuracy": float(right.mean()),
    }


def fashion(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images in 0..255 and labels of "train" (60 000 rows) or "t10k" (10 000 rows)."""
    if not FASHION.exists():
        raise FileNotFoundError(NO_FASHION)
    with gzip.open(FASHION / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FASHION / f"{part}-labels-idx1-ubyte.gz") as file:
        return images, np.frombuffer(file.read(), np.uint8, offset=8)


def fashion_task(n: int, hidden: tuple[int, ...], gamma: float) -> Task:
    """``n`` random training images and all test images, divided by 255, less the training mean."""
    (X, y), (X_test, y_test) = fashion("train"), fashion("t10k")
    rows = np.random.default_rng(1).permutation(len(X))[:n]
    X, y = X[rows] / 255, y[rows].astype(int)
    mean, name = X.mean(0), f"fashion {n}, 784-{'-'.join(map(str, hidden))}-10"
    return Task(name, X - mean, y, X_test / 255 - mean, y_test.astype(int), hidden, gamma, "penalised")


def standardised(name: str, X, y, n_train: int, gamma: float, bias: str) -> Task:
    """A task of one block: inputs of mean 0 and deviation 1 over the training rows, without constant ones."""
    rows = np.random.default_rng(1).permutation(len(X))
    train, test = rows[:n_train], rows[n_train:]
    mean, deviation = X[train].mean(0), X[train].std(0)
    varies = deviation > 0
    Z = (X[:, varies] - mean[varies]) / deviation[varies]
    return Task(name, Z[train], y[train], Z[test], y[test], (), gamma, bias)
