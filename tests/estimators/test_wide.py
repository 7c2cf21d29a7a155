"""Estimators of many inputs."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from deepprox import DeepRegressor, memory, screening


@pytest.fixture
def table(monkeypatch):
    """A table that counts as wide, of which two inputs matter."""
    monkeypatch.setattr(screening, "MANY", 32)
    monkeypatch.setattr(screening, "FIRST", 32)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 70))
    X[:, 5] = 3.0
    return X, np.tanh(X[:, 0]) + np.abs(X[:, 1])


def test_a_network_of_many_inputs_is_an_estimator_like_others(table):
    X, y = table
    model = DeepRegressor((4,), alpha=0.05, random_state=0, warm_start=True).fit(X, y)
    found = model.solution_
    assert found.status == "converged" and model.selected_features_[:2].all()
    assert model.selected_features_.shape == (70,) and not model.selected_features_[5]
    assert model.coefs_[0].shape == (70, 4) and model.predict(X).shape == (80,)
    before = model.objective_
    assert model.fit(X, y).objective_ == pytest.approx(before, rel=1e-6)
    assert model.n_iter_ < found.n_iter


def test_its_memory_is_not_that_of_all_products(table, monkeypatch):
    asked = []

    def told(n, n_in, *more):
        asked.append(n_in)
        return memory.of_fit(n, n_in, *more)

    monkeypatch.setattr("deepprox.estimators.session.of_fit", told)
    monkeypatch.setattr("deepprox.estimators.session.FIRST", 16)
    X, y = table
    for join in (True, False):
        model = DeepRegressor((4,), alpha=0.05, max_iter=5, random_state=0, join=join)
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
    assert asked == [32, 70]
