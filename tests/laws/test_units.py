"""Laws of units: an input counts the same in whatever unit it is measured."""

import numpy as np
import pytest

from deepprox import DeepClassifier, DeepRegressor
from deepprox.estimators._standardize import Moments, scale_of

RNG = np.random.default_rng(0)
X = RNG.normal([0, 5, 0, -2], [1, 2, 1, 0.1], size=(60, 4))
Y = X[:, 0] - 3 * np.abs(X[:, 1] - 5) + 0.1 * RNG.normal(size=60)
UNITS = [10.0**power for power in (-300, -200, -160, -20, 20, 155, 160, 200, 300)]
MODELS = {
    "one block": DeepRegressor((), alpha=0.3),
    "a hidden layer": DeepRegressor((2,), link="tanh", alpha=0.2, random_state=0, max_iter=400),
    "classes": DeepClassifier((), alpha=0.1),
}


def fitted(name, X):
    return MODELS[name].fit(X, np.where(np.median(Y) < Y, "high", "low") if name == "classes" else Y)


def seen(model, X):
    """What a user sees of a fit: numbers and zeros."""
    out = model.decision_function(X) if isinstance(model, DeepClassifier) else model.predict(X)
    return out, model.selected_features_, [w != 0 for w in model.coefs_]


@pytest.mark.parametrize(
    "name", ["one block", pytest.param("a hidden layer", marks=pytest.mark.slow), "classes"]
)
def test_a_change_of_unit_changes_neither_predictions_nor_zeros(name):
    told, inputs, weights = seen(fitted(name, X), X)
    assert not all(w.all() for w in weights)
    for unit in UNITS:
        units = np.array([unit, 1.0, 1 / unit, unit])
        told_so, inputs_so, weights_so = seen(fitted(name, X * units), X * units)
        np.testing.assert_allclose(told_so, told, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(inputs_so, inputs)
        assert all((a == b).all() for a, b in zip(weights, weights_so, strict=True))


def test_single_precision():
    model = DeepRegressor((), alpha=0.1, dtype="float32", tol=1e-4)
    told = model.fit(X, Y).predict(X)
    for unit in (1e-36, 1e-20, 1e20, 1e36):
        assert np.allclose(model.fit(X * unit, Y).predict(X * unit), told, atol=1e-3)


@pytest.mark.parametrize("unit", UNITS)
def test_batches_tell_the_scale_of_the_whole(unit):
    weight, moments = RNG.random(60), Moments.none(4)
    for rows in (slice(0, 7), slice(7, 60)):
        moments = moments.added(unit * X[rows], weight[rows])
    ours, whole = moments.scale(True, np.float64), scale_of(unit * X, weight / weight.sum(), True)
    for a, b in zip(ours, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    again = Moments.of(60, whole).scale(True, np.float64)
    np.testing.assert_allclose(again.spread, whole.spread, rtol=1e-12)
    np.testing.assert_allclose(
        whole.spread, unit * scale_of(X, weight / weight.sum(), True).spread, rtol=1e-12
    )


@pytest.mark.parametrize("unit", [1e-200, 1e160, 1e300])
def test_a_stream_in_another_unit(unit):
    def streamed(X):
        model = DeepRegressor((), alpha=0.1)
        for rows in (slice(0, 30), slice(30, 60)):
            model.partial_fit(X[rows], Y[rows])
        return model.predict(X)

    np.testing.assert_allclose(streamed(unit * X), streamed(X), rtol=1e-6)


def test_one_huge_cell_makes_a_column_that_marks_its_row():
    odd, marks = X.copy(), X.copy()
    odd[7, 1], marks[:, 1] = 1e160, np.arange(60) == 7
    y = Y - 40 * (np.arange(60) == 7)
    model = DeepRegressor((), alpha=0.1)
    told = model.fit(marks, y).predict(marks)
    assert model.selected_features_[1]
    np.testing.assert_allclose(model.fit(odd, y).predict(odd), told, rtol=1e-6)
    assert model.selected_features_[1]


@pytest.mark.filterwarnings("ignore:invalid value")  # scikit-learn adds them up
def test_numbers_as_large_as_they_get():
    biggest = np.finfo(float).max
    ends = np.where(np.median(X, 0) < X, biggest, -biggest)
    plain = DeepRegressor((), alpha=0.1).fit(np.sign(ends), Y).predict(np.sign(ends))
    np.testing.assert_allclose(DeepRegressor((), alpha=0.1).fit(ends, Y).predict(ends), plain, rtol=1e-6)
