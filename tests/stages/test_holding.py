"""What is held at a kink is there: certificates of ReLU networks, recomputed without the library."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import softmax

from deepprox import DeepClassifier, DeepRegressor, links, losses, penalties
from deepprox.joining import finish as finish_
from deepprox.joining.certificate import ravel, unravel
from deepprox.joining.hessian import hessian
from deepprox.joining.holding import AWAY, Held, Metric, held_within, put_on_kinks
from deepprox.joining.kinks import Slopes
from deepprox.joining.point import look
from deepprox.solve import Options, initial, solve
from deepprox.struct import replace
from stages.problems import problem

ROUNDING = 1e-12
ALPHA = 0.01


def data(seed, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 0] + np.abs(X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()  # as squared loss takes it


def fitted(seed, kind, penalty):
    X, y = data(seed)
    given = {"hidden_layer_sizes": (4,), "alpha": ALPHA, "penalty": penalty, "random_state": seed}
    if kind == "squared":
        return DeepRegressor(**given).fit(X, y), X, y[:, None]
    labels = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    return DeepClassifier(**given).fit(X, labels), X, np.eye(3)[labels]


def least_residual(model, X, Y, kind, penalty):
    """The least residual that slopes in [0, 1] give where z is within ``held_within`` of zero, and how many.

    A linear program: derivatives in the first block are linear in the slopes, those in the last have none.
    """
    X = (X - X.mean(0)) / X.std(0)
    (V, W), n = model.fitted_.W, len(X)
    z = X @ V[:, 1:].T + V[:, 0]
    eta = np.maximum(z, 0) @ W[:, 1:].T + W[:, 0]
    delta = (eta - Y if kind == "squared" else softmax(eta, axis=1) - Y) / n
    live = V.any(1)
    held = (np.abs(z) <= model.solution_.held_within + ROUNDING) & live
    up = delta @ W[:, 1:]
    F = np.column_stack([np.ones(n), X])
    of_last = delta.T @ np.column_stack([np.ones(n), np.maximum(z, 0)])
    of_first = (up * (z > 0) * ~held).T @ F
    entries = np.argwhere(held)
    adds = np.zeros((len(entries), *V.shape))
    for k, (i, u) in enumerate(entries):
        adds[k, u] = up[i, u] * F[i]
    pull = lambda w, g: np.where(np.arange(w.shape[1]) == 0, g, g + slope(w, penalty))  # noqa: E731
    fixed = np.abs(of_last + slope(W, penalty))[(W != 0) | (penalty == "l2")].max(initial=0)
    fixed = max(fixed, np.abs(of_last[:, 0]).max())
    base = pull(V, of_first).ravel()
    if penalty == "l1":  # at zero the penalty takes back up to alpha
        slack = np.where((V == 0) & (np.arange(V.shape[1]) > 0), ALPHA, 0).ravel()
        over = (np.abs(of_last[:, 1:]) - ALPHA)[W[:, 1:] == 0].max(initial=0)
        fixed = max(fixed, over)
    else:
        slack = np.zeros(V.size)
    free = live.repeat(V.shape[1])
    A, one = adds.reshape(len(entries), V.size).T[free], np.ones((free.sum(), 1))
    rows = np.block([[A, -one], [-A, -one]])
    bound = np.concatenate([slack[free] - base[free], slack[free] + base[free]])
    cost = np.append(np.zeros(len(entries)), 1.0)
    bounds = [(0, 1)] * len(entries) + [(0, None)]
    found = linprog(
        cost, A_ub=rows, b_ub=bound, bounds=bounds, options={"primal_feasibility_tolerance": 1e-10}
    )
    return max(fixed, found.fun), len(entries)


def slope(w, penalty):
    each = ALPHA * (np.sign(w) if penalty == "l1" else w)
    return np.where(np.arange(w.shape[1]) == 0, 0, each)


def check(seeds):
    n_held = 0
    for seed in seeds:
        for kind in ("squared", "softmax"):
            for penalty in ("l1", "l2"):
                model, X, Y = fitted(seed, kind, penalty)
                found = model.solution_
                assert found.status == "converged" and found.held_within <= ROUNDING
                residual, count = least_residual(model, X, Y, kind, penalty)
                assert residual <= 1.05e-6, (seed, kind, penalty, residual)
                n_held += count
    assert n_held >= len(seeds)


def test_held_entries_are_at_their_kinks():
    check(range(3))


@pytest.mark.slow
def test_held_entries_of_eighty_fits_are_at_their_kinks():
    check(range(3, 23))


@pytest.mark.parametrize("hidden", [(5,), (4, 3)], ids=str)
def test_a_step_back_to_the_kinks_keeps_the_certificate(hidden, monkeypatch):
    """From beside the kinks by 1e-6 the entries go back, and their slopes follow."""
    seen = []

    def beside(problem, W, slopes, H, free, step, tol):
        there = put_on_kinks(problem, W, slopes, H, free, step, tol)
        held = Held.of(problem, there.W, there.slopes, there.point)
        metric = Metric.of(there.W, held.jacobian(problem, there.W, there.slopes), H, free, step)
        w = ravel(there.W)
        w[metric.places] += metric.back(1e-6 * np.random.default_rng(0).normal(size=held.total))[0]
        V = unravel(w, there.W)
        back = put_on_kinks(problem, V, there.slopes, H, free, step, tol)
        far = [
            held_within(problem, W, slopes, look(problem, W, slopes, step))
            for W, slopes in ((V, there.slopes), back[:2])
        ]
        seen.append((held.total, *far, float(back.point.certificate - there.point.certificate)))
        return there

    monkeypatch.setattr(finish_, "put_on_kinks", beside)
    posed, _ = problem(links.ReLU(), penalties.L1(0.01), hidden, losses.Squared(), n=60, seed=3)
    found = solve(posed, initial(posed, 0), Options(max_iter=3000))
    assert found.status == "converged" and found.held_within <= ROUNDING
    n_held, began, ended, more = seen[-1]
    assert n_held > 0 and began > 1e-7 and ended <= ROUNDING and more < 1e-6


def test_a_slope_that_does_nothing_is_let_go():
    """Far from its kink, at an observation that the loss does not feel."""
    posed, W = problem(links.ReLU(), penalties.L2(0.01), loss=losses.Squared())
    weight = np.where(np.arange(len(posed.weight)) < 3, 1e-13, posed.weight)
    posed = replace(posed, weight=weight)
    z = posed.X @ W[0][:, 1:].T + W[0][:, 0]
    mask = (np.abs(z) > AWAY) & (np.arange(len(z)) < 3)[:, None]
    slopes, free = Slopes((mask,), (np.where(mask, 0.5, 0.0),)), np.arange(sum(w.size for w in W))
    after = put_on_kinks(posed, W, slopes, hessian(posed, W, slopes, free), free, 1.0, 1e-6)
    assert after.n_held == 0 < mask.sum() and not after.slopes.held[0].any()
    for a, b in zip(after.W, W):
        np.testing.assert_array_equal(a, b)
