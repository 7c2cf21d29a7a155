"""Estimators of many inputs."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import deepprox
from deepprox import DeepRegressor, memory, screening
from deepprox.design import Sparse


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
    monkeypatch.setattr("deepprox.screening.FIRST", 16)
    X, y = table
    for join in (True, False):
        model = DeepRegressor((4,), alpha=0.05, max_iter=5, random_state=0, join=join)
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
    assert asked == [32, 70]


@pytest.fixture
def sparse(table, monkeypatch):
    """Sparse inputs and a response; no more than 40 columns of them may ever be dense."""
    rng, few = np.random.default_rng(1), Sparse.array
    A = scipy.sparse.random_array((90, 100), density=0.2, rng=rng, format="csr")
    dense = A.toarray()

    def array(self):
        assert self.shape[1] <= 64
        return few(self)

    monkeypatch.setattr(Sparse, "array", array)
    return A, dense, 4 * np.tanh(dense[:, 0]) + 3 * np.abs(dense[:, 1])


def test_a_sparse_table_is_never_dense_and_gives_the_same_network(sparse):
    A, dense, y = sparse
    make = lambda: DeepRegressor((4,), alpha=0.08, link="tanh", random_state=0)  # noqa: E731
    found, plain = make().fit(A, y), make().fit(dense, y)
    assert found.solution_.status == plain.solution_.status == "converged"
    assert found.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_array_equal(found.selected_features_, plain.selected_features_)
    np.testing.assert_allclose(found.predict(A), plain.predict(dense), atol=1e-4)


def test_a_path_goes_on_from_sparse_inputs(sparse):
    A, _, y = sparse
    found = deepprox.path(DeepRegressor((4,), link="tanh", random_state=0), A, y, alphas=[0.05, 0.08, 0.3])
    counts = [int(solution.live.inputs.sum()) for solution in found.solutions]
    assert counts[0] >= counts[-1] and all(np.isfinite([s.objective for s in found.solutions]))
