"""``n_nonzero``, ``zeros``, ``max_inputs``: a network of at most so many weights or inputs."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import train_test_split

import deepprox
from deepprox import DeepClassifier, DeepRegressor, load, penalties
from deepprox.estimators import session
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.penalties import Mask
from deepprox.runtime import precision
from deepprox.struct import replace

SMALL = {"hidden_layer_sizes": (8,), "link": "tanh", "random_state": 0, "alpha": 1e-3}
CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("limits", [{"n_nonzero": 20}, {"zeros": 0.9}, {"max_inputs": 4, "zeros": 0.8}])
@pytest.mark.parametrize("make, data", [(DeepClassifier, CANCER), (DeepRegressor, DIABETES)])
def test_a_limit_is_kept_and_the_fit_certified(make, data, limits):
    model = make(**SMALL, **limits).fit(*data)
    most = limits.get("n_nonzero", model.fitted_.n_weights * (1 - limits.get("zeros", 0)))
    assert 0 < model.n_nonzero_ <= most
    assert model.selected_features_.sum() <= limits.get("max_inputs", np.inf)
    assert model.solution_.status == "converged"
    assert model.score(*data) > (0.9 if make is DeepClassifier else 0.3)


def certificate(model, network):
    """That of the fitted weights in a network, by the definition."""
    problem = replace(model.fitted_.problem(), network=network)
    with precision(np.float64):
        return float(look(problem, model.fitted_.W, no_slopes(problem), 1.0).certificate)


def test_it_says_whether_zeros_are_held():
    free = DeepClassifier(**SMALL | {"alpha": 0.02}, n_nonzero=200).fit(*CANCER)
    held = DeepClassifier(**SMALL, n_nonzero=12).fit(*CANCER)
    assert "same zeros" not in free.solution_.message and "same zeros" in held.solution_.message
    assert not any(isinstance(block.penalty, Mask) for block in free.fitted_.network.blocks)
    assert "beside held zeros" in str(held.summary())
    network = held.fitted_.network
    alone = replace(
        network, blocks=tuple(replace(block, penalty=block.penalty.penalty) for block in network.blocks)
    )
    assert certificate(held, network) <= held.tol < certificate(held, alone)


def test_of_equal_zeros_those_asked_for_predict_better_than_a_strong_penalty():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    asked = DeepClassifier(zeros=0.97, alpha=3e-3, random_state=0).fit(X, y)
    strong = deepprox.path(DeepClassifier(random_state=0, max_iter=300), X, y, [0.01, 0.02, 0.03, 0.05, 0.08])
    few = min(
        (model for model in strong if model.n_nonzero_ <= asked.n_nonzero_), key=lambda m: -m.n_nonzero_
    )
    assert asked.score(X_test, y_test) > few.score(X_test, y_test) + 0.03


def test_all_else_works_with_held_zeros(tmp_path):
    X, y = DIABETES
    model = DeepRegressor(**SMALL, max_inputs=5).fit(X, y)
    model.save(tmp_path / "model.deepprox")
    again = load(tmp_path / "model.deepprox")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.max_inputs == 5 and again.n_nonzero_ == model.n_nonzero_
    assert model.degrees_of_freedom().value > 2 and np.isfinite(model.criteria()["bic"])


def test_without_hidden_layers_it_is_a_best_subset():
    X, y = DIABETES
    model = DeepRegressor((), penalty="none", max_inputs=3, random_state=0).fit(X, y)
    chosen = np.flatnonzero(model.selected_features_)
    A = np.c_[np.ones(len(X)), X[:, chosen]]
    np.testing.assert_allclose(model.predict(X), A @ np.linalg.lstsq(A, y)[0], rtol=1e-5)
    best = max(
        DeepRegressor((), penalty="none", random_state=0).fit(X[:, [2, 8, k]], y).score(X[:, [2, 8, k]], y)
        for k in (0, 1, 3, 4, 5, 6, 7, 9)
    )
    assert len(chosen) == 3 and model.score(X, y) > best - 0.02


@pytest.mark.parametrize(
    "limits, sentence",
    [
        ({"n_nonzero": 0}, "n_nonzero must be a whole number of at least 1"),
        ({"max_inputs": 2.5}, "max_inputs must be a whole number of at least 1"),
        ({"zeros": 95}, "zeros must be a number from 0 to below 1"),
        ({"zeros": True}, "zeros must be a number from 0 to below 1"),
        ({"zeros": 0.5, "n_nonzero": 5}, "give one of them"),
        ({"zeros": 0.999}, "zeros=0.999 leaves 0 of 97 weights, and the outputs have 1 biases"),
        ({"zeros": 0.9, "join": False}, "needs the join phase"),
        ({"zeros": 0.9, "batch_size": None}, "steps on batches of rows"),
        ({"zeros": 0.9, "penalty": "nuclear"}, "Nuclear is another penalty where weights are held"),
    ],
)
def test_what_cannot_be_kept_is_a_sentence(limits, sentence):
    with pytest.raises(ValueError, match=sentence):
        DeepRegressor(**SMALL, **limits).fit(*DIABETES)


def test_paths_and_streams_take_no_limit():
    model = DeepRegressor(**SMALL, zeros=0.9)
    with pytest.raises(ValueError, match="takes no zeros"):
        deepprox.path(model, *DIABETES)
    with pytest.raises(ValueError, match="takes no zeros"):
        model.partial_fit(*DIABETES)
    with pytest.raises(ValueError, match="same among fewer weights"):
        DeepRegressor(
            penalty=penalties.Mask(np.ones((1, 10)), penalties.Nuclear(1.0)), hidden_layer_sizes=()
        ).fit(*DIABETES)


def test_the_strength_is_chosen_among_networks_with_as_many_zeros(monkeypatch):
    seen = []
    train = session.train

    def spy(*args):
        seen.append(train(*args))
        return seen[-1]

    monkeypatch.setattr(session, "train", spy)
    model = DeepRegressor((8,), alpha="auto", n_nonzero=15, random_state=0).fit(*DIABETES)
    (lanes,) = seen
    assert model.n_nonzero_ <= 15 and model.alpha_ in model.alphas_
    per_lane = np.array([[sum(np.count_nonzero(w[a]) for w in W) for a in range(10)] for W in lanes.W])
    assert per_lane.max() <= 15 and per_lane.min() > 0
