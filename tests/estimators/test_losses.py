"""Losses by name at the front: columns, probabilities, predictions, and responses that do not fit."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import cross_val_score

from deepprox import DeepClassifier, DeepRegressor, losses

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
RATE = np.exp(0.5 * np.sin(X[:, 0]) + 0.5 * X[:, 1])
RESPONSES = {
    "squared": np.log(RATE),
    "huber": np.log(RATE) + 0.1 * rng.standard_t(1.5, len(X)),
    "quantile": np.log(RATE) + 0.1 * rng.normal(size=len(X)),
    "poisson": rng.poisson(RATE),
    "negative_binomial": rng.negative_binomial(1, 1 / (1 + RATE)),
    "gamma": rng.gamma(1, RATE),
}
COUNTS = RESPONSES["poisson"]


@pytest.fixture(scope="module")
def flowers():
    return load_iris(return_X_y=True)


def classifier(loss, **changes):
    return DeepClassifier(
        **{"hidden_layer_sizes": (5,), "loss": loss, "alpha": 0.01, "random_state": 0} | changes
    )


def regressor(loss, **changes):
    return DeepRegressor(
        **{"hidden_layer_sizes": (5,), "loss": loss, "alpha": 0.01, "random_state": 0} | changes
    )


def with_and_without_hidden_layers(names, quick):
    """Hidden layers know no loss: without them all, with them the ``quick`` ones, and later the others."""
    later = [pytest.param(name, (5,), marks=pytest.mark.slow) for name in names if name not in quick]
    return [*((name, ()) for name in names), *((name, (5,)) for name in quick), *later]


@pytest.mark.parametrize(
    ("loss", "hidden"), with_and_without_hidden_layers(RESPONSES, ("quantile", "poisson"))
)
def test_regression_by_name(loss, hidden):
    y = RESPONSES[loss]
    model = regressor(loss, hidden_layer_sizes=hidden).fit(X, y)
    assert model.solution_.status == "converged"
    assert model.predict(X).shape == (len(X),) and model.selected_features_[:2].all()
    flat = regressor(loss, alpha=100.0, hidden_layer_sizes=()).fit(X, y)
    assert model.loss_ < flat.loss_
    if loss not in ("huber", "quantile"):
        np.testing.assert_allclose(flat.predict(X), y.mean(), rtol=1e-5)


LATER = [pytest.param(name, marks=pytest.mark.slow) for name in ("huber", "negative_binomial", "gamma")]


@pytest.mark.parametrize("loss", ["quantile", "poisson", *LATER])
def test_several_responses(loss):
    Y = np.column_stack([RESPONSES[loss], 3 * RESPONSES[loss][::-1]])
    both = regressor(loss, hidden_layer_sizes=()).fit(X, Y)
    assert both.predict(X).shape == Y.shape and both.solution_.status == "converged"
    for k in range(2):  # columns of one block do not know of one another
        one = regressor(loss, hidden_layer_sizes=()).fit(X, Y[:, k])
        np.testing.assert_allclose(both.predict(X)[:, k], one.predict(X), rtol=1e-3, atol=1e-3 * Y.std())


def test_means_are_on_the_scale_of_the_response():
    model = regressor("poisson", hidden_layer_sizes=()).fit(X, COUNTS)
    by_hand = np.exp(X @ model.coefs_[0][:, 0] + model.intercepts_[0])
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-10)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_a_quantile_has_its_share_below(q):
    y = X[:, 0] + np.random.default_rng(0).normal(size=len(X))
    model = regressor(losses.Quantile(q), hidden_layer_sizes=()).fit(X, y)
    assert abs((y <= model.predict(X)).mean() - q) < 0.02


CLASSES = ["softmax", "logistic", "hinge", "squared_hinge"]


@pytest.mark.parametrize(("loss", "hidden"), with_and_without_hidden_layers(CLASSES, ["hinge"]))
def test_two_classes(loss, hidden, flowers):
    X, y = flowers
    X, y = X[50:], np.where(y[50:] == 1, "versicolor", "virginica")
    model = classifier(loss, hidden_layer_sizes=hidden).fit(X, y)
    assert model.solution_.status == "converged"
    assert model.n_outputs_ == (2 if loss == "softmax" else 1)
    decision = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    assert model.score(X, y) > 0.93
    if loss in ("softmax", "logistic"):
        p = model.predict_proba(X)
        assert p.shape == (len(X), 2)
        np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), decision, rtol=1e-6)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)


@pytest.mark.parametrize(("loss", "hidden"), with_and_without_hidden_layers(CLASSES[2:], []))
def test_one_against_the_rest(loss, hidden, flowers):
    X, y = flowers
    model = classifier(loss, hidden_layer_sizes=hidden).fit(X, y)
    assert model.solution_.status == "converged" and model.score(X, y) > 0.93
    decision = model.decision_function(X)
    assert decision.shape == (len(X), 3)
    np.testing.assert_array_equal(model.predict(X), decision.argmax(1))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", losses.Hinge(0.1)])
def test_margins_are_no_probabilities(loss, flowers):
    for model in (classifier(loss), classifier(loss, hidden_layer_sizes=()).fit(*flowers)):
        assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    for loss in ("softmax", "logistic", "not a loss"):
        assert hasattr(classifier(loss), "predict_proba")


def test_areas_under_the_curve_from_margins(flowers):
    X, y = flowers
    # two thirds of all are as many as the two classes above: they run the same program
    scores = cross_val_score(classifier("hinge", hidden_layer_sizes=()), X, y == 2, cv=3, scoring="roc_auc")
    assert scores.mean() > 0.95


def test_rounding_is_small_and_follows_the_response(flowers):
    y = RESPONSES["quantile"]
    median = regressor("quantile", hidden_layer_sizes=(), alpha=0.0).fit(X, y)
    larger = regressor("quantile", hidden_layer_sizes=(), alpha=0.0).fit(X, 1e4 * y)
    for model, response in ((median, y), (larger, 1e4 * y)):
        loss = model.fitted_.loss
        np.testing.assert_allclose(loss.width, 0.01 * response.std() / loss.spread[0])
    np.testing.assert_allclose(larger.predict(X), 1e4 * median.predict(X), rtol=1e-4, atol=1e4)
    for loss in ("hinge", losses.Hinge()):
        two = (part[50:] for part in flowers)
        assert classifier(loss, hidden_layer_sizes=()).fit(*two).fitted_.loss.width == 0.01


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exact_kinks_are_left_to_splitting():
    y = X[:, 0] + np.random.default_rng(0).normal(size=len(X))
    one_block = {"hidden_layer_sizes": (), "standardize": False}
    exact = regressor(losses.Quantile(0.5, width=0.0), join=False, **one_block).fit(X, y)
    theirs = QuantileRegressor(quantile=0.5, alpha=0.01).fit(X, y)
    best = mean_pinball_loss(y, theirs.predict(X)) + 0.01 * abs(theirs.coef_).sum()
    np.testing.assert_allclose(exact.objective_, best, rtol=1e-5)


BAD = [
    (DeepRegressor(loss="poisson"), COUNTS - 1, "loss='poisson' takes .* numbers of at least 0, .* is -1"),
    (
        DeepRegressor(loss="negative_binomial"),
        COUNTS - 1,
        "'negative_binomial' takes .* numbers of at least 0",
    ),
    (DeepRegressor(loss="gamma"), COUNTS, "loss='gamma' takes .* positive numbers, .* is 0"),
    (DeepRegressor(loss=losses.Logistic()), COUNTS, "takes responses that are numbers from 0 to 1"),
    (DeepRegressor(loss=losses.Hinge()), COUNTS, "takes responses that are the numbers 0 and 1"),
    (DeepRegressor(loss=losses.Huber(0.0)), COUNTS, "delta of the loss Huber must be positive, got 0.0"),
    (DeepRegressor(loss=losses.Quantile(1.0)), COUNTS, "q of the loss Quantile must be between 0 and 1"),
    (DeepRegressor(loss=losses.Quantile(0.5, -1.0)), COUNTS, "width of the loss Quantile must be at least 0"),
    (DeepRegressor(loss=losses.Quantile(0.5, 0.0)), COUNTS, "exact kinks, .* or set join=False"),
    (DeepClassifier(loss=losses.Hinge(0.0)), COUNTS > 0, "exact kinks, .* or set join=False"),
    (DeepRegressor(loss=losses.NegativeBinomial(0)), COUNTS, "dispersion .* must be positive"),
    (DeepRegressor(loss=losses.Gamma(-1.0)), COUNTS + 1, "shape of the loss Gamma must be positive"),
    (DeepRegressor(loss="logistic"), COUNTS, "Unknown loss 'logistic'.*'poisson'"),
    (DeepClassifier(loss="logistic"), COUNTS % 3, "two classes, but there are 3: use loss='softmax'"),
    (DeepClassifier(loss="poisson"), COUNTS > 0, "Unknown loss 'poisson'.*'hinge'"),
]


@pytest.mark.parametrize("model, y, sentence", BAD, ids=[row[2][:40] for row in BAD])
def test_what_does_not_fit_gets_a_sentence(model, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)
