"""Splits at every hidden layer, at some, at none: what two-hidden-layer networks end at."""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data, show
from deepprox import DeepClassifier

SPLITS = ["all", (1,), (2,), (), "none"]


def fit(split, hidden, gamma, **options):
    """A fit in the paper's setting, and its seconds once compiled."""
    model = DeepClassifier(
        hidden, alpha=gamma / len(split.X), penalize_bias=True, standardize=False, **options
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(split.X, split.y)
        began = time.perf_counter()
        model.fit(split.X, split.y)
    return model, time.perf_counter() - began


def main() -> None:
    """Iris with three sets of ten starts, digits with three fits of one start each."""
    cases = [
        ("Iris 4-10-10-3 sigmoid", data.iris(), (10, 10), 0.67, {"link": "sigmoid", "n_init": 10}),
        ("digits 64-50-50-10 ReLU", data.digits(), (50, 50), 1.0, {"link": "relu"}),
    ]
    rows = []
    for name, split, hidden, gamma, options in cases:
        for splits in SPLITS:
            fits = [fit(split, hidden, gamma, splits=splits, random_state=k, **options) for k in range(3)]
            objectives = len(split.X) * np.concatenate([model.solution_.starts for model, _ in fits])
            seconds = [s for _, s in fits]
            phase = [model.solution_.seconds.get("split", 0.0) for model, _ in fits]
            certified = sum(model.solution_.status == "converged" for model, _ in fits)
            rows.append([
                f"{name}, gamma {gamma:g}, splits {splits}", objectives.min(), np.median(objectives),
                objectives.max(), f"{certified} of 3", np.median(phase), np.median(seconds),
            ])  # fmt: skip
    show.table(
        "Where the network is split (sum scale; all starts of three fits)",
        ["", "best", "median", "worst", "certified", "s split", "s in all"],
        rows,
    )
