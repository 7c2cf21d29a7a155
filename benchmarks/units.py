"""Units that do not pay: how far above the best minimum fits end with so many tries to leave one out."""

import time
import warnings
from functools import partial
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from benchmarks import show
from deepprox import DeepClassifier, DeepRegressor
from deepprox.estimators import _base
from deepprox.solve import Options

SEEDS = 3
WAYS = {"no tries": (0, 1), "two (default)": (2, 1), "none, four starts": (0, 4)}


def cases():
    """Name, data, estimator and strengths."""
    for name, load in (("Iris", load_iris), ("breast cancer", load_breast_cancer), ("digits", load_digits)):
        yield f"{name}, 100", load(return_X_y=True), DeepClassifier((100,)), (1e-3, 4e-3, 1.6e-2)
    yield "Iris, 30-30", load_iris(return_X_y=True), DeepClassifier((30, 30)), (5e-4, 2e-3, 8e-3)
    yield "digits, 30-30", load_digits(return_X_y=True), DeepClassifier((30, 30)), (1e-3, 4e-3, 1.6e-2)
    yield (
        "digits, 100, tanh",
        load_digits(return_X_y=True),
        DeepClassifier((100,), link="tanh"),
        (4e-3, 1.6e-2),
    )
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes, 50", (X, (y - y.mean()) / y.std()), DeepRegressor((50,)), (3e-3, 1e-2, 3e-2)


def fitted(model, X, y, tries, n_init):
    """Objective, whether it is certified, and CPU seconds of the second fit."""
    model.set_params(n_init=n_init)
    with warnings.catch_warnings(), patch.object(_base, "Options", partial(Options, tries=tries)):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
        begin = time.process_time()
        model.fit(X, y)
    return model.objective_, model.solution_.status == "converged", time.process_time() - begin


def main() -> None:
    """Every case in every way."""
    rows = []
    for name, (X, y), model, strengths in cases():
        gaps, certified, seconds = ({way: [] for way in WAYS} for _ in range(3))
        for alpha in strengths:
            found = {way: [] for way in WAYS}
            for seed in range(SEEDS):
                for way, settings in WAYS.items():
                    model.set_params(alpha=alpha, random_state=seed)
                    objective, converged, taken = fitted(model, X, y, *settings)
                    found[way].append(objective)
                    certified[way].append(converged)
                    seconds[way].append(taken)
            best = min(min(ends) for ends in found.values())
            for way, ends in found.items():
                gaps[way] += [100 * (end / best - 1) for end in ends]
        told = [
            f"{np.mean(gaps[way]):.1f} / {max(gaps[way]):.1f}, {sum(certified[way])}/{len(certified[way])} "
            f"({sum(seconds[way]) / sum(seconds['no tries']):.2f})"
            for way in WAYS
        ]
        rows.append([name, *told])
    show.table(
        f"% above the best objective of all, mean / worst of {SEEDS} starts and some strengths, certified "
        "(CPU time)",
        ["", *WAYS],
        rows,
    )


if __name__ == "__main__":
    main()
