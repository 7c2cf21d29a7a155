"""Laws of units: inputs and responses count the same in whatever unit they are measured."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from deepprox import DeepClassifier, DeepRegressor, losses
from deepprox.estimators._standardize import Moments, from_responses, scale_of, to_responses

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


def test_a_shift_of_inputs_changes_nothing():
    told, inputs, weights = seen(fitted("one block", X), X)
    moved = X + [100, -7, 1e3, 0]
    told_so, inputs_so, weights_so = seen(fitted("one block", moved), moved)
    np.testing.assert_allclose(told_so, told, rtol=1e-9)
    np.testing.assert_array_equal(inputs_so, inputs)
    assert all((a == b).all() for a, b in zip(weights, weights_so, strict=True))


RESPONSES = {
    "one block": DeepRegressor((), alpha=0.1),
    "a hidden layer": DeepRegressor((2,), link="tanh", alpha=0.02, random_state=0),
    "kinks": DeepRegressor((5,), alpha=0.01, random_state=0),
    "outliers": DeepRegressor((3,), loss="huber", alpha=0.02, random_state=0),
    "a quantile": DeepRegressor((), loss="quantile", alpha=0.02),
    "two columns": DeepRegressor((3,), alpha=0.02, random_state=0),
}


def responses(name):
    return np.column_stack([Y, 5 + 1e3 * X[:, 0] ** 2]) if name == "two columns" else Y


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_in_another_unit_is_the_same_fit(name):
    model, y = RESPONSES[name], responses(name)
    model.fit(X, y)
    told, zeros = model.predict(X), [w != 0 for w in model.coefs_]
    ended, n_iter, loss = model.solution_.status, model.n_iter_, model.loss_

    @settings(max_examples=10)
    @given(st.floats(-6, 6), st.floats(-10, 10))
    def law(power, level):
        c = 10**power
        d = c * level
        model.fit(X, c * y + d)
        np.testing.assert_allclose((model.predict(X) - d) / c / y.std(0), told / y.std(0), atol=1e-5)
        assert all((w != 0).tolist() == old.tolist() for w, old in zip(model.coefs_, zeros, strict=True))
        assert model.solution_.status == ended == "converged"
        assert abs(model.n_iter_ - n_iter) <= 2  # rounding may decide whether the last trials are steps
        assert model.loss_ == pytest.approx(loss, rel=1e-7)

    law()


def test_weights_are_those_of_the_response():
    model = DeepRegressor((), alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(X @ model.coefs_[0][:, 0] + model.intercepts_[0], model.predict(X))
    deep = DeepRegressor((4,), alpha=0.01, random_state=0).fit(X, Y)
    hidden = np.maximum(X @ deep.coefs_[0] + deep.intercepts_[0], 0)
    np.testing.assert_allclose(hidden @ deep.coefs_[1][:, 0] + deep.intercepts_[1], deep.predict(X))


def test_unscaled_it_is_the_lasso_alpha_for_alpha():
    ours, lasso = (
        DeepRegressor((), alpha=0.3, standardize=False, tol=1e-10).fit(X, Y),
        Lasso(alpha=0.3, tol=1e-12),
    )
    np.testing.assert_allclose(ours.coefs_[0][:, 0], lasso.fit(X, Y).coef_, atol=1e-7)
    scaled = DeepRegressor((), alpha=0.3 / Y.std(), tol=1e-10).fit((X - X.mean(0)) / X.std(0), Y)
    same = Lasso(alpha=0.3, tol=1e-12).fit((X - X.mean(0)) / X.std(0), Y)
    np.testing.assert_allclose(scaled.coefs_[0][:, 0], same.coef_, atol=1e-7)


def test_given_units_stay():
    robust = losses.Huber(2.0, centre=1.0, spread=3.0)
    model = DeepRegressor((), loss=robust, alpha=0.01).fit(X, Y)
    own = DeepRegressor((), loss=losses.Huber(2.0), alpha=0.01, standardize=False)
    own.fit((X - X.mean(0)) / X.std(0), (Y - 1) / 3)
    np.testing.assert_allclose((model.predict(X) - 1) / 3, own.predict((X - X.mean(0)) / X.std(0)), atol=1e-6)


def test_outliers_do_not_set_the_unit():
    wild = Y.copy()
    wild[:3] += [1e6, -1e7, 1e8]
    calm, torn = (DeepRegressor((), loss="huber", alpha=0.02).fit(X, y) for y in (Y, wild))
    assert np.median(np.abs(calm.predict(X) - torn.predict(X))) < 0.3 * Y.std()


def test_statistics_are_in_the_units_of_the_response():
    c = 1000.0
    one, other = (DeepRegressor((), alpha=0.02).fit(X, y) for y in (Y, c * Y + 5))
    assert other.criteria().bic == pytest.approx(one.criteria().bic + 2 * len(Y) * np.log(c))
    assert other.criteria(sigma=c).aic == pytest.approx(one.criteria(sigma=1.0).aic + 2 * len(Y) * np.log(c))
    assert other.criteria().gcv == pytest.approx(c**2 * one.criteria().gcv)
    assert other.sure().sigma == pytest.approx(c * one.sure().sigma)
    assert other.sure(sigma=c).mean == pytest.approx(c**2 * one.sure(sigma=1.0).mean)
    ends = [model.predict_interval(X[:5]) for model in (one, other)]
    np.testing.assert_allclose(ends[1], c * np.array(ends[0]) + 5, rtol=1e-6)
    draws = [
        model.sample_posterior("laplace", n_chains=2, n_draws=20, random_state=0) for model in (one, other)
    ]
    assert draws[1].sigma == pytest.approx(c * draws[0].sigma)
    assert draws[1].log_evidence is None or draws[1].log_evidence == pytest.approx(
        draws[0].log_evidence - len(Y) * np.log(c)
    )


def test_last_weights_in_both_units():
    loss, W = (
        losses.Squared(centre=np.array([2.0, -1.0]), spread=np.array([3.0, 0.1])),
        RNG.normal(size=(2, 4)),
    )
    np.testing.assert_allclose(from_responses(loss, to_responses(loss, W)), W)
    z = np.column_stack([np.ones(60), X[:, :3]])
    np.testing.assert_allclose(loss.mean(z @ W.T), z @ to_responses(loss, W).T)


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
