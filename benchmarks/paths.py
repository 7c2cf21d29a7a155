"""Whole paths against LassoNet's: time, and test accuracy at every number of inputs that LassoNet visits.

LassoNet (Lemhadri et al. 2021) runs in the environment ``.venv-peers`` (``make peers``), on the same splits,
in the same run, one after the other. Ours selects inputs by a group lasso on the first block and refits
what is left at the weakest strength (``relax=True``), with its strengths where inputs leave, in single
precision and with few iterations at every strength, as LassoNet does. Of
both, the model of least training loss counts among those with as many inputs; where a path has none with as
many, with the next fewer. Means are over all splits, at every number of inputs that LassoNet visits in one.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import deepprox
from benchmarks import show
from deepprox import DeepClassifier, penalties

PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
SPLITS = 5
SETS = {"iris": load_iris, "breast cancer": load_breast_cancer, "digits": load_digits}
SLACK, RATIO, FITS, TURNS = 0.005, 20, 5, 2


def split(name, seed):
    """Train and test parts, standardised on the train part."""
    X, y = SETS[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    mean, deviation = X.mean(0), X.std(0)
    deviation[deviation == 0] = 1
    return (X - mean) / deviation, (X_test - mean) / deviation, y, y_test


def estimator():
    """One hidden layer of 100 rectified units, inputs selected whole, a fixed small ridge on the output."""
    return DeepClassifier(
        (100,), penalty=("group_inputs", penalties.L2(1e-4)), standardize=False, tol=1e-3, max_iter=400,
        dtype="float32", random_state=0,
    )  # fmt: skip


def rough_path(X, y, length=35):
    """The path that is held against LassoNet's."""
    return deepprox.path(estimator(), X, y, length, eps=2e-2, spacing="inputs", relax=True, max_iter=12)


def ours(name, seed):
    """Seconds of a path, and for every number of inputs the test accuracy of the model of least loss."""
    X, X_test, y, y_test = split(name, seed)
    begin = time.perf_counter()
    path = rough_path(X, y)
    seconds = time.perf_counter() - begin
    told = ((int(m.selected_features_.sum()), float(m.score(X_test, y_test)), m.loss_) for m in path)
    return seconds, at_counts(told)


def in_fits(name, seed, seconds, turns):
    """The strengths of a path of 50 with all defaults, its ``seconds``, those of a fit, and of fits along it.

    ``seconds(name, seed, alpha)`` are those of a fit from random starts, of the path without ``alpha``: the
    least of so many ``turns``, in each of which the path and the fits follow each other. A fit has the
    strength that the estimator has by default; of those along the path the mean of five counts, from the
    densest to the last network that is not empty.
    """
    X, _, y, _ = split(name, seed)
    model = DeepClassifier((100,), random_state=seed)
    alphas = deepprox.path(model, X, y, 50).alphas
    along = alphas[np.linspace(0, len(alphas) - 2, 5).astype(int)]
    every = None, model.alpha, *map(float, along)
    whole, fit, *fits = np.min(
        [[seconds(name, seed, alpha) for alpha in every] for _ in range(turns)], axis=0
    )
    return len(alphas), whole, fit, np.mean(fits)


def seconds_of(name, seed, alpha=None):
    """Seconds of a path of 50 strengths, or of a fit at one."""
    X, _, y, _ = split(name, seed)
    model = DeepClassifier((100,), random_state=seed)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if alpha is None:
            deepprox.path(model, X, y, 50)
        else:
            model.set_params(alpha=alpha).fit(X, y)
    return time.perf_counter() - begin


def cold(name, seed, alpha=None):
    """Seconds in a new process, with nothing compiled."""
    words = f"from benchmarks.paths import seconds_of; print(seconds_of({name!r}, {seed}, {alpha!r}))"
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", words], env=os.environ | {"XDG_CACHE_HOME": cache}, capture_output=True,
            text=True, check=True, cwd=Path(__file__).parents[1],
        )  # fmt: skip
    return float(done.stdout.splitlines()[-1])


def peer(name, seed):
    """The same of LassoNet, run by its own Python."""
    done = subprocess.run(
        [PEERS, "-m", "benchmarks.peer_lassonet", name, str(seed)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return found["seconds"], at_counts(found["models"])


def at_counts(models):
    """(inputs, accuracy) of the model of least training loss of every number of inputs, most inputs first.

    A path may come back to inputs that it had left, so that the first with so many need not be the best.
    """
    best: dict[int, tuple[float, float]] = {}
    for inputs, accuracy, loss in models:
        if inputs:
            best[inputs] = min(best.get(inputs, (np.inf, 0.0)), (loss, accuracy))
    return [(inputs, best[inputs][1]) for inputs in sorted(best, reverse=True)]


def at_most(models, inputs):
    """The accuracy of the first model with at most so many inputs; 0 where the path has none."""
    return next((accuracy for count, accuracy in models if 0 < count <= inputs), 0.0)


def mean_accuracies(found):
    """Of both, at every number of inputs that LassoNet visits in some split, over all that have so few."""
    visited = sorted({inputs for theirs, _ in found for inputs, _ in theirs}, reverse=True)
    with_so_few = {k: [pair for pair in found if pair[0][-1][0] <= k] for k in visited}
    return {
        k: np.mean([[at_most(m, k) for m in pair] for pair in some], axis=0)
        for k, some in with_so_few.items()
    }


def main() -> None:
    """Time and accuracy of both on three data sets, five splits each."""
    if not PEERS.exists():
        raise SystemExit("LassoNet is not installed: run `make peers` first.")
    rows, curves, totals = [], {}, np.zeros(2)
    for name in SETS:
        ours(name, 0)  # compiles
        times, found = np.zeros(2), []
        for seed in range(SPLITS):
            seconds, models = ours(name, seed)
            their_seconds, theirs = peer(name, seed)
            times += seconds, their_seconds
            found.append((theirs, models))
        means = mean_accuracies(found)
        behind = {inputs: float(a - b) for inputs, (a, b) in means.items() if a - b > SLACK}
        totals += times
        curves[name] = means
        rows.append([
            name, times[0] / SPLITS, times[1] / SPLITS, times[1] / times[0],
            f"{len(means) - len(behind)} of {len(means)}",
            ", ".join(f"{k}: {100 * v:.1f}" for k, v in behind.items()) or "none",
            show.met(not behind),
        ])  # fmt: skip
    rows.append(
        [
            "all",
            *(totals / SPLITS),
            totals[1] / totals[0],
            "",
            "",
            show.met(totals[1] >= RATIO * totals[0]),
        ]
    )
    show.table(
        f"Paths against LassoNet, hidden 100, {SPLITS} splits (seconds of a path; compiled)",
        [
            "",
            "deepprox s",
            "LassoNet s",
            "ratio",
            "counts within 0.5",
            "points behind at",
            "",
        ],
        rows,
    )
    # the first turn compiles
    ways = (
        (seconds_of, SPLITS, 1 + TURNS, f"compiled, the least of {TURNS}, sums of {SPLITS} splits"),
        (cold, 1, 1, "each in a new process with nothing compiled"),
    )
    for how, splits, turns, words in ways:
        rows = []
        for name in SETS:
            each = np.array([in_fits(name, seed, how, turns) for seed in range(splits)])
            length, whole, *fits = each.sum(0)
            row = [name, length, whole]
            for k, fit in enumerate(fits):
                ratios = ", ".join(f"{one[1] / one[2 + k]:.1f}" for one in each)
                row += [fit, whole / fit, ratios, show.met(whole < FITS * fit)]
            rows.append(row)
        columns = ["ratio", "of each split", ""]
        show.table(
            f"Paths of 50 strengths, all defaults: at most {FITS} fits from random starts ({words})",
            ["", "strengths", "path s", "fit s", *columns, "mean fit along it s", *columns],
            rows,
        )
    for name, means in curves.items():
        picked = list(means.items())[:: max(1, len(means) // 14)]
        show.table(
            f"{name}: mean test accuracy at a number of inputs",
            ["inputs", *(str(inputs) for inputs, _ in picked)],
            [
                [system, *(f"{100 * pair[k]:.1f}" for _, pair in picked)]
                for k, system in enumerate(("LassoNet", "deepprox"))
            ],
        )


if __name__ == "__main__":
    sys.exit(main())
