"""Leaky links before the join phase: how far above the best minimum starts end, with them and without."""

import warnings
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning

from benchmarks import show
from benchmarks.suites.tasks import FASHION, NO_FASHION, fashion_task
from deepprox import DeepClassifier, scouting
from deepprox.joining import join

STARTS, ITERATIONS = 5, 800
PIXELS = 784  # which have a scale of their own
WAYS = {"never": np.inf, "always": 0}  # how many times as many weights of inputs as rows there must be


def drawn(n, n_inputs=60, n_classes=5):
    """Classes of two clusters each, a third of the inputs tell."""
    return make_classification(
        n, n_inputs, n_informative=n_inputs // 3, n_redundant=0, n_classes=n_classes, flip_y=0.05,
        random_state=0,
    )  # fmt: skip


def images(n):
    """Images of clothes, as the suites have them."""
    task = fashion_task(n, (50,), 1.0)
    return task.X, task.y


def cases():
    """Name, data, hidden layers and gamma."""
    yield "drawn, n = 120", drawn(120), (20,), 0.4
    yield "drawn, n = 200", drawn(200), (20,), 0.6
    yield "drawn, ten classes, n = 150", drawn(150, 100, 10), (20,), 0.75
    yield "drawn, n = 400", drawn(400), (20,), 1.2
    yield "digits", load_digits(return_X_y=True), (50,), 0.5
    yield "digits", load_digits(return_X_y=True), (50, 50), 1.0
    if not FASHION.exists():
        show.console.print(NO_FASHION)
        return
    yield "Fashion-MNIST, n = 500", images(500), (50,), 1.0
    yield "Fashion-MNIST, n = 500", images(500), (50, 50), 1.0
    yield "Fashion-MNIST, n = 2000", images(2000), (50,), 1.0


def objectives(X, y, hidden, gamma, over):
    """Of every start after so many iterations."""
    model = DeepClassifier(
        hidden, alpha=gamma / len(X), penalize_bias=True, standardize=X.shape[1] < PIXELS, tol=1e-6,
        max_iter=ITERATIONS, dtype="float32",
    )  # fmt: skip
    # quasi-Newton steps alone: they tell minima apart, and Newton steps take long
    with warnings.catch_warnings(), patch.object(scouting, "OVER", over), patch.object(join, "FEW", 0):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.array([
            len(X) * model.set_params(random_state=seed).fit(X, y).objective_ for seed in range(STARTS)
        ])  # fmt: skip


def main() -> None:
    """Every case both ways."""
    rows = []
    for name, (X, y), hidden, gamma in cases():
        sizes = (X.shape[1], *hidden, len(np.unique(y)))
        weights = (1 + sizes[0]) * sizes[1]
        found = {way: objectives(X, y, hidden, gamma, over) for way, over in WAYS.items()}
        best = min(ends.min() for ends in found.values())
        above = [
            f"{100 * (ends.mean() / best - 1):.2f} / {100 * (ends.max() / best - 1):.2f}"
            for ends in found.values()
        ]
        taken = "yes" if weights > scouting.OVER * len(X) else "no"
        rows.append([f"{name}, {'-'.join(map(str, sizes))}", weights / len(X), best, *above, taken])
    show.table(
        f"% above the best objective of all, mean / worst of {STARTS} starts, {ITERATIONS} iterations",
        ["", "weights of inputs / rows", "best", "without leaks", "with", "default"],
        rows,
    )


if __name__ == "__main__":
    main()
