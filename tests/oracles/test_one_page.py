"""The method on one page (``docs/design/one_page.py``) is what the library does."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from deepprox import DeepClassifier, DeepRegressor, links, losses, penalties
from deepprox.solve import Options, initial, solve
from deepprox.splitting import admm
from stages.problems import problem

PAGE = Path(__file__).parents[2] / "docs" / "design" / "one_page.py"
LINKS = {"tanh": links.Tanh(), "relu": links.ReLU()}
LOSSES = {"squared": losses.Squared(), "softmax": losses.Softmax()}
ALPHA = 0.05
EXACT = admm.Inner(z=3, newton=200, w=20_000)  # the page solves every step to the end


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("one_page", PAGE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def both(page, activation, loss, hidden, alpha=ALPHA):
    """The same small problem for the library and for the page, and starting weights."""
    posed, _ = problem(LINKS[activation], penalties.L1(alpha), hidden, LOSSES[loss])
    return posed, page.Problem(posed.X, posed.y, alpha, activation, loss), initial(posed, 0)[0]


def close(ours, theirs, within):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=within)


def test_it_is_one_page():
    assert len(PAGE.read_text().splitlines()) <= 150


CASES = [
    ("tanh", "squared", (3,)),
    ("relu", "softmax", (3,)),
    ("tanh", "softmax", (4, 3)),
    ("relu", "squared", (4, 3)),
]


@pytest.mark.parametrize(("activation", "loss", "hidden"), CASES)
def test_sweeps_are_those_of_the_library(page, activation, loss, hidden):
    posed, plain, W = both(page, activation, loss, hidden)
    rho = tuple(np.linspace(0.5, 1.0, len(W)))
    found = solve(posed, [W], Options(join=False, rho=rho, inner=EXACT, max_iter=3))
    W, Z, U = page.admm(plain, W, rho, sweeps=3, growth=1.0)
    for ours, theirs in [(W, found.W), (Z, found.memory.Z), (U, found.memory.U)]:
        close(ours, theirs, 1e-10)
    assert [(w == 0).tolist() for w in W] == [(w == 0).tolist() for w in found.W]
    assert sum((w == 0).sum() for w in W) > 0
    assert page.certificate(plain, W) == pytest.approx(found.certificate, rel=1e-8)
    assert plain.objective(W)[0] == pytest.approx(found.objective, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*max_iter:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("activation", "loss", "max_iter"),
    [("relu", "squared", 45), ("relu", "softmax", 45), ("tanh", "squared", 300), ("tanh", "softmax", 300)],
)
def test_the_certificate_of_a_fit_can_be_computed_again(page, activation, loss, max_iter):
    posed, plain, _ = both(page, activation, loss, (4,))
    estimator, y = (DeepRegressor, posed.y) if loss == "squared" else (DeepClassifier, posed.y.argmax(1))
    fit = estimator((4,), link=activation, alpha=ALPHA, standardize=False, max_iter=max_iter, random_state=0)
    fit.fit(posed.X, y)
    W = [np.c_[b, w.T] for b, w in zip(fit.intercepts_, fit.coefs_)]
    again = page.certificate(plain, W)
    assert again == pytest.approx(fit.solution_.certificate, rel=1e-9, abs=1e-14)
    assert again > 1e-6 if max_iter == 45 else again <= 1e-6
    assert plain.objective(W)[0] == pytest.approx(fit.objective_, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_convex_layer_has_one_solution(page, loss):
    posed, plain, W = both(page, "tanh", loss, ())
    found, own = solve(posed, [W], Options(tol=1e-10)), page.quasi_newton(plain, W, tol=1e-10)
    assert plain.objective(own)[0] == pytest.approx(found.objective, rel=1e-14)
    assert 0 < np.count_nonzero(own[0][:, 1:]) < own[0][:, 1:].size
    assert ((own[0] == 0) == (found.W[0] == 0)).all()


def test_quasi_newton_steps_return_to_the_solution_of_the_library(page):
    posed, plain, W = both(page, "tanh", "softmax", (4,), 0.02)
    found = solve(posed, [W], Options(tol=1e-9))
    rng = np.random.default_rng(0)
    near = [w + 1e-3 * rng.normal(size=w.shape) for w in found.W]
    own = page.quasi_newton(plain, near, tol=1e-9)
    assert page.certificate(plain, own) <= 1e-9 < 1e-4 < page.certificate(plain, near)
    assert plain.objective(own)[0] == pytest.approx(found.objective, rel=1e-12)
    for a, b in zip(own, found.W):  # biases of units without weights may differ
        assert ((a == 0) == (b == 0))[:, 1:].all()


def test_split_then_join_ends_at_a_stationary_point(page):
    _, plain, W = both(page, "tanh", "softmax", (4,))
    swept, *_ = page.admm(plain, W, [0.1, 0.1], sweeps=10)
    own = page.quasi_newton(plain, swept)
    assert page.certificate(plain, own) <= 1e-8 < page.certificate(plain, swept)
    assert plain.objective(own)[0] < plain.objective(swept)[0] < plain.objective(W)[0]
    assert sum(map(np.count_nonzero, own)) < sum(w.size for w in W)
