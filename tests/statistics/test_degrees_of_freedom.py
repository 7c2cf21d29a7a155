"""Degrees of freedom: closed forms of one block, finite differences of networks, four methods that agree."""

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge

from deepprox import DeepRegressor, activities, links, losses, penalties
from deepprox.blocks import Dense
from deepprox.joining.join import join
from deepprox.problem import Network, Problem
from deepprox.statistics import degrees_of_freedom as module
from deepprox.statistics import refits
from deepprox.statistics.degrees_of_freedom import degrees_of_freedom
from deepprox.struct import replace
from stages.problems import problem

TOL = 1e-7
rng = np.random.default_rng(3)
X = rng.normal(size=(60, 8)) @ (np.eye(8) + 0.4)
Y = X[:, :3] @ [1.0, -2.0, 0.5] + rng.normal(size=60)
TIGHT = {"tol": 1e-14, "max_iter": 10**6}


def exact(posed, W):
    return degrees_of_freedom(posed, W, len(posed.X), "exact", tol=TOL)


def one_block(penalty, y, coef, intercept, loss=None, X=X):
    """A linear model with a free bias, and the weights that scikit-learn found for it."""
    y, loss = (y[:, None] if y.ndim == 1 else y).astype(float), losses.Squared() if loss is None else loss
    network = Network((Dense(y.shape[1], links.Identity(), penalty),))
    posed = Problem(network, loss, X, y, np.full(len(X), 1 / len(X)))
    return posed, (np.column_stack([np.ravel(intercept), np.atleast_2d(coef)]),)


def hat_trace(curvature, bend, live=slice(None)):
    """``trace((F' V F + n bend)^-1 F' V F)`` of a linear model with these columns and a free bias."""
    F = np.column_stack([np.ones(len(X)), X[:, live]])
    G = F.T @ (np.reshape(curvature, (-1, 1)) * F)
    return np.trace(np.linalg.solve(G + len(X) * np.diag(np.append(0.0, bend)), G))


# one penalty for the lasso, ridge and what is between: one program
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_of_the_lasso_and_the_elastic_net(l1_ratio):
    theirs = ElasticNet(0.4, l1_ratio=l1_ratio, **TIGHT).fit(X, Y)
    posed, W = one_block(penalties.ElasticNet(0.4, l1_ratio), Y, theirs.coef_, theirs.intercept_)
    live = theirs.coef_ != 0
    df, sampled = (degrees_of_freedom(posed, W, 60, m, tol=TOL, n_draws=3) for m in ("exact", "hutchinson"))
    assert 2 < live.sum() < 8 and df.n_live == live.sum() + 1
    if l1_ratio == 1:  # exactly the number of weights that are not zero, in every draw
        assert df.value == pytest.approx(live.sum() + 1, abs=1e-8)
        assert sampled.value == pytest.approx(live.sum() + 1, abs=1e-8)
    else:
        bend = np.full(live.sum(), 0.4 * 0.5)
        assert df.value == pytest.approx(hat_trace(1.0, bend, live), abs=1e-8)


def test_of_ridge_are_the_trace_of_its_hat_matrix():
    theirs = Ridge(0.5 * 60, solver="cholesky").fit(X, Y)
    posed, W = one_block(penalties.ElasticNet(0.5, 0.0), Y, theirs.coef_, theirs.intercept_)
    d = np.linalg.svd(X - X.mean(0), compute_uv=False)
    assert exact(posed, W).value == pytest.approx(1 + (d**2 / (d**2 + 60 * 0.5)).sum(), abs=1e-8)


def test_of_mcp_count_its_negative_curvature():
    # a response for which these weights are stationary: residuals balance the slopes of the penalty
    w, gamma, alpha = np.array([2.0, -0.5, 0.0, 0.3]), 3.0, 0.4
    slope = np.sign(w) * np.maximum(alpha - np.abs(w) / gamma, 0)
    F = np.column_stack([np.ones(60), X[:, w[:4].nonzero()[0]]])
    r = F @ np.linalg.solve(F.T @ F, 60 * np.append(0.0, slope[w != 0]))
    posed, W = one_block(penalties.MCP(alpha, gamma), X[:, :4] @ w + r, w, 0.0, X=X[:, :4])
    bend = np.where(np.abs(w) < gamma * alpha, -1 / gamma, 0.0)[w != 0]
    df = exact(posed, W)
    assert df.value == pytest.approx(hat_trace(1.0, bend, w.nonzero()[0]), abs=1e-8) and df.value > df.n_live


def test_of_logistic_ridge_are_the_trace_of_its_hat_matrix():
    theirs = LogisticRegression(C=1 / (0.05 * 60), solver="newton-cholesky", tol=1e-12).fit(X, Y > 0)
    given = penalties.ElasticNet(0.05, 0.0), Y > 0, theirs.coef_, theirs.intercept_
    posed, W = one_block(*given, loss=losses.Logistic())
    p = theirs.predict_proba(X)[:, 1]
    assert exact(posed, W).value == pytest.approx(hat_trace(p * (1 - p), np.full(8, 0.05)), abs=1e-8)


def test_classes_without_a_penalty_have_one_column_less():
    classes = rng.integers(3, size=60)
    theirs = LogisticRegression(C=np.inf, solver="newton-cg", tol=1e-10, max_iter=1000).fit(X, classes)
    given = penalties.ElasticNet(0.0), np.eye(3)[classes], theirs.coef_, theirs.intercept_
    posed, W = one_block(*given, loss=losses.Softmax())
    df = exact(posed, W)
    # adding the same to all columns leaves the probabilities as they are
    assert df.value == pytest.approx(2 * 9, abs=1e-8) and df.n_flat == 9 and df.n_live == 27


def test_a_weight_of_three_is_three_observations():
    rows = np.repeat(np.arange(60), [3] * 10 + [1] * 50)
    theirs = ElasticNet(0.4, **TIGHT).fit(X[rows], Y[rows])
    given = penalties.ElasticNet(0.4), Y, theirs.coef_, theirs.intercept_
    posed, W = one_block(*given)
    merged = replace(posed, weight=np.bincount(rows) / 80)
    many = replace(posed, X=X[rows], y=posed.y[rows], weight=np.full(80, 1 / 80))
    a, b = (degrees_of_freedom(p, W, 80, "exact", tol=TOL) for p in (merged, many))
    assert a.value == pytest.approx(b.value, abs=1e-10)
    assert abs(a.value - round(a.value)) > 1e-3


def divergence(posed, W, step=1e-4):
    """``sum_i d mean_i / d y_i`` by a refit to each side of every response."""
    y, total = np.asarray(posed.y), 0.0
    W, solved = refits.refit(posed, W, y, TOL)
    for place in np.ndindex(y.shape):
        nudge = np.zeros(y.shape)
        nudge[place] = step
        if posed.loss.simplex:
            nudge[place[0]] -= step / y.shape[1]
        ends = [refits.refit(posed, W, y + side * nudge, TOL) for side in (1, -1)]
        solved &= all(ok for _, ok in ends)
        ahead, behind = (np.asarray(posed.loss.mean(refits.eta_of(posed, end))) for end, _ in ends)
        total += (ahead - behind)[place] / (2 * step)
    assert solved
    return total


def network(n=30, activity=None, response=None, **changes):
    """A small network, joined from its start."""
    given = {
        "p": 5,
        "k": 1,
        "hidden": (4,),
        "penalty": penalties.L1(0.02),
        "loss": losses.Squared(),
    } | changes
    posed, W = problem(n=n, **given)
    first, *rest = posed.network.blocks
    posed = replace(posed, network=Network((replace(first, activity=activity), *rest)))
    if response is not None:
        posed = replace(posed, y=response(posed.y))
    found = join(posed, W, TOL / 100, 3000, lambda phase, rows: None)
    assert found.status == "converged"
    return posed, found.W


counts = lambda y: np.round(np.exp(y))  # noqa: E731
CASES = {"relu at kinks": ({"link": links.ReLU(), "seed": 3}, 1)}
SLOW = {
    "tanh": ({}, 0),
    "groups": ({"penalty": penalties.GroupL2(0.05)}, 0),
    "two hidden layers": ({"hidden": (4, 3)}, 0),
    "hard tanh": ({"link": links.HardTanh()}, 0),
    "nuclear": ({"penalty": penalties.Nuclear(0.03)}, 0),
    "levels": ({"penalty": penalties.MaxNorm(0.2), "hidden": (), "k": 3}, 0),
    "box": ({"penalty": penalties.Box(-0.3, 0.3), "hidden": (), "k": 2}, 0),
    "logarithms": ({"penalty": penalties.LogSum(0.01)}, 0),
    "softmax": ({"loss": losses.Softmax(), "k": 3}, 0),
    "logistic": ({"loss": losses.Logistic(), "response": lambda y: (y > 0).astype(float)}, 0),
    "poisson": ({"loss": losses.Poisson(), "response": counts}, 0),
    "negative binomial": ({"loss": losses.NegativeBinomial(0.5), "response": counts}, 0),
    "gamma": ({"loss": losses.Gamma(2.0), "response": np.exp}, 0),
    "huber": ({"loss": losses.Huber(0.3)}, 0),
    "activity": ({"activity": activities.ActivityGroup(0.02)}, 0),
    "groups of units": ({"link": links.LogSumExp(2)}, 0),
}
EVERY = [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@pytest.mark.parametrize("name", EVERY)
def test_they_are_the_divergence(name):
    changes, least_held = (CASES | SLOW)[name]
    posed, W = network(**changes)
    df = exact(posed, W)
    assert df.n_held >= least_held and df.value > 1.5
    assert df.value == pytest.approx(divergence(posed, W), abs=1e-4)


@pytest.fixture(scope="module")
def deep():
    """Two hidden layers of tanh on 150 observations, certified."""
    posed, W = problem(hidden=(6, 4), penalty=penalties.L1(0.004), loss=losses.Squared(), n=150, p=5, k=1)
    found = join(posed, W, 1e-10, 3000, lambda phase, rows: None)
    assert found.status == "converged"
    return posed, found.W


def test_four_methods_agree(deep):
    posed, W = deep
    known = exact(posed, W)
    assert known.defined and 3 < known.value < known.n_live and known.smallest_eigenvalue > 0
    for method, draws in [("hutchinson", 30), ("perturbation", 30), ("bootstrap", 60)]:
        df = degrees_of_freedom(posed, W, 150, method, tol=1e-6, n_draws=draws, rng=0)
        assert df.method == method and 0 < df.standard_error < 0.25 * known.value
        assert abs(df.value - known.value) < 5 * df.standard_error, df


def test_auto_is_exact_for_few_weights_and_samples_more(deep, monkeypatch):
    posed, W = deep
    assert degrees_of_freedom(posed, W, 150, tol=TOL).method == "exact"
    monkeypatch.setattr(module, "FEW", 5)
    sampled = degrees_of_freedom(posed, W, 150, tol=TOL, n_draws=2, rng=0)
    assert sampled.method == "hutchinson" and sampled.n_draws == 2
    monkeypatch.setattr(module, "DENSE", 5)
    with pytest.raises(ValueError, match=r"up to 5 live weights, .* choose method='hutchinson'"):
        degrees_of_freedom(posed, W, 150, "exact", tol=TOL)


def test_a_seed_gives_the_same_draws(deep):
    posed, W = deep
    a, b, c = (degrees_of_freedom(posed, W, 150, "hutchinson", tol=TOL, n_draws=2, rng=s) for s in (0, 0, 1))
    assert a == b and a.value != c.value


def at_a_maximum():
    """Between two minima of a squared loss with Student's penalty there is a maximum."""
    x, y = np.zeros((16, 1)), np.full((16, 1), 3.0)
    w = brentq(lambda w: w - 3.0 + 2 * w / (0.09 + w**2), 0.3, 1.5)
    network = Network((Dense(1, links.Identity(), penalties.StudentT(1.0, 1.0, 0.3), penalize_bias=True),))
    return Problem(network, losses.Squared(), x, y, np.full(16, 1 / 16)), (np.array([[w, 0.0]]),)


@pytest.mark.parametrize("method", ["exact", "hutchinson"])
def test_a_maximum_has_none(method):
    posed, W = at_a_maximum()
    df = degrees_of_freedom(posed, W, 16, method, tol=TOL, n_draws=2)
    assert not df.defined and np.isnan(float(df))
    assert "not positive definite" in df.message and str(df).startswith("not defined: the Hessian")


@pytest.mark.parametrize("method", ["exact", "hutchinson"])
def test_no_solution_has_none(deep, method):
    posed, W = deep
    df = degrees_of_freedom(posed, (W[0] * 1.1, *W[1:]), 150, method, tol=TOL)
    assert not df.defined and "is not a solution" in df.message


def test_refits_that_fail_are_told(deep, monkeypatch):
    posed, W = deep
    monkeypatch.setattr(refits, "refit", lambda posed, W, *_: (W, False))
    df = degrees_of_freedom(posed, W, 150, "perturbation", tol=TOL, n_draws=4, rng=0)
    assert not df.defined and "4 of 4 draws left out" in str(df)


def test_what_cannot_be_computed_gets_a_sentence(deep):
    posed, W = deep
    with pytest.raises(ValueError, match=r"method must be 'auto', 'exact', .*, got 'newton'"):
        degrees_of_freedom(posed, W, 150, "newton")
    with pytest.raises(ValueError, match="n_draws must be a whole number of at least 2, got 1"):
        degrees_of_freedom(posed, W, 150, "bootstrap", n_draws=1)
    hinge = replace(posed, loss=losses.SquaredHinge())
    with pytest.raises(ValueError, match="SquaredHinge has none: choose a loss that is a likelihood"):
        degrees_of_freedom(hinge, W, 150)
    with pytest.raises(ValueError, match="Huber cannot draw responses"):
        degrees_of_freedom(replace(posed, loss=losses.Huber()), W, 150, "bootstrap", n_draws=2)
    last = replace(posed.network.blocks[-1], penalty=penalties.Nuclear(0.01))
    levelled = replace(posed, network=Network((*posed.network.blocks[:-1], last)))
    with pytest.raises(ValueError, match="'hutchinson' needs penalties that are smooth"):
        degrees_of_freedom(levelled, W, 150, "hutchinson")


def test_the_empty_network_has_its_bias(deep):
    posed, W = deep
    empty = tuple(np.zeros_like(w) for w in W)
    empty[-1][0, 0] = np.mean(posed.y)
    assert exact(posed, empty).value == pytest.approx(1.0, abs=1e-12)
    empty[-1][0, 0] = 0.0
    charged = tuple(replace(block, penalize_bias=True) for block in posed.network.blocks)
    assert exact(replace(posed, network=Network(charged)), empty).value == 0.0


def test_draws_are_asked_for_anew(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = DeepRegressor((), alpha=0.02).fit(X, X[:, 0] - X[:, 1])
    monkeypatch.setattr(module, "FEW", 1)
    known = model.degrees_of_freedom(random_state=0)
    assert known.method == "hutchinson" and known.n_draws == 50
    assert model.degrees_of_freedom().value == known.value  # kept
    assert model.degrees_of_freedom("hutchinson", n_draws=7, random_state=1).n_draws == 7
