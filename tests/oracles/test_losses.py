"""One block is a known model: what scikit-learn, statsmodels and SciPy fit, to the last digits."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.special import huber
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from deepprox import DeepClassifier, DeepRegressor, losses

ONE_BLOCK = {"hidden_layer_sizes": (), "standardize": False, "tol": 1e-10, "random_state": 0}
ALPHA = 0.01


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def assert_same(ours, coef, intercept, atol=1e-7):
    np.testing.assert_allclose(ours.coefs_[0].T, np.atleast_2d(coef), atol=atol)
    np.testing.assert_allclose(ours.intercepts_[0], np.ravel(intercept), atol=atol)


@pytest.mark.parametrize("name, theirs", [("poisson", PoissonRegressor), ("gamma", GammaRegressor)])
def test_log_links(diabetes, name, theirs):
    X, y = diabetes
    y = np.round(y / 20) + (name == "gamma")
    ours = DeepRegressor(loss=name, penalty="l2", alpha=ALPHA, **ONE_BLOCK).fit(X, y)
    theirs = theirs(alpha=ALPHA, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
    assert_same(ours, theirs.coef_, theirs.intercept_)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7)


@pytest.mark.parametrize("dispersion", [0.1, 1.0])
def test_negative_binomial(diabetes, dispersion):
    X, y = diabetes
    y = np.round(y / 20)
    loss = losses.NegativeBinomial(dispersion)
    ours = DeepRegressor(loss=loss, penalty="none", **ONE_BLOCK).fit(X, y)
    family = sm.families.NegativeBinomial(alpha=dispersion)
    theirs = sm.GLM(y, sm.add_constant(X), family).fit(tol=1e-14, maxiter=200).params
    assert_same(ours, theirs[1:], theirs[0], atol=1e-6)


def test_logistic(cancer):
    X, y = cancer
    ours = DeepClassifier(loss="logistic", penalty="l2", alpha=ALPHA, **ONE_BLOCK).fit(X, y)
    theirs = LogisticRegression(C=1 / (ALPHA * len(X)), solver="newton-cholesky", tol=1e-12).fit(X, y)
    assert_same(ours, theirs.coef_, theirs.intercept_)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("load", [pytest.param(load_breast_cancer, marks=pytest.mark.slow), load_iris])
def test_squared_hinge(load):
    # liblinear penalises the bias like any other weight
    X, y = load(return_X_y=True)
    X, alpha = scale(X), 0.1
    ours = DeepClassifier(loss="squared_hinge", penalty="l2", alpha=alpha, penalize_bias=True, **ONE_BLOCK)
    theirs = LinearSVC(C=1 / (alpha * len(X)), dual=False, tol=1e-12, max_iter=10**5).fit(X, y)
    assert_same(ours.fit(X, y), theirs.coef_, theirs.intercept_)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_hinge(cancer):
    X, y = cancer
    alpha, width = 0.1, 1e-3
    loss = losses.Hinge(width)
    ours = DeepClassifier(loss=loss, penalty="l2", alpha=alpha, penalize_bias=True, **ONE_BLOCK).fit(X, y)
    theirs = LinearSVC(loss="hinge", C=1 / (alpha * len(X)), tol=1e-9, max_iter=10**7, random_state=0).fit(
        X, y
    )

    def objective(coef, intercept):
        short = np.maximum(1 - (2 * y - 1) * (X @ coef + intercept), 0).mean()
        return short + alpha / 2 * (coef @ coef + intercept**2)

    exact = objective(theirs.coef_[0], theirs.intercept_[0])
    assert exact - 1e-8 <= objective(ours.coefs_[0][:, 0], ours.intercepts_[0][0]) <= exact + width / 4
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("delta", [0.2, 1.35])
def test_huber(diabetes, delta):
    X, y = diabetes
    y = y / 50
    ours = DeepRegressor(loss=losses.Huber(delta), penalty="l2", alpha=ALPHA, **ONE_BLOCK).fit(X, y)

    def objective(w):
        r = w[0] + X @ w[1:] - y
        pull = np.clip(r, -delta, delta) / len(y)
        value = huber(delta, r).mean() + ALPHA / 2 * w[1:] @ w[1:]
        return value, np.concatenate([[pull.sum()], pull @ X + ALPHA * w[1:]])

    start = np.append(y.mean(), np.zeros(X.shape[1]))
    best = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(ours.objective_, best.fun, rtol=1e-12)
    assert_same(ours, best.x[1:], best.x[0])


@pytest.mark.parametrize("q, alpha", [(0.5, 0.01), (0.9, 0.03)])
def test_quantile(diabetes, q, alpha):
    X, y = diabetes
    y, width = y / 50, 1e-5
    ours = DeepRegressor(loss=losses.Quantile(q, width), alpha=alpha, **ONE_BLOCK | {"tol": 1e-8}).fit(X, y)
    theirs = QuantileRegressor(quantile=q, alpha=alpha, solver="highs").fit(X, y)
    exact = mean_pinball_loss(y, theirs.predict(X), alpha=q) + alpha * abs(theirs.coef_).sum()
    found = mean_pinball_loss(y, ours.predict(X), alpha=q) + alpha * abs(ours.coefs_[0]).sum()
    assert exact - 1e-9 <= found <= exact + width / 4
    assert_same(ours, theirs.coef_, theirs.intercept_, atol=1e-3)
