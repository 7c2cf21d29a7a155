"""``alpha="auto"``: the strength is chosen inside of a fit, on rows that networks have not seen."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split

import deepprox
from deepprox import DeepClassifier, DeepRegressor, folds, load
from deepprox.folds import deal, error, some
from deepprox.losses import Poisson, Softmax, Squared
from deepprox.network import Network
from deepprox.penalties import L1, Bridge
from deepprox.problem import Problem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
WEAK, STRONG = (
    X[:, 0] + 3 * RNG.normal(size=120),
    X[:, 0] - 2 * np.maximum(X[:, 1], 0) + 0.05 * RNG.normal(size=120),
)


@pytest.fixture(scope="module")
def fits():
    model = DeepRegressor((5,), alpha="auto", random_state=0)
    return {name: model.__sklearn_clone__().fit(X, y) for name, y in (("weak", WEAK), ("strong", STRONG))}


def problem_of(y, weight):
    return Problem(Network(()), Squared(), X[: len(y)], y, weight)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_spread_the_responses(n_folds):
    y = np.repeat([[0.0], [1.0], [2.0]], [20, 10, 5], axis=0)
    weight = np.append(np.ones(30), np.zeros(5))
    found = deal(problem_of(y, weight), np.random.default_rng(0), n_folds)
    assert (found[30:] == -1).all() and set(found[:30]) == set(range(n_folds))
    for level in (0, 1):
        counts = np.bincount(found[:30][y[:30, 0] == level], minlength=n_folds)
        assert np.ptp(counts) <= 2


def test_of_many_rows_some_are_compared(monkeypatch):
    whole, rng = (
        problem_of(STRONG[:, None], np.append(np.full(100, 0.01), np.zeros(20))),
        np.random.default_rng(0),
    )
    assert some(whole, rng) is whole
    monkeypatch.setattr(folds, "ROWS", 30)
    few = some(whole, rng)
    assert few.X.shape == (30, 6) and few.weight.sum() == pytest.approx(1)
    rows = [int(np.flatnonzero((x == X).all(1))[0]) for x in few.X]
    assert len({*rows}) == 30 and max(rows) < 100
    np.testing.assert_array_equal(few.y[:, 0], STRONG[rows])
    model = DeepRegressor((5,), alpha="auto", random_state=0).fit(X, STRONG)
    assert model.score(X, STRONG) > 0.9


def test_errors_are_bounded_where_probabilities_are():
    eta, y = np.array([[50.0, -50.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(error(Softmax(), eta, y), [2, 0.5])
    np.testing.assert_array_equal(error(Poisson(), eta, y), Poisson().value(eta, y))


def test_noise_asks_for_more_strength(fits):
    assert fits["weak"].alpha_ > fits["strong"].alpha_
    for model in fits.values():
        assert model.alphas_[np.argmin(model.risks_.mean(1))] == pytest.approx(model.alpha_, rel=3)
        assert model.risks_.shape == (len(model.alphas_), 3)
        assert model.solution_.status == "converged"
        assert all(np.all(block.penalty.alpha == model.alpha_) for block in model.fitted_.network.blocks)
    assert "alpha" in str(fits["weak"].summary())


def test_a_number_is_taken_as_it_is(fits):
    model = DeepRegressor((5,), alpha=0.02, random_state=0).fit(X, STRONG)
    assert not hasattr(model, "alpha_")
    again = DeepRegressor((5,), alpha="auto", random_state=0).fit(X, STRONG)
    assert again.set_params(alpha=0.02).fit(X, STRONG).coefs_[0].tolist() == model.coefs_[0].tolist()
    assert not hasattr(again, "alpha_")


def test_it_is_the_same_in_every_unit(fits):
    model = DeepRegressor((5,), alpha="auto", random_state=0).fit(X, 1000 * STRONG - 7)
    assert model.alpha_ == fits["strong"].alpha_
    np.testing.assert_allclose((model.predict(X) + 7) / 1000, fits["strong"].predict(X), atol=1e-4)
    unscaled = DeepRegressor((5,), alpha="auto", standardize=False, random_state=0).fit(X, 1000 * STRONG)
    assert 100 < unscaled.alpha_ / fits["strong"].alpha_ < 10_000


def test_rows_without_weight_and_repeated_rows():
    weight = RNG.integers(0, 3, len(X)).astype(float)
    model = DeepRegressor((5,), alpha="auto", random_state=0)
    told = model.fit(X, STRONG, sample_weight=weight).alpha_
    assert (
        model.fit(np.repeat(X, weight.astype(int), 0), np.repeat(STRONG, weight.astype(int))).alpha_ == told
    )


def test_one_block_is_near_the_lasso_of_folds():
    data, y = load_diabetes(return_X_y=True)
    parts = train_test_split(data, y, random_state=0)
    ours = DeepRegressor((), alpha="auto", random_state=0).fit(parts[0], parts[2])
    lasso = LassoCV(random_state=0).fit(parts[0], parts[2])
    assert ours.score(parts[1], parts[3]) > lasso.score(parts[1], parts[3]) - 0.02


def test_few_rows_and_a_small_class():
    data, y = load_iris(return_X_y=True)
    few = [0, 1, 2, 50, 51, 52, 100]
    assert DeepClassifier((3,), alpha="auto", random_state=0).fit(data[few], y[few]).score(data, y) > 0.6


def test_penalties_with_a_strength_of_their_own_have_nothing_to_choose():
    model = DeepRegressor((3,), penalty=Bridge(0.01), alpha="auto", random_state=0).fit(X, STRONG)
    assert not hasattr(model, "alpha_")
    mixed = DeepRegressor((3,), penalty=(L1(0.5), "l1"), alpha="auto", random_state=0).fit(X, STRONG)
    first, last = mixed.fitted_.network.blocks
    assert first.penalty.alpha == 0.5 and last.penalty.alpha == mixed.alpha_


def test_files_keep_what_was_chosen(fits, tmp_path):
    fits["strong"].save(tmp_path / "model.deepprox")
    again = load(tmp_path / "model.deepprox")
    assert again.alpha_ == fits["strong"].alpha_ and again.alpha == "auto"
    np.testing.assert_array_equal(again.predict(X), fits["strong"].predict(X))


def test_where_nothing_chooses_there_is_the_constant():
    fits = {
        "a stream": lambda model: deepprox.fit_stream(model, X, STRONG),
        "a batch": lambda model: model.partial_fit(X, STRONG),
        "devices": lambda model: model.set_params(devices=1).fit(X, STRONG),
        "sparse rows of one block": lambda model: model.fit(csr_array(X), STRONG),
        "equal rows": lambda model: model.fit(X[[0, 0]], STRONG[[0, 0]]),
    }
    for name, fit in fits.items():
        model = fit(DeepRegressor((), random_state=0))
        assert model.alpha_ == 0.01 and not hasattr(model, "risks_"), name
        assert model.fitted_.network.blocks[0].penalty.alpha == 0.01, name
        assert "no folds here" in str(model.summary()), name
    auto, constant = (
        deepprox.stability_selection(DeepRegressor((), **one), X, STRONG, n_pairs=2, random_state=0)
        for one in ({}, {"alpha": 0.01})
    )
    np.testing.assert_array_equal(auto.frequencies, constant.frequencies)
    assert len(deepprox.path(DeepRegressor((), random_state=0), X, STRONG, 3)) == 3
    assert len(deepprox.path(DeepRegressor((), penalty=L1(0.1)), X, STRONG, 3)) == 3


def test_what_goes_on_keeps_its_strength():
    model = DeepRegressor((5,), warm_start=True, random_state=0).fit(X, WEAK)
    first = model.alpha_
    assert hasattr(model, "risks_") and first != 0.01
    assert model.fit(X, STRONG).alpha_ == first and not hasattr(model, "risks_")
    assert model.set_params(warm_start=False).partial_fit(X, STRONG).alpha_ == first
    assert all(block.penalty.alpha == first for block in model.fitted_.network.blocks)
    assert model.fit(X, STRONG).alpha_ != first


def test_a_fit_that_is_resumed_chooses_alike(tmp_path):
    model = DeepRegressor((5,), checkpoint=tmp_path).fit(X, WEAK)
    again = DeepRegressor((5,), checkpoint=tmp_path, resume=True).fit(X, WEAK)
    np.testing.assert_array_equal(again.risks_, model.risks_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_penalties_without_a_strength_have_nothing_to_choose():
    assert not hasattr(DeepRegressor((), penalty="none").fit(X, WEAK), "alpha_")


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="alpha must be 'auto' or a finite number of at least 0"):
        DeepRegressor((3,), alpha="best").fit(X, STRONG)
