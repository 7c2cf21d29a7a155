"""Tables that are drawn: which inputs act, and the best prediction, are known."""

from collections.abc import Callable

import numpy as np

from benchmarks.tables.record import Table


def numbers(name: str, X: np.ndarray, mean: np.ndarray, noise: float, acting: int, seed: int) -> Table:
    """A response around a mean; the first ``acting`` inputs act."""
    y = mean + noise * np.random.default_rng(seed + 1000).standard_normal(len(mean))
    truth = np.arange(X.shape[1]) < acting
    return Table(name, "drawn", X, y, False, truth=truth, best=mean)


def classes(name: str, X: np.ndarray, eta: np.ndarray, acting: int, seed: int) -> Table:
    """Classes with probabilities ``softmax(eta)``; the first ``acting`` inputs act."""
    gumbel = np.random.default_rng(seed + 1000).gumbel(size=eta.shape)
    truth = np.arange(X.shape[1]) < acting
    return Table(name, "drawn", X, (eta + gumbel).argmax(1), True, truth=truth, best=eta.argmax(1))


def inputs(n: int, p: int, seed: int, tie: float = 0.0) -> np.ndarray:
    """Gaussian inputs; neighbours have the correlation ``tie``."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = tie * X[:, j - 1] + np.sqrt(1 - tie**2) * X[:, j]
    return X


def line() -> Table:
    """A sparse linear response of tied inputs: nothing should beat the lasso."""
    X = inputs(400, 40, 1, 0.5)
    return numbers("line", X, X[:, :5] @ np.array([1.5, -1.0, 1.0, -0.5, 0.5]), 1.0, 5, 1)


def units() -> Table:
    """Three ReLU units of four inputs among twenty."""
    X = inputs(600, 20, 2)
    hidden = np.maximum(X[:, :4] @ np.array([[1, 1, 0], [1, -1, 0], [0, 1, 1], [0, 0, -1.5]]) - 0.3, 0)
    return numbers("units", X, hidden @ np.array([2.0, -1.5, 1.5]), 0.5, 4, 2)


def waves() -> Table:
    """A sum of bent functions of three inputs, and a product of two, among fifteen."""
    X = inputs(700, 15, 3, 0.3)
    mean = 2 * np.sin(1.5 * X[:, 0]) + np.abs(X[:, 1]) + 0.5 * X[:, 2] ** 2 + X[:, 3] * X[:, 4]
    return numbers("waves", X, mean, 0.7, 5, 3)


def logits() -> Table:
    """Three classes with sparse linear log odds."""
    X, W = inputs(600, 30, 4), np.zeros((30, 3))
    W[:6] = np.random.default_rng(4).normal(0, 1.2, (6, 3))
    return classes("logits", X, X @ W, 6, 4)


def signs() -> Table:
    """Two classes by the sign of a product of two inputs among twenty: no linear model sees it."""
    X = inputs(800, 20, 5)
    eta = 3 * np.clip(X[:, 0] * X[:, 1], -1, 1)
    return classes("signs", X, np.column_stack([eta, -eta]), 2, 5)


DRAWN: dict[str, Callable[[], Table]] = {
    "line": line,
    "units": units,
    "waves": waves,
    "logits": logits,
    "signs": signs,
}
