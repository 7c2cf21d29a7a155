"""Architectures side by side, and selection frequencies."""

import numpy as np
import pytest

import deepprox
from deepprox import DeepClassifier, DeepRegressor, losses, penalties
from deepprox.selection.walk import Walk


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))  # the shapes of other small networks, and of halves: they compile once
    return X, np.tanh(2 * X[:, 0]) * 2 + 0.2 * rng.normal(size=60)


@pytest.fixture(scope="module")
def table(data):
    models = {
        "linear": DeepRegressor((), alpha=0.01),
        "tanh": DeepRegressor((4,), link="tanh", alpha=0.01, random_state=0),
    }
    return deepprox.compare(models, *data)


def test_true_architecture_has_the_weight(table):
    for by in ("aic", "bic", "evidence"):
        weights = table.weights(by)
        assert weights.sum() == pytest.approx(1) and weights[1] > 0.99
    assert table.best("bic") is table.estimators[1]
    assert table.bayes_factors().loc["tanh", "linear"] > 100


def test_weights_are_akaikes(table):
    aic = table.frame().aic.to_numpy()
    np.testing.assert_allclose(table.weights("aic"), np.exp(-aic / 2) / np.exp(-aic / 2).sum())


def test_average_is_weighted(table, data):
    X, _ = data
    each = [model.predict(X) for model in table.estimators]
    np.testing.assert_allclose(table.predict(X, by="bic"), table.weights("bic") @ np.array(each))


def test_classes_are_averaged_by_probability(data):
    X, y = data
    labels = np.where(y > 0, "up", "down")
    table = deepprox.compare([DeepClassifier((), alpha=a, loss="logistic") for a in (0.01, 0.02)], X, labels)
    assert len(set(table.names)) == 2
    assert set(table.predict(X)) <= {"up", "down"}
    np.testing.assert_allclose(table.predict_proba(X).sum(axis=1), 1)


def test_table_and_picture(table, tmp_path):
    text = str(table)
    assert "by BIC" in text and max(map(len, text.splitlines())) <= 100
    assert "<table" in table._repr_html_()
    table.plot().figure_.savefig(tmp_path / "compare.png")


def test_what_cannot_be_compared_is_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="at least 2"):
        deepprox.compare([DeepRegressor(())], X, y)
    with pytest.raises(ValueError, match=r"have Huber and Squared: give all the same loss, or .*score"):
        deepprox.compare([DeepRegressor(()), DeepRegressor((), loss="huber")], X, y)


def test_losses_are_refused_before_any_fit(data, monkeypatch):
    monkeypatch.setattr(DeepRegressor, "fit", lambda *args, **kwargs: pytest.fail("a model was fitted"))
    with pytest.raises(ValueError, match="have Poisson and Squared"):
        deepprox.compare([DeepRegressor(()), DeepRegressor((), loss=losses.Poisson())], *data)
    with pytest.raises(ValueError, match="Huber is none"):
        deepprox.compare([DeepRegressor((), loss="huber")] * 2, *data)


def test_stable_inputs_are_found(data, tmp_path):
    X, y = data
    model = DeepRegressor((4,), link="tanh", alpha=0.05, random_state=0)
    found = deepprox.stability_selection(model, X, y, n_pairs=3, random_state=0)
    assert found.n_halves == 6 and found.selected[0] and found.highest[0] == 1
    assert found.mean_kept == pytest.approx(found.frequencies.sum())
    assert found.expected_errors == pytest.approx(found.mean_kept**2 / (0.2 * 3))
    assert found.frame().input[0] == "x0"
    found.plot().figure_.savefig(tmp_path / "one.png")
    along = deepprox.stability_selection(model, X, y, [0.05, 0.1], n_pairs=2, random_state=0)
    assert along.frequencies.shape == (2, 3)
    along.plot().figure_.savefig(tmp_path / "along.png")


@pytest.mark.parametrize(
    ("penalty", "strength"),
    [
        ("l1", 0.05),
        (penalties.L1(0.3), 0.3),
        ((penalties.L1(0.02), penalties.L1(0.01)), 0.02),
        (("l1", penalties.L2(0.1)), 0.05),
        (penalties.NonNegative(), 0.0),
    ],
)
def test_the_strength_is_that_of_the_penalties(data, monkeypatch, penalty, strength):
    alive = np.ones((1, 3), bool)
    monkeypatch.setattr("deepprox.selection.stability._alive", lambda *_: alive)
    alpha = {"alpha": 0.05} if "l1" in str(penalty) else {}
    model = DeepRegressor((4,), penalty=penalty, dtype="float32", **alpha)
    found = deepprox.stability_selection(model, *data, n_pairs=1)
    assert found.alphas.tolist() == [strength]


def test_an_interruption_ends_the_halves(data, monkeypatch):
    calls, solve = [], Walk.solve

    def interrupted(self, *args, **kwargs):
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return solve(self, *args, **kwargs)

    monkeypatch.setattr(Walk, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deepprox.stability_selection(DeepRegressor(()), *data, [0.05, 0.1], n_pairs=2, random_state=0)
    assert len(calls) == 2


def test_bad_settings_of_stability(data):
    model = DeepRegressor((), alpha=0.05)
    with pytest.raises(ValueError, match=r"above 0\.5"):
        deepprox.stability_selection(model, *data, threshold=0.3)
    with pytest.raises(ValueError, match="n_pairs"):
        deepprox.stability_selection(model, *data, n_pairs=0)
    with pytest.raises(ValueError, match="strengths themselves"):
        deepprox.stability_selection(model, *data, alphas=5)
