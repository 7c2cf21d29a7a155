"""skglm, celer, scikit-learn and liblinear on one task of :mod:`benchmarks.columns`: one line of JSON."""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import json
import sys
import time
import warnings
from pathlib import Path

import celer
import numpy as np
import scipy.sparse
from skglm import GeneralizedLinearEstimator
from skglm.datafits import Logistic, Quadratic
from skglm.penalties import L1, L1_plus_L2, MCPenalty
from skglm.solvers import AndersonCD, ProxNewton
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

REPEATS = 5
LARGE = 30.0  # what stands for 1 in the column of the intercept that liblinear penalises


def by_skglm(X, y, kind, alpha, tol):
    """Coordinate descent or proximal Newton on working sets."""
    charge = {"elastic net": L1_plus_L2(alpha, 0.5), "mcp": MCPenalty(alpha, 3.0)}.get(kind, L1(alpha))
    method = ProxNewton if kind == "binary" else AndersonCD
    solver = method(tol=tol, fit_intercept=True, max_iter=200)
    fitted = GeneralizedLinearEstimator(Logistic() if kind == "binary" else Quadratic(), charge, solver)
    return fitted.fit(X, 2 * y - 1 if kind == "binary" else y)


def by_celer(X, y, kind, alpha, tol):
    """Coordinate descent with extrapolated duals."""
    one = celer.Lasso(alpha, tol=tol) if kind == "lasso" else celer.ElasticNet(alpha, l1_ratio=0.5, tol=tol)
    return one.fit(X, y)


def by_sklearn(X, y, kind, alpha, tol):
    """Coordinate descent."""
    one = Lasso(alpha, tol=tol) if kind == "lasso" else ElasticNet(alpha, l1_ratio=0.5, tol=tol)
    return one.fit(X, y)


def by_liblinear(X, y, kind, alpha, tol):
    """Its coordinate descent."""
    strength = 1 / (alpha * len(y))
    one = LogisticRegression(
        penalty="l1", solver="liblinear", C=strength, tol=tol, intercept_scaling=LARGE, max_iter=200
    )
    return one.fit(X, y)


SYSTEMS = {
    "lasso": {"skglm": by_skglm, "celer": by_celer, "scikit-learn": by_sklearn},
    "elastic net": {"skglm": by_skglm, "celer": by_celer, "scikit-learn": by_sklearn},
    "mcp": {"skglm": by_skglm},
    "binary": {"skglm": by_skglm, "liblinear": by_liblinear},
}


def main(folder, kind, alpha, *tolerances):
    """Seconds, weights and intercept of every system at every tolerance."""
    warnings.simplefilter("ignore")
    folder, found = Path(folder), {}
    sparse = (folder / "X.npz").exists()
    X = (
        np.load(folder / "X.npy")
        if not sparse
        else scipy.sparse.csc_matrix(scipy.sparse.load_npz(folder / "X.npz"))
    )
    y = np.load(folder / "y.npy")
    for name, fit in SYSTEMS[kind].items():
        rows = []
        for tol in map(float, tolerances):
            fitted, seconds = fit(X, y, kind, float(alpha), tol), []
            for _ in range(REPEATS):
                began = time.process_time()
                fit(X, y, kind, float(alpha), tol)
                seconds.append(time.process_time() - began)
            w, b = np.ravel(fitted.coef_).tolist(), float(np.ravel(fitted.intercept_)[0])
            rows.append((float(np.median(seconds)), w, b))
        found[name] = rows
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
