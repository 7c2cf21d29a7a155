"""Digits: objective, non-zeros and accuracy, against SciPy's L-BFGS-B on W+ - W- in time."""

import time
import warnings

import jax
import numpy as np
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data, show
from deepprox import DeepClassifier
from deepprox.joining.certificate import ravel, unravel
from deepprox.losses import Softmax
from deepprox.problem import Problem

CASES = [
    ("64-50-10 ReLU", (50,), "relu", 169.5),
    ("64-50-50-10 ReLU", (50, 50), "relu", 134.5),
    ("64-50-10 tanh", (50,), "tanh", 185.4),
    ("64-50-50-10 tanh", (50, 50), "tanh", 153.7),
]
SEEDS = range(5)


def estimator(hidden, link, alpha, seed):
    """The paper's setting: every weight and bias penalised, inputs as they are."""
    return DeepClassifier(
        hidden, link=link, alpha=alpha, penalize_bias=True, standardize=False, random_state=seed
    )  # fmt: skip


def fit(hidden, link, split, seed):
    """A fit and its seconds."""
    model = estimator(hidden, link, 1 / len(split.X), seed)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(split.X, split.y)
    return model, time.perf_counter() - began


def l_bfgs_b(model, split, target, seed):
    """Seconds until SciPy is within 1 % of ``target`` (sum scale), and the best it reaches."""
    with jax.enable_x64(True):
        n = len(split.X)
        posed = Problem(model.fitted_.network, Softmax(), split.X, np.eye(10)[split.y], np.full(n, 1 / n))
        W = posed.network.init(np.random.default_rng(seed), 64)
        loss_and_gradient = jax.jit(jax.value_and_grad(posed.mean_loss))
        loss_and_gradient(W)  # compile first
        p, trace = sum(w.size for w in W), []

        def objective(both):
            loss, gradient = loss_and_gradient(unravel(both[:p] - both[p:], W))
            g, value = ravel(gradient), float(loss) + both.sum() / n
            trace.append((time.perf_counter() - began, value * n))
            return value, np.concatenate([g + 1 / n, 1 / n - g])

        w = ravel(W)
        start = np.concatenate([np.maximum(w, 0), np.maximum(-w, 0)])
        began = time.perf_counter()
        scipy.optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * p),
            options={"maxiter": 3000, "maxfun": 4000, "ftol": 1e-12, "gtol": 1e-9},
        )  # fmt: skip
    seconds, values = np.array(trace).T
    reached = np.flatnonzero(values <= 1.01 * target)
    return (seconds[reached[0]] if reached.size else np.inf), values.min()


def main() -> None:
    """One row for each network: the best of a few starts, with the time of that fit."""
    split, rows = data.digits(), []
    n = len(split.X)
    for name, hidden, link, bound in CASES:
        for seed in SEEDS:
            fit(hidden, link, split, seed)  # compile first: the live part of a start has its own shape
        fits = [fit(hidden, link, split, seed) for seed in SEEDS]
        seconds = [s for _, s in fits]
        objectives = [model.objective_ * n for model, _ in fits]
        model, _ = fits[int(np.argmin(objectives))]
        # of the starts that tie for the best, the median time: rounding must not choose the fastest
        own = float(np.median([s for s, o in zip(seconds, objectives) if o <= 1.0001 * min(objectives)]))
        peers = [l_bfgs_b(model, split, min(objectives), seed) for seed in (0, 1)]
        share = 100 * model.n_nonzero_ / sum(w.size for w in model.fitted_.W)
        accuracy = 100 * model.score(split.X_test, split.y_test)
        fastest = min(s for s, _ in peers)
        ok = min(objectives) <= bound and share <= 7 and accuracy >= 96 and own < fastest
        rows.append([
            name, min(objectives), f"<= {bound}", np.median(objectives), share, accuracy,
            model.solution_.certificate, model.solution_.status, own, np.median(seconds), fastest,
            min(v for _, v in peers), show.met(ok),
        ])  # fmt: skip
    show.table(
        "Digits, gamma 1, best of 5 starts (sum scale; warm seconds; L-BFGS-B: to 1 %, best of 2 starts)",
        ["network", "best", "target", "median", "% non-zero", "% test", "certificate", "status", "s best",
         "s median", "s L-BFGS-B", "its best", ""],
        rows,
    )  # fmt: skip
