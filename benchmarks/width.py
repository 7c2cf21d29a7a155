"""A charge for silent or speaking units selects the width: three true units, twenty on offer."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import show
from deepprox import DeepRegressor
from deepprox.activities import ActivityGroup


def data(n, seed):
    """Inputs, a noisy response of three rectified units, and the response without noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    signal = np.maximum(X[:, 0] + X[:, 1], 0) + np.maximum(X[:, 2] - X[:, 3], 0) - np.maximum(X[:, 4], 0)
    return X, signal + 0.2 * rng.normal(size=n), signal


def main() -> None:
    """Units that remain and the error on new data, over the strength of the charge, five data sets each."""
    rows = []
    for strength in (0.0, 0.001, 0.002, 0.003, 0.005, 0.01, 0.03):
        units, errors, converged = [], [], 0
        for seed in range(5):
            X, y, _ = data(600, seed)
            X_new, _, signal = data(2000, 100 + seed)
            activity = ActivityGroup(strength) if strength else None
            model = DeepRegressor((20,), alpha=3e-4, activity=activity, n_init=3, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)
            units.append(int(model.live_[1].sum()))
            errors.append(float(((model.predict(X_new) - signal) ** 2).mean()))
            converged += model.solution_.status == "converged"
        rows.append([f"{strength:g}", str(units), float(np.mean(errors)), f"{converged} of 5"])
    show.table(
        "Width by a group charge on activities: 3 true ReLU units, 20 offered, n = 600, lasso 3e-4",
        ["strength", "units left", "mean squared error on new data", "converged"],
        rows,
    )
