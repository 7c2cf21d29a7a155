"""Laplace's approximation: exact where the posterior is Gaussian, close where it nearly is."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from deepprox import DeepClassifier, DeepRegressor
from deepprox.blocks import Dense
from deepprox.links import Identity
from deepprox.penalties import L1, L2, ElasticNet, GroupL2, LogSum, StudentT
from deepprox.posterior.laplace import laplace, log_prior_constant
from deepprox.runtime import precision

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, -0.5, 0.0] + 0.7 * RNG.normal(size=60)
SIGMA, ALPHA = 0.7, 0.1


@pytest.fixture(autouse=True)
def as_in_an_estimator():
    """The programs of the fit serve again."""
    with precision(np.float64):
        yield


@pytest.fixture(scope="module")
def ridge():
    model = DeepRegressor((), penalty="l2", alpha=ALPHA, penalize_bias=True, standardize=False, tol=1e-10)
    return model.fit(X, Y)


def test_bayesian_ridge_is_exact(ridge):
    found = laplace(ridge.fitted_.problem(), ridge.fitted_.W, ridge.fitted_.n, sigma=SIGMA)
    F = np.column_stack([np.ones(60), X])
    prior = SIGMA**2 / (60 * ALPHA) * np.eye(4)
    evidence = scipy.stats.multivariate_normal(np.zeros(60), F @ prior @ F.T + SIGMA**2 * np.eye(60)).logpdf(
        Y
    )
    assert found.log_evidence == pytest.approx(evidence, abs=1e-6)
    P = F.T @ F / SIGMA**2 + np.linalg.inv(prior)
    np.testing.assert_allclose(found.root @ found.root.T, P, rtol=1e-8)
    np.testing.assert_allclose(found.mode, np.linalg.solve(P, F.T @ Y / SIGMA**2), atol=1e-7)


def test_draws_have_the_covariance(ridge):
    found = laplace(ridge.fitted_.problem(), ridge.fitted_.W, ridge.fitted_.n, sigma=SIGMA)
    w = found.draw(4, 5000, seed=0)["w"].reshape(-1, 4)
    truth = np.linalg.inv(found.root @ found.root.T)
    np.testing.assert_allclose(np.cov(w.T), truth, atol=5 * np.diag(truth).max() / np.sqrt(len(w)))


def test_diagonal_and_last_block(ridge):
    diagonal = laplace(
        ridge.fitted_.problem(), ridge.fitted_.W, ridge.fitted_.n, sigma=SIGMA, curvature="diagonal"
    )
    full = laplace(ridge.fitted_.problem(), ridge.fitted_.W, ridge.fitted_.n, sigma=SIGMA)
    np.testing.assert_allclose(diagonal.root**2, np.diag(full.root @ full.root.T), rtol=1e-8)
    assert diagonal.log_evidence is None and "diagonal" in diagonal.message


@pytest.mark.parametrize(
    "penalty",
    [L1(0.7), L2(0.7), ElasticNet(0.7, 0.3), StudentT(0.9, 2.0, 0.5), LogSum(0.9, 0.2)],
    ids=lambda p: type(p).__name__,
)
def test_prior_constants_are_integrals(penalty):
    scale = 3.0
    density = lambda w: np.exp(-scale * float(penalty.value(np.array([[w]]))))  # noqa: E731
    whole = 2 * scipy.integrate.quad(density, 0, np.inf, limit=200)[0]
    block = Dense(1, Identity(), penalty)
    assert float(log_prior_constant(block, scale)) == pytest.approx(-np.log(whole), abs=1e-6)


def test_a_prior_of_unknown_constant_says_so():
    model = DeepRegressor((), penalty=GroupL2(0.01), standardize=False).fit(X, Y)
    draws = model.sample_posterior("laplace", n_draws=10, random_state=0)
    assert draws.log_evidence is None and "GroupL2 is not known" in draws.evidence_message


def test_logistic_evidence_against_quadrature():
    x = X[:, :1]
    y = (x[:, 0] + RNG.logistic(size=60) > 0).astype(int)
    model = DeepClassifier(
        (), loss="logistic", penalty="l2", alpha=0.05, penalize_bias=True, standardize=False
    )
    found = laplace(model.fit(x, y).fitted_.problem(), model.fitted_.W, model.fitted_.n)
    rate = 60 * 0.05

    def density(b, w):
        eta = b + w * x[:, 0]
        log_p = y @ eta - np.logaddexp(0, eta).sum() - rate * (b**2 + w**2) / 2 + np.log(rate / (2 * np.pi))
        return np.exp(log_p)

    truth = np.log(scipy.integrate.dblquad(density, -4, 4, -3, 3)[0])
    assert found.log_evidence == pytest.approx(truth, abs=0.05)


def test_evidence_prefers_the_model_that_made_the_data():
    line = DeepRegressor((), penalty="l1", alpha=0.02, tol=1e-8).fit(X, Y)
    nothing = DeepRegressor((), penalty="l1", alpha=0.02, tol=1e-8).fit(np.roll(X, 1, axis=0), Y)
    first, second = (m.sample_posterior("laplace", n_draws=4, sigma=SIGMA) for m in (line, nothing))
    assert first.log_evidence > second.log_evidence + 10


def test_a_network_on_its_live_weights():
    y = np.tanh(2 * X[:, 0]) + 0.2 * RNG.normal(size=60)
    model = DeepRegressor((4,), link="tanh", alpha=0.01, random_state=0).fit(X, y)
    draws = model.sample_posterior("laplace", n_draws=500, random_state=0)
    dead = model.fitted_.W[0] == 0
    live = model.live_[1]
    dead[live, 0] = False  # a free bias of a live unit varies, whatever its value
    assert (draws.W[0][:, :, dead] == 0).all() and np.isfinite(draws.log_evidence)
    low, high = model.predict_interval(X, 0.9, posterior=draws)
    assert 0.8 < ((low <= y) & (y <= high)).mean() <= 1
    last = model.sample_posterior("laplace", n_draws=20, random_state=0, curvature="last_block")
    assert (np.ptp(last.W[0], axis=(0, 1)) == 0).all() and (np.ptp(last.W[1], axis=(0, 1)) > 0).any()


def test_a_low_rank_curvature_comes_near_the_full_one():
    y = np.tanh(2 * X[:, 0]) + 0.2 * np.random.default_rng(3).normal(size=60)
    model = DeepRegressor((6,), link="tanh", penalty="l2", alpha=0.01, splits="none", random_state=0).fit(
        X, y
    )
    problem = model.fitted_.problem()
    covariances = {}
    for curvature in ("full", "low_rank", "diagonal"):
        found = laplace(problem, model.fitted_.W, model.fitted_.n, sigma=0.2, curvature=curvature)
        w = found.draw(1, 20000, seed=0)["w"][0]
        covariances[curvature] = np.cov(w.T)
    full = covariances.pop("full")
    off = {name: np.abs(c - full).max() / np.abs(full).max() for name, c in covariances.items()}
    assert off["low_rank"] < 0.05 and off["diagonal"] > 3 * off["low_rank"]
    assert found.bends is None and found.log_evidence is None
