"""How a fit begins: sweeps, steps on batches, or neither; the objective that the join phase then reaches."""

import time
import warnings
from unittest.mock import patch

from sklearn.datasets import make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning

from benchmarks import show
from deepprox import DeepClassifier, DeepRegressor, solve
from deepprox.estimators._resolve import BATCH

N_TEST, ITERATIONS, TOL = 5000, 400, 1e-5
NEVER = 10**6  # chunks after which routes are compared, more than there are
WAYS = {
    "split alone": {"batch_size": None},
    "both routes": {"batch_size": None},
    "batches": {"batch_size": BATCH},
    "straight": {"batch_size": None, "splits": "none"},
}


def clusters(n):
    """Four classes of three clusters each, 15 of 40 inputs tell."""
    return make_classification(
        n + N_TEST, 40, n_informative=15, n_classes=4, n_clusters_per_class=3, random_state=1
    )


def smooth(n):
    """Friedman's first function of 5 of 20 inputs, with noise."""
    return make_friedman1(n + N_TEST, 20, noise=1.0, random_state=0)


CASES = [
    ("clusters, n = 2000, 50 ReLU", DeepClassifier, clusters, 2000, (50,), 1e-3),
    ("clusters, n = 2000, 50-50 ReLU", DeepClassifier, clusters, 2000, (50, 50), 1e-3),
    ("clusters, n = 20000, 50 ReLU", DeepClassifier, clusters, 20000, (50,), 1e-3),
    ("Friedman, n = 2000, 50-50 ReLU", DeepRegressor, smooth, 2000, (50, 50), 1e-2),
    ("Friedman, n = 20000, 50-50 ReLU", DeepRegressor, smooth, 20000, (50, 50), 1e-2),
]


def fit(make, X, y, n, hidden, alpha, way):
    """A compiled fit: objective, score on new rows, non-zeros, seconds."""
    model = make(hidden, alpha=alpha, tol=TOL, max_iter=ITERATIONS, random_state=0, **WAYS[way])
    fork = NEVER if way == "split alone" else solve.FORK
    with warnings.catch_warnings(), patch.object(solve, "FORK", fork):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:n], y[:n])
        began = time.perf_counter()
        model.fit(X[:n], y[:n])
        seconds = time.perf_counter() - began
    return model.objective_, model.score(X[n:], y[n:]), model.n_nonzero_, seconds


def main() -> None:
    """Every way on every data set, one start each."""
    rows = []
    for name, make, draw, n, hidden, alpha in CASES:
        X, y = draw(n)
        for way in WAYS:
            objective, score, nonzero, seconds = fit(make, X, y, n, hidden, alpha, way)
            rows.append([f"{name}: {way}", objective, score, str(nonzero), seconds])
    show.table(
        f"Ways to begin, one start, at most {ITERATIONS} iterations (compiled)",
        ["", "objective", "score on new rows", "non-zeros", "s"],
        rows,
    )
