"""What a fit gives: scales, weights of observations, kinds of input, records and pictures."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from deepprox import DeepClassifier, DeepRegressor, links, losses, penalties, scouting, solve
from deepprox.plotting import ConvergenceDisplay
from deepprox.runtime import bucket


@pytest.fixture(scope="module")
def flowers():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.1 * rng.normal(size=(150, 2))


@pytest.fixture(scope="module")
def fitted(flowers):
    return model().fit(*flowers)


def model(**changes):
    return DeepClassifier(**{"hidden_layer_sizes": (5,), "alpha": 0.01, "random_state": 0} | changes)


def test_labels_may_be_strings(fitted, flowers):
    X, y = flowers
    names = np.array(["setosa", "versicolor", "virginica"])
    named = model().fit(X, names[y])
    assert list(named.classes_) == list(names)
    np.testing.assert_array_equal(named.predict(X), names[fitted.predict(X)])


def test_probabilities_and_decisions_agree(fitted, flowers):
    X, y = flowers
    p = fitted.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), p)
    np.testing.assert_array_equal(fitted.decision_function(X).argmax(1), p.argmax(1))
    two = model(hidden_layer_sizes=()).fit(X[y < 2], y[y < 2])
    chances = two.predict_proba(X)
    np.testing.assert_allclose(two.decision_function(X), np.log(chances[:, 1] / chances[:, 0]), rtol=1e-6)


def test_weights_are_reported_on_both_scales(fitted, flowers):
    X, _ = flowers
    by_hand = X @ fitted.coefs_[0] + fitted.intercepts_[0]
    by_hand = np.maximum(by_hand, 0) @ fitted.coefs_[1] + fitted.intercepts_[1]
    np.testing.assert_allclose(fitted.decision_function(X), by_hand, atol=1e-10)
    scaled = (X - X.mean(0)) / X.std(0)
    hidden = np.maximum(scaled @ fitted.coefs_standardized_[0] + fitted.intercepts_standardized_[0], 0)
    by_hand = hidden @ fitted.coefs_standardized_[1] + fitted.intercepts_standardized_[1]
    np.testing.assert_allclose(fitted.decision_function(X), by_hand, atol=1e-10)


def test_multi_class_intercepts_survive():
    y = np.repeat([0, 1, 2], [60, 30, 10])
    empty = DeepClassifier(hidden_layer_sizes=(), alpha=10.0).fit(
        np.random.default_rng(0).normal(size=(100, 3)), y
    )
    assert not empty.coefs_[0].any()
    np.testing.assert_allclose(empty.predict_proba(np.zeros((1, 3)))[0], [0.6, 0.3, 0.1], atol=1e-5)


def test_weights_are_repetitions_in_any_order(flowers):
    X, y = flowers
    rng = np.random.default_rng(0)
    times = rng.integers(1, 3, len(y)) * (rng.random(len(y)) < 0.95)  # as many are left as share a program
    order = np.random.default_rng(1).permutation(times.sum())
    weighed = model().fit(X, y, sample_weight=times)
    repeated = model().fit(np.repeat(X, times, axis=0)[order], np.repeat(y, times)[order])
    for ours, theirs in zip(weighed.coefs_, repeated.coefs_):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array])
def test_sparse_is_dense(kind, fitted, flowers):
    X, y = flowers
    sparse = model().fit(kind(X), y)
    np.testing.assert_array_equal(sparse.coefs_[0], fitted.coefs_[0])
    np.testing.assert_array_equal(sparse.predict(kind(X)), fitted.predict(X))


def test_several_responses(waves):
    X, Y = waves
    both = DeepRegressor((8,), link="tanh", alpha=0.005, random_state=0).fit(X, Y)
    assert both.predict(X).shape == Y.shape and both.score(X, Y) > 0.9
    assert list(both.selected_features_[:2]) == [True, True]
    one = DeepRegressor((), alpha=0.005).fit(X, Y[:, 0])
    assert one.predict(X).shape == (len(X),)


def test_float32(fitted, flowers):
    X, y = flowers
    single = model(dtype="float32", tol=1e-4).fit(X, y)
    assert all(w.dtype == np.float32 for w in (*single.coefs_, *single.intercepts_))
    assert single.predict_proba(X).dtype == np.float32 and fitted.predict_proba(X).dtype == np.float64
    double = model(tol=1e-4).fit(X, y)  # a smaller tolerance may lead to another minimum
    assert abs(single.objective_ - double.objective_) < 0.05 * double.objective_
    assert single.score(X, y) > 0.9


@pytest.mark.parametrize("penalty", ["l1", "l2", "none"])
def test_constant_columns_are_left_out(penalty, waves):
    X, Y = waves
    X = np.column_stack([X, np.full(len(X), 7.3)])
    flat = DeepRegressor((), penalty=penalty, alpha=0.01, random_state=0).fit(X, Y)
    assert list(flat.selected_features_) == [True, True, *flat.selected_features_[2:4], False]
    assert flat.feature_importances_[-1] == 0


def test_a_warm_start_goes_on(flowers):
    again = model(warm_start=True).fit(*flowers)
    before, cold = again.objective_, again.n_iter_
    again.set_params(alpha=0.0101).fit(*flowers)
    assert again.n_iter_ < cold and set(again.history_.phase) <= {"join", "newton"}
    assert abs(again.objective_ - before) < 0.05 * before
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        again.set_params(hidden_layer_sizes=(6,), max_iter=1).fit(*flowers)
    assert again.coefs_[0].shape == (4, 6)


def test_many_starts_keep_the_best():
    X = np.random.default_rng(0).normal(size=(60, 4))  # as in the tests of checkpoints: it compiles once
    many = model(n_init=3).fit(X, np.sin(3 * X[:, 0]) * X[:, 1] > 0)
    assert len(np.unique(np.round(many.solution_.starts, 3))) == 3
    np.testing.assert_allclose(min(many.solution_.starts), many.objective_)


def test_the_solution_is_a_record(fitted):
    found = fitted.solution_
    np.testing.assert_allclose(found.objective, found.loss + found.penalty)
    assert found.status == "converged" and found.certificate <= fitted.tol
    assert sum(found.n_nonzero) == fitted.n_nonzero_ and set(found.seconds) == {"split", "join"}
    assert dict(found)["objective"] == found["objective"] == fitted.objective_
    assert "converged" in str(found)
    nonzero = sum(
        np.count_nonzero(w) for w in (*fitted.coefs_standardized_, *fitted.intercepts_standardized_)
    )
    assert nonzero == fitted.n_nonzero_


def test_the_history_has_a_row_for_each_iteration(fitted):
    history = fitted.history_
    assert len(history) == fitted.n_iter_
    assert list(history.iteration) == list(range(1, fitted.n_iter_ + 1))
    assert {"phase", "objective", "loss", "primal", "dual", "certificate", "n_nonzero", "seconds"} <= {
        *history
    }
    assert set(history.phase) <= {"split", "join", "prune", "newton"}
    np.testing.assert_allclose(history.objective.iloc[-1], fitted.objective_, rtol=1e-6)


def test_plain_admm(flowers):
    with pytest.warns(Warning, match="max_iter"):
        plain = model(join=False, rho=1.0, max_iter=30).fit(*flowers)
    assert set(plain.history_.phase) == {"split"} and plain.solution_.primal > 0
    assert plain.history_.rho.nunique() == 1


def test_rho_per_block_and_observation(flowers):
    X, y = flowers
    each = model(rho=(0.1, np.linspace(0.1, 0.2, len(X)))).fit(X, y)
    assert each.solution_.status == "converged"
    straight = model(splits="none").fit(X, y)
    assert "split" not in set(straight.history_.phase)


def test_the_summary_names_what_survives(flowers):
    X = pd.DataFrame(flowers[0], columns=["sepal length", "sepal width", "petal length", "petal width"])
    text = model(alpha=0.03).fit(X, flowers[1])
    shown = str(text.summary())
    for column, live in zip(X, text.selected_features_):
        assert (column in shown) == live
    for part in ("4 - 5 relu - 3 softmax", "l1(0.03)", "certificate", "converged", "150", "non-zeros"):
        assert part in shown
    assert "<table>" in text.summary()._repr_html_()


def test_the_convergence_is_drawn(fitted):
    display = fitted.plot_history()
    assert isinstance(display, ConvergenceDisplay)
    assert display.ax_.figure is display.figure_ and display.residual_ax_.get_yscale() == "log"
    plt = pytest.importorskip("matplotlib.pyplot")
    _, ax = plt.subplots()
    assert fitted.plot_history(ax=ax).ax_ is ax
    plt.close("all")


def test_verbose_shows_and_silence_is_silent(flowers, capsys):
    model().fit(*flowers)
    assert capsys.readouterr().out == ""
    model(verbose=1).fit(*flowers)
    assert "objective" in capsys.readouterr().err


def test_nearby_sizes_share_a_bucket():
    sizes = 1, 64, 65, 100, 104, 105, 150, 1000, 10**6
    assert [bucket(n) for n in sizes] == [64, 64, 80, 112, 112, 112, 160, 1024, 1048576]
    assert all(n <= bucket(n) <= max(64, 1.25 * n) for n in range(1, 5000))


class Halved(penalties.Penalty):
    """A user's penalty without any decoration: half a lasso."""

    def __init__(self, alpha, note="mine"):
        self.alpha = alpha
        self.note = note

    def value(self, w):
        return penalties.L1(self.alpha / 2).value(w)

    def prox(self, v, step):
        return penalties.L1(self.alpha / 2).prox(v, step)


class Soft(links.Link):
    """A user's link: ``z / sqrt(1 + z^2)``."""

    def __call__(self, z):
        return z / (1 + z**2) ** 0.5


class Scaled(losses.Squared):
    """A user's loss."""


def test_a_users_own_words_pass_straight_through(flowers, waves):
    X, y = flowers
    mine = DeepClassifier((5,), link=Soft(), penalty=Halved(0.02), random_state=0).fit(X, y)
    hidden = X @ mine.coefs_[0] + mine.intercepts_[0]
    by_hand = hidden / np.sqrt(1 + hidden**2) @ mine.coefs_[1] + mine.intercepts_[1]
    np.testing.assert_allclose(mine.decision_function(X), by_hand, atol=1e-10)
    charged = 0.01 * sum(np.abs(w).sum() for w in mine.coefs_standardized_)
    np.testing.assert_allclose(mine.objective_, log_loss(y, mine.predict_proba(X)) + charged, rtol=1e-10)
    assert mine.solution_.status == "converged"
    assert "halved(0.02)" in str(mine.summary()) and "soft" in str(mine.summary())
    assert mine.penalty.alpha == 0.02
    ours = DeepRegressor((), loss=Scaled(), alpha=0.1).fit(*waves)
    np.testing.assert_allclose(ours.objective_, DeepRegressor((), alpha=0.1).fit(*waves).objective_)


def test_large_networks_go_both_ways(monkeypatch):
    X, y = make_friedman1(300, 20, noise=1.0, random_state=0)
    loss = losses.Squared(centre=0.0, spread=1.0)
    posed = DeepRegressor((50,), loss=loss, alpha=0.02, random_state=0, max_iter=300, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="1 of 1 starts skipped the split phase"):
        both = clone(posed).fit(X, y).objective_
    monkeypatch.setattr(solve, "FORK", 10**6)  # more steps than there are: no second route
    with pytest.warns(ConvergenceWarning):
        assert both < 0.6 * clone(posed).fit(X, y).objective_


def test_with_leaky_links_first_wide_networks_end_in_lower_minima(monkeypatch):
    X, y = make_classification(150, 100, n_informative=30, n_redundant=0, n_classes=10, random_state=0)
    found = {}
    for over in (scouting.OVER, np.inf):  # as it is, and never
        monkeypatch.setattr(scouting, "OVER", over)
        fits = [
            DeepClassifier((20,), alpha=5e-3, random_state=seed, tol=1e-3, max_iter=600).fit(X, y)
            for seed in range(3)
        ]
        assert ["leaky" in set(fit.history_.phase) for fit in fits] == [over < np.inf] * 3
        found[over] = np.array([fit.objective_ for fit in fits])
    with_leaks, without = found.values()
    assert with_leaks.max() < 1.002 * with_leaks.min()
    assert with_leaks.mean() < 0.997 * without.mean()
