"""Which inputs matter: ten of a hundred, in one hidden layer of interactions, five hundred observations.

``y = sum_k c_k max(x_a + s_k x_b, 0) + noise`` over five pairs of inputs. The network chooses along its path
by BIC, every model refitted at the weakest strength (``relax=True``); the lasso by BIC (scikit-learn's
``LassoLarsIC``); LassoNet, where ``make peers`` has installed it, by the validation loss of its path.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import LassoLarsIC

import deepprox
from benchmarks import show
from benchmarks.paths import PEERS
from deepprox import DeepRegressor

N, INPUTS, TRUE, SETS, TARGET = 500, 100, 10, 20, 0.95


def data(seed):
    """Inputs, response, and the inputs that matter."""
    rng = np.random.default_rng(seed)
    X, true = rng.normal(size=(N, INPUTS)), rng.choice(INPUTS, TRUE, replace=False)
    signs = np.array([1, -1, 1, -1, 1])
    signal = (2 * signs * np.maximum(X[:, true[::2]] + signs * X[:, true[1::2]], 0)).sum(axis=1)
    return X, signal + 0.5 * rng.normal(size=N), true


def f1(mask, true):
    """The harmonic mean of precision and recall of a selection."""
    hits = mask[true].sum()
    return float(2 * hits / (mask.sum() + len(true)))


def by_lassonet(X, y, seed):
    """LassoNet's selection, run by its own Python."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, X=X, y=y)
        done = subprocess.run(
            [PEERS, "-m", "benchmarks.peer_lassonet_support", str(file), str(seed)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[1],
        )
    return np.array(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """F1 of the selected inputs, mean over the data sets."""
    found: dict[str, list] = {"deepprox, BIC": [], "lasso, BIC": []}
    if PEERS.exists():
        found["LassoNet, validation"] = []
    for seed in range(SETS):
        X, y, true = data(seed)
        model = DeepRegressor((10,), link="tanh", random_state=0)
        chosen = deepprox.path(model, X, y, 40, eps=1e-2, relax=True).select("bic").estimator
        masks = {
            "deepprox, BIC": chosen.selected_features_,
            "lasso, BIC": LassoLarsIC("bic").fit(X, y).coef_ != 0,
        }
        if PEERS.exists():
            masks["LassoNet, validation"] = by_lassonet(X, y, seed)
        for name, mask in masks.items():
            found[name].append((f1(mask, true), mask.sum()))
    rows = []
    for name, pairs in found.items():
        scores, sizes = np.array(pairs, float).T
        error = scores.std(ddof=1) / np.sqrt(SETS)
        verdict = show.met(scores.mean() >= TARGET) if name.startswith("deepprox") else ""
        rows.append([name, f"{scores.mean():.3f} ({error:.3f})", scores.min(), sizes.mean(), verdict])
    show.table(
        f"Support of {TRUE} of {INPUTS} inputs, n = {N}, {SETS} data sets",
        ["", "mean F1 (standard error)", "least F1", "inputs selected", f"F1 >= {TARGET}"],
        rows,
    )
