"""Multinomial and logistic lassos of other libraries. Run by the Python of ``.venv-peers``."""

import tempfile
import warnings
from pathlib import Path

import celer as celer_
import numpy as np
import skglm as skglm_
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks.suites.systems import r
from benchmarks.suites.tasks import Task, Weights, judge

warnings.simplefilter("ignore", ConvergenceWarning)  # a loose tolerance or few iterations are meant


def rows(model, task: Task) -> Weights:
    """Coefficients with the intercept in column 0."""
    intercept = model.intercept_ if task.bias == "free" else 0.0
    return [np.column_stack([np.broadcast_to(intercept, len(model.coef_)), model.coef_])]


def saga(task: Task, seed: int, tol: float) -> Weights:
    """Stochastic average gradient steps with a prox."""
    model = LogisticRegression(
        l1_ratio=1, C=1 / task.gamma, solver="saga", tol=tol, max_iter=20_000,
        fit_intercept=task.bias == "free", random_state=seed,
    )  # fmt: skip
    return rows(model.fit(task.X, task.y), task)


def liblinear(task: Task, seed: int, tol: float) -> Weights:
    """Coordinate descent with Newton steps; it would penalise an intercept."""
    model = LogisticRegression(
        l1_ratio=1, C=1 / task.gamma, solver="liblinear", tol=tol, max_iter=20_000, fit_intercept=False,
        random_state=seed,
    )  # fmt: skip
    return rows(model.fit(task.X, task.y), task)


def skglm(task: Task, seed: int, tol: float) -> Weights:
    """Proximal Newton on working sets."""
    model = skglm_.SparseLogisticRegression(
        alpha=task.gamma / len(task.X), tol=tol, max_iter=200, fit_intercept=task.bias == "free"
    )
    return rows(model.fit(task.X, task.y), task)


def celer(task: Task, seed: int, tol: float) -> Weights:
    """Dual extrapolation and working sets; it has no intercept."""
    model = celer_.LogisticRegression(C=1 / task.gamma, tol=tol, max_iter=200, fit_intercept=False)
    return rows(model.fit(task.X, task.y), task)


def glmnet(task: Task, seed: int, thresh: float) -> dict:
    """Coordinate descent along a short path that ends at the strength asked for."""
    n = len(task.X)
    lambdas = task.gamma / n * 1.6 ** np.arange(9, -1, -1.0)
    return _glmnet(task, lambdas, thresh)


def glmnet_path(task: Task, seed: int, length: float) -> dict:
    """A whole path with its own tolerance, from the empty model to a thousandth of its strength."""
    Y = np.eye(task.n_classes)[task.y]
    strongest = np.abs(task.X.T @ (Y - Y.mean(0))).max() / len(task.X)
    lambdas = np.geomspace(strongest, strongest / 1000, int(length))
    found = _glmnet(task, lambdas, 1e-7)
    judged = judge(task._replace(gamma=lambdas[-1] * len(task.X)), found["W"])
    return found | {"judged": judged | {"strongest": lambdas[0], "weakest": lambdas[-1]}}


def _glmnet(task: Task, lambdas: np.ndarray, thresh: float) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        r.write(Path(folder), task)
        lambdas.tofile(Path(folder) / "lambda.bin")
        intercept = "TRUE" if task.bias == "free" else "FALSE"
        seconds = r.run("glmnet.R", folder, thresh, task.n_classes, intercept)
        W = np.fromfile(Path(folder) / "W.bin").reshape(-1, 1 + task.X.shape[1])
    return {"W": [W], "seconds": seconds}
