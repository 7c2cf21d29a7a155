"""A user's own block, one class in a file of theirs: fitted, certified, kept, or refused in a sentence."""

import io

import jax.numpy as jnp
import joblib
import numpy as np
import pytest

from deepprox import DeepClassifier, DeepRegressor, fit_stream, load, losses, path
from deepprox.blocks import Block, Dense
from deepprox.links import Link, Tanh
from deepprox.penalties import L1
from deepprox.struct import static, struct


@struct
class Lags(Block):
    """``z_t = W [1; x_t, x_{t-1}, ...]`` along the columns of a table."""

    lags: int = static(default=3)

    def columns(self, n_in):
        at = np.arange(n_in)[:, None] - np.arange(self.lags)
        return np.maximum(at, -1)


class Undeclared(Lags):
    """One that is no pytree."""


@struct
class Astray(Block):
    """One whose table is wrong."""

    def columns(self, n_in):
        return np.arange(1, n_in + 1)[None]


def series(n=120, length=8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, length))
    return X, np.tanh(X[:, 2:] - X[:, 1:-1]).sum(1) + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    model = DeepRegressor((Lags(2), 3), link="tanh", alpha=0.01, standardize=False, random_state=0)
    return model.fit(*series())


def test_it_is_fitted_and_certified(fitted):
    X, y = series()
    assert fitted.solution_.status == "converged" and fitted.solution_.certificate <= fitted.tol
    assert [w.shape for w in fitted.coefs_] == [(3, 2), (16, 3), (3, 1)]
    assert fitted.score(X, y) > 0.5
    at = X
    for l, (w, b) in enumerate(zip(fitted.coefs_, fitted.intercepts_)):
        if l == 0:
            lagged = np.stack([np.pad(X, ((0, 0), (k, 0)))[:, :8] for k in range(3)], axis=-1)
            at = np.tanh(lagged @ w + b).reshape(len(X), -1)
        else:
            at = at @ w + b if l == 2 else np.tanh(at @ w + b)
    np.testing.assert_allclose(fitted.predict(X), at[:, 0], atol=1e-12)


def test_behind_a_dense_layer_inputs_are_standardised():
    X, y = series()
    model = DeepClassifier((6, Lags(2)), alpha=0.01, random_state=0).fit(5 * X + 1, y > 0)
    assert model.solution_.status == "converged"


def test_what_is_kept_predicts_the_same(fitted):
    X, _ = series()
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    np.testing.assert_array_equal(joblib.load(file).predict(X), fitted.predict(X))
    assert "Lags" in repr(fitted)


def test_statistics_know_it(fitted):
    df = fitted.degrees_of_freedom()
    assert 1 < df.value <= df.n_live
    assert "of 16" in str(fitted.summary())


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda model: model.save("unused.deepprox"), "not a part of deepprox"),
        (lambda model: model.to_onnx(), "dense blocks"),
        (lambda model: model.draw_network(), "dense blocks"),
        (lambda model: model.partial_fit(*series()), "dense blocks"),
        (lambda model: model.sample_posterior(sigma=1.0), "dense blocks"),
        (lambda model: fit_stream(model, *series()), "fit blocks to arrays"),
    ],
)
def test_what_cannot_be_done_is_said(fitted, ask, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError), match=sentence):
        ask(fitted)


@pytest.mark.parametrize(
    ("layers", "sentence"),
    [
        ((Lags(2), 3), "standardize=False"),
        ((5, Undeclared(2)), "deepprox.struct.struct"),
        ((5, Astray(2)), "from -1 to 4"),
        ((5, Lags(2, link=Tanh())), "link="),
        ((Dense(5, penalty=L1(1.0)),), "penalty="),
        ((Lags(0), 3), "whole numbers"),
    ],
)
def test_a_block_that_does_not_fit_is_refused(layers, sentence):
    with pytest.raises(ValueError, match=sentence):
        DeepRegressor(layers, alpha=1e-2).fit(*series())


def test_a_dense_block_is_a_width(tmp_path):
    X, y = series()
    plain, named = (
        DeepRegressor(layers, random_state=0, alpha=1e-2).fit(X, y) for layers in ((4,), (Dense(4),))
    )
    np.testing.assert_array_equal(plain.coefs_[0], named.coefs_[0])
    named.save(tmp_path / "named.deepprox")
    np.testing.assert_array_equal(load(tmp_path / "named.deepprox").predict(X), plain.predict(X))


@struct
class Ramp(Link):
    """``max(z - at, 0)``, with a kink of its own."""

    at: float = static(default=0.5)

    @property
    def kinks(self):
        return (self.at,)

    def __call__(self, z):
        return jnp.maximum(z - self.at, 0)


def test_kinks_are_asked_of_a_link():
    X, y = series()
    loss = losses.Squared(centre=0.0, spread=1.0)
    model = DeepRegressor((6,), link=Ramp(0.7), loss=loss, alpha=0.02, random_state=1).fit(X, y)
    found = model.solution_
    assert found.status == "converged" and found.n_held > 0
    standard = (X - X.mean(0)) / X.std(0)
    z = standard @ model.coefs_standardized_[0] + model.intercepts_standardized_[0]
    assert (np.abs(z - 0.7) < 1e-9).sum() >= found.n_held


def test_paths_know_it():
    model = DeepRegressor((Lags(2),), link="tanh", standardize=False, random_state=0, alpha=1e-2)
    found = path(model, *series(), alphas=3)
    assert len(found.alphas) == 3 and found.inputs.shape == (3, 8)
