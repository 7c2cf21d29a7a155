"""Outputs without a bias: exactly zero in every way to a fit, and in what is made of one."""

import json
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

import deepprox
from deepprox import DeepClassifier, DeepRegressor, DeepRegressorCV, DeepRegressorIC, losses, path, penalties
from fits import changed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) + 1
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 1
UNIT = losses.Squared(centre=0.0, spread=1.0)  # responses as they are
GIVEN = {"alpha": 0.02, "random_state": 0, "fit_intercept": False, "loss": UNIT}


@pytest.fixture(scope="module")
def linear():
    return DeepRegressor((), **GIVEN).fit(X, Y)


@pytest.fixture(scope="module")
def deep():
    return DeepRegressor((5,), link="tanh", **GIVEN).fit(X, Y)


def lasso(X, y, alpha):
    """Scikit-learn's, on inputs that are scaled and not centred."""
    scaled = StandardScaler(with_mean=False).fit_transform(X)
    return Lasso(alpha, fit_intercept=False, tol=1e-14, max_iter=10**6).fit(scaled, y), scaled


def test_a_network_has_biases_in_its_hidden_layers_alone(deep):
    assert deep.solution_.status == "converged"
    assert not deep.intercepts_[-1].any() and not deep.intercepts_standardized_[-1].any()
    assert deep.intercepts_standardized_[0].any()
    # inputs are centred: the first block makes up for it
    np.testing.assert_allclose(deep.fitted_.scale.mean, X.mean(0))
    z = np.tanh(X @ deep.coefs_[0] + deep.intercepts_[0])
    np.testing.assert_allclose(deep.predict(X), (z @ deep.coefs_[1])[:, 0])


def test_a_mask_on_the_bias_says_the_same():
    mask = np.arange(6)[None] > 0
    penalty = (penalties.L1(0.02), penalties.Mask(mask))
    model = DeepRegressor((5,), link="sigmoid", penalty=penalty, penalize_bias=True, random_state=0)
    model.fit(X - 1, Y + 2)
    assert model.solution_.status == "converged"
    np.testing.assert_array_equal(model.intercepts_[-1], 0)


def test_statistics_know_only_the_weights_that_there_are(linear):
    n_weights = np.count_nonzero(linear.coefs_[0])
    np.testing.assert_allclose(linear.degrees_of_freedom().value, n_weights, rtol=1e-10)
    text = str(linear.summary())
    assert f"{n_weights} of 4" in text and "outputs without a bias" in text and "biases free" not in text
    assert "outputs without a bias" not in str(DeepRegressor((), max_iter=5, alpha=1e-2).fit(X, Y).summary())


def test_a_posterior_has_no_bias_to_draw():
    model = DeepRegressor((), penalty="l2", standardize=False, alpha=0.1, fit_intercept=False).fit(X, Y)
    draws = model.sample_posterior("laplace", sigma=0.5, n_chains=2, n_draws=50, random_state=0)
    assert not draws.W[0][..., 0].any() and draws.W[0][..., 1:].std((0, 1)).all()
    # Bayesian linear regression through zero, in closed form
    n, s2 = len(X), 0.25
    V = s2 * np.eye(n) + X @ X.T * s2 / (n * 0.1)
    exact = -(n * np.log(2 * np.pi) + np.linalg.slogdet(V)[1] + Y @ np.linalg.solve(V, Y)) / 2
    np.testing.assert_allclose(draws.log_evidence, exact, rtol=1e-10)


def test_gibbs_draws_have_no_bias():
    pytest.importorskip("polyagamma")
    model = DeepClassifier((), loss="logistic", penalty="l2", alpha=0.05, fit_intercept=False)
    model.fit(X, Y > 2)
    draws = model.sample_posterior("polya-gamma", n_chains=2, n_draws=300, n_warmup=100, random_state=0)
    w = draws.W[0]
    assert not w[..., 0].any()
    assert np.abs(w[..., 1:].mean((0, 1)) - model.fitted_.W[0][:, 1:]).max() < 1


def test_a_path_ends_where_scikit_learn_has_it(linear):
    found = path(
        DeepRegressor((), loss=UNIT, random_state=0, fit_intercept=False, alpha=1e-2), X, Y, alphas=4
    )
    scaled = lasso(X, Y, 1.0)[1]
    np.testing.assert_allclose(found.alphas[-1], np.abs(scaled.T @ Y).max() / len(X), rtol=1e-10)
    assert not found[-1].coefs_[0].any() and found[-2].coefs_[0].any()
    for model, alpha in zip(found, found.alphas):
        np.testing.assert_allclose(model.coefs_standardized_[0][:, 0], lasso(X, Y, alpha)[0].coef_, atol=1e-5)


@pytest.mark.parametrize("make", [DeepRegressorIC, DeepRegressorCV])
def test_those_that_choose_pass_it_on(make):
    model = make((), alphas=4, random_state=0, fit_intercept=False).fit(X, Y)
    assert not model.intercepts_[0].any()
    np.testing.assert_allclose(model.predict(np.zeros((1, 4))), 0)


def test_a_stream_is_the_lasso_of_all_its_rows():
    model = DeepRegressor((), loss=UNIT, alpha=0.05, fit_intercept=False, tol=1e-12)
    for rows in np.split(np.arange(60), 3):
        model.partial_fit(X[rows], Y[rows])
    for _ in range(20):  # rows without weight: steps on what is known
        model.partial_fit(X[:20], Y[:20], np.full(20, 1e-12))
    assert not model.intercepts_[0].any()
    np.testing.assert_allclose(model.coefs_standardized_[0][:, 0], lasso(X, Y, 0.05)[0].coef_, atol=1e-4)


def test_a_stream_goes_on_from_a_fit(linear):
    model = DeepRegressor((), **GIVEN).fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    np.testing.assert_allclose(model.fitted_.scale.spread, X.std(0), rtol=1e-10)
    assert not model.fitted_.scale.mean.any() and not model.intercepts_[0].any()


def test_rows_from_files_are_scaled_and_not_centred():
    model = deepprox.fit_stream(DeepRegressor((), **GIVEN), X, Y)
    assert not model.intercepts_[0].any()
    np.testing.assert_allclose(model.coefs_standardized_[0][:, 0], lasso(X, Y, 0.02)[0].coef_, atol=1e-5)


def test_it_is_saved_and_files_from_before_have_biases(tmp_path, deep):
    file, old = tmp_path / "new.deepprox", tmp_path / "old.deepprox"
    deep.save(file)
    again = deepprox.load(file)
    assert again.fit_intercept is False and again.fitted_.network.blocks[-1].bias is False
    np.testing.assert_array_equal(again.predict(X), deep.predict(X))

    DeepRegressor((5,), link="tanh", alpha=0.02, random_state=0, max_iter=50, tol=1).fit(X, Y).save(file)
    with zipfile.ZipFile(file) as new, zipfile.ZipFile(old, "w") as before:
        for name in new.namelist():
            data = new.read(name)
            if name == "model.json":
                text = data.decode()
                assert text.count('"bias"') == 2
                data = json.dumps(
                    without(json.loads(text), {"bias", "fit_intercept", "held_within"})
                ).encode()
            before.writestr(name, data)
    was = deepprox.load(old)
    assert was.fit_intercept and all(block.bias for block in was.fitted_.network.blocks)
    np.testing.assert_array_equal(was.predict(X), deepprox.load(file).predict(X))


def without(tree, names):
    if isinstance(tree, dict):
        return {key: without(value, names) for key, value in tree.items() if key not in names}
    return [without(value, names) for value in tree] if isinstance(tree, list) else tree


def test_a_file_with_a_bias_where_there_is_none_is_refused(tmp_path, deep):
    fit = DeepRegressor((5,), link="tanh", **GIVEN).fit(X, Y)
    fit.summary()  # a copy has no data for its statistics
    changed(fit, (*fit.fitted_.W[:-1], fit.fitted_.W[-1] + 1)).save(tmp_path / "m")
    with pytest.raises(ValueError, match="a block without a bias has one"):
        deepprox.load(tmp_path / "m")


def test_onnx_predicts_the_same(deep, linear):
    runtime = pytest.importorskip("onnxruntime")
    for model in (deep, linear):
        session = runtime.InferenceSession(model.to_onnx(dtype="float64").SerializeToString())
        given = session.run(None, {"X": X})[0].ravel()
        np.testing.assert_allclose(given, model.predict(X), rtol=1e-12, atol=1e-12)
