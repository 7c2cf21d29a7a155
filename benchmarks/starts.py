"""Ten starts side by side against one, and what compiles again."""

import time

import jax
import numpy as np

from benchmarks import data, show
from deepprox import DeepClassifier


def seconds(split, n_init, repeats=5):
    """Median seconds of a warm fit."""
    model = DeepClassifier((10,), link="sigmoid", alpha=0.67 / 105, n_init=n_init, penalize_bias=True)
    model.fit(split.X, split.y)
    times = []
    for seed in range(repeats):
        began = time.perf_counter()
        model.set_params(random_state=seed).fit(split.X, split.y)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def compilations(action) -> int:
    """How many programs an action makes JAX compile."""
    count = 0

    def listen(event, *_, **__):
        nonlocal count
        count += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    action()
    jax.monitoring.clear_event_listeners()
    return count


def main() -> None:
    """Costs in one run."""
    split = data.iris()
    one, ten = seconds(split, 1), seconds(split, 10)
    model = DeepClassifier((10,), link="sigmoid", alpha=0.01, random_state=0)
    first = compilations(lambda: model.fit(split.X, split.y))
    again = compilations(lambda: model.set_params(alpha=0.02, random_state=1).fit(split.X, split.y))
    folds = compilations(lambda: [model.fit(split.X[k:], split.y[k:]) for k in (1, 2, 3)])
    rows = [
        [
            "ten starts / one start (seconds)",
            f"{ten:.3f} / {one:.3f}",
            ten / one,
            "< 4",
            show.met(ten < 4 * one),
        ],
        ["programs compiled by the first fit", "", first, "", ""],
        ["by a second fit of the same shape", "", again, "0", show.met(again == 0)],
        ["by three fits on 104, 103 and 102 rows", "", folds, "0", show.met(folds == 0)],
    ]
    show.table("Starts and compilations, Iris 4-10-3", ["", "", "measured", "target", ""], rows)
