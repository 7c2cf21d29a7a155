"""One block is a known model: scikit-learn's Lasso, Ridge and logistic regression, to the last digits."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler, scale

from deepprox import DeepClassifier, DeepRegressor

ONE_BLOCK = {"hidden_layer_sizes": (), "standardize": False, "tol": 1e-9, "random_state": 0}


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y / 50


def squared(model, X, y):
    return np.mean((y - X @ model.coef_ - model.intercept_) ** 2) / 2


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
def test_lasso(diabetes, alpha):
    X, y = diabetes
    ours = DeepRegressor(penalty="l1", alpha=alpha, **ONE_BLOCK).fit(X, y)
    theirs = Lasso(alpha, tol=1e-14, max_iter=10**6).fit(X, y)
    objective = squared(theirs, X, y) + alpha * abs(theirs.coef_).sum()
    np.testing.assert_allclose(ours.objective_, objective, rtol=1e-8)
    np.testing.assert_array_equal(ours.coefs_[0][:, 0] != 0, theirs.coef_ != 0)


def test_elastic_net(diabetes):
    X, y = diabetes
    ours = DeepRegressor(penalty="elasticnet", alpha=0.1, **ONE_BLOCK).fit(X, y)
    theirs = ElasticNet(0.1, l1_ratio=0.5, tol=1e-14, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(ours.coefs_[0][:, 0], theirs.coef_, atol=1e-8)


def test_ridge(diabetes):
    X, y = diabetes
    alpha = 0.1
    ours = DeepRegressor(penalty="l2", alpha=alpha, **ONE_BLOCK).fit(X, y)
    theirs = Ridge(alpha * len(X), solver="cholesky").fit(X, y)
    objective = squared(theirs, X, y) + alpha / 2 * (theirs.coef_**2).sum()
    np.testing.assert_allclose(ours.objective_, objective, rtol=1e-8)
    np.testing.assert_allclose(ours.coefs_[0][:, 0], theirs.coef_, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.005, 0.05])
def test_multinomial_lasso(alpha):
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    ours = DeepClassifier(penalty="l1", alpha=alpha, **ONE_BLOCK).fit(X, y)
    theirs = _l1_logistic(1 / (len(X) * alpha)).fit(X, y)
    p = theirs.predict_proba(X)[np.arange(len(y)), y]
    objective = -np.log(p).mean() + alpha * abs(theirs.coef_).sum()
    np.testing.assert_allclose(ours.objective_, objective, rtol=1e-8)
    np.testing.assert_array_equal(ours.coefs_[0].T != 0, theirs.coef_ != 0)


def test_binary_lasso():
    # two softmax columns share what scikit-learn's single column carries: its coefficient is their
    # difference, and at the optimum |a - b| = |a| + |b|, so the two objectives are the same
    X, y = load_breast_cancer(return_X_y=True)
    X, alpha = scale(X)[:, :10], 0.02
    ours = DeepClassifier(penalty="l1", alpha=alpha, **ONE_BLOCK).fit(X, y)
    theirs = _l1_logistic(1 / (len(X) * alpha)).fit(X, y)
    objective = (
        -np.log(theirs.predict_proba(X)[np.arange(len(y)), y]).mean() + alpha * abs(theirs.coef_).sum()
    )
    np.testing.assert_allclose(ours.objective_, objective, rtol=1e-8)
    slope = ours.coefs_[0][:, 1] - ours.coefs_[0][:, 0]
    np.testing.assert_array_equal(slope != 0, theirs.coef_[0] != 0)


THROUGH_ZERO = {"fit_intercept": False, "hidden_layer_sizes": (), "tol": 1e-9, "random_state": 0}


@pytest.fixture(scope="module")
def uncentred(diabetes):
    """Inputs with means, one of them always 1, and a response with one."""
    X, y = diabetes
    return np.column_stack([X + np.arange(10) / 5, np.ones(len(X))]), y


@pytest.mark.parametrize("alpha", [0.01, 0.5])
def test_lasso_without_intercept(uncentred, alpha):
    X, y = uncentred
    ours = DeepRegressor(alpha=alpha, standardize=False, **THROUGH_ZERO).fit(X, y)
    theirs = Lasso(alpha, fit_intercept=False, tol=1e-14, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(ours.coefs_[0][:, 0], theirs.coef_, atol=1e-7)
    np.testing.assert_array_equal(ours.coefs_[0][:, 0] != 0, theirs.coef_ != 0)
    np.testing.assert_allclose(ours.degrees_of_freedom().value, (theirs.coef_ != 0).sum(), rtol=1e-10)
    assert ours.solution_.certificate <= 1e-9 and not ours.intercepts_[0].any()
    np.testing.assert_array_equal(ours.predict(np.zeros((1, 11))), 0)


def test_ridge_without_intercept_scaled_and_not_centred(uncentred):
    X, y = uncentred
    ours = DeepRegressor(penalty="l2", alpha=0.1, **THROUGH_ZERO).fit(X, y)
    scaled = StandardScaler(with_mean=False).fit_transform(X)
    theirs = Ridge(0.1 * len(X), fit_intercept=False, solver="cholesky").fit(scaled, y)
    weights = ours.coefs_standardized_[0][:, 0] * y.std()  # of a response that is scaled too
    np.testing.assert_allclose(weights, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(scaled), atol=1e-7)
    d = np.linalg.svd(scaled, compute_uv=False)
    df = (d**2 / (d**2 + 0.1 * len(X))).sum()
    np.testing.assert_allclose(ours.degrees_of_freedom().value, df, rtol=1e-8)


@pytest.mark.parametrize(("penalty", "alpha"), [("l1", 0.005), ("l2", 0.01)])
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression_without_intercept(classes, penalty, alpha):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes] - 1, y[y < classes] if classes == 3 else y[y < 2] ^ (np.arange(100) % 9 == 0)
    loss = "softmax" if classes == 3 else "logistic"
    given = {"loss": loss, "penalty": penalty, "alpha": alpha, "standardize": False}
    ours = DeepClassifier(**given, **THROUGH_ZERO).fit(X, y)
    C, ratio = 1 / (len(X) * alpha), float(penalty == "l1")
    solver = {"solver": "saga", "tol": 1e-12, "max_iter": 10**6, "random_state": 0}
    theirs = LogisticRegression(**_share_of_l1(ratio), C=C, fit_intercept=False, **solver).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert ours.solution_.certificate <= 1e-9 and not ours.intercepts_[0].any()


def _l1_logistic(C):
    exact = {"solver": "saga", "tol": 1e-12, "max_iter": 10**6, "random_state": 0}
    return LogisticRegression(**_share_of_l1(1.0), C=C, **exact)


def _share_of_l1(ratio):
    """All or nothing, as this scikit-learn takes it: before 1.8 by the name of the penalty."""
    named = LogisticRegression().get_params()["penalty"] == "l2"
    return {"penalty": "l1" if ratio else "l2"} if named else {"l1_ratio": ratio}
