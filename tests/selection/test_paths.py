"""Paths: warm-started from dense to empty, what they hold, and how one model is chosen."""

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.linear_model import Lasso, lasso_path

import deepprox
from deepprox import DeepClassifier, DeepClassifierIC, DeepRegressor, DeepRegressorCV, losses, penalties
from deepprox.joining import quasi_newton
from deepprox.selection import walk as walking
from deepprox.spreading import same
from deepprox.struct import replace

UNSCALED = losses.Squared(centre=0.0, spread=1.0)  # responses as they are


def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = 2 * np.tanh(X[:, 0] + X[:, 1]) - X[:, 2] + 0.3 * rng.normal(size=120)
    return X, y


@pytest.fixture(scope="module")
def data():
    """As many rows in every test: networks compile once."""
    X, y = tables()
    return X[:90], y[:90]


@pytest.fixture(scope="module")
def net(data):
    X, y = tables()
    model = DeepRegressor((4,), link="tanh", loss=UNSCALED, random_state=0)
    return deepprox.path(model, *data, 12, eps=1e-2, validation=(X[90:], y[90:]))


def test_one_block_is_the_lasso_path():
    X, y = make_regression(60, 8, n_informative=4, noise=5.0, random_state=0)
    model = DeepRegressor((), standardize=False)
    alphas = np.geomspace(0.5, 30, 6)
    found = deepprox.path(model, X, y, alphas)
    _, coefs, _ = lasso_path(X - X.mean(0), y - y.mean(), alphas=alphas[::-1], tol=1e-10)
    np.testing.assert_allclose([one.coefs_[0][:, 0] for one in found], coefs.T[::-1], atol=1e-4)
    assert [one.n_iter_ for one in found][1:] < [found[0].n_iter_] * 5


def test_path_ends_with_the_first_empty_network(net):
    inputs = net.inputs.sum(axis=1)
    assert inputs[0] > 0 and inputs[-1] == 0 and (inputs[:-1] > 0).all()
    np.testing.assert_allclose(np.diff(np.log(net.alphas)), np.log(net.alphas[1] / net.alphas[0]))
    assert {one.status for one in net.solutions} == {"converged"}


def test_a_network_is_followed_past_where_a_constant_is_lower(net):
    """A path may come to the sparsest models only uphill."""
    objective = net.frame()["objective"]
    assert (objective.iloc[:-1] > objective.iloc[-1]).any()


def test_model_of_a_path_is_a_fitted_estimator(net, data):
    X, y = data
    model = net[3]
    assert model.alpha == net.alphas[3]
    again = DeepRegressor((4,), link="tanh", loss=UNSCALED, alpha=model.alpha, warm_start=True)
    again.fitted_ = model.fitted_
    again.fit(X, y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-4)
    assert model.objective_ == pytest.approx(again.objective_)
    with pytest.raises(IndexError, match="no number 99"):
        net[99]


def test_path_compiles_once(data, monkeypatch):
    model = DeepRegressor((4,), link="tanh", random_state=0)
    deepprox.path(model, *data, 5, eps=1e-2)
    before = quasi_newton.chunk.compiled(same)._cache_size()
    deepprox.path(model, *data, 9, eps=1e-2)
    assert quasi_newton.chunk.compiled(same)._cache_size() == before


def test_frame_has_a_row_for_every_strength(net):
    frame = net.frame()
    assert len(frame) == len(net)
    expected = {
        "alpha",
        "objective",
        "certificate",
        "n_inputs",
        "df",
        "bic",
        "train_score",
        "validation_score",
    }
    assert expected <= set(frame.columns)
    assert frame.df.iloc[-1] == pytest.approx(1.0)  # the intercept


@pytest.mark.parametrize("rule", ["aic", "aicc", "bic", "ebic", "gcv"])
def test_least_criterion_is_chosen(net, rule):
    choice = net.select(rule)
    assert choice.index == int(net.frame()[rule].argmin())
    assert choice.estimator.alpha == choice.alpha and choice.rule == rule


def test_one_standard_error_is_no_denser_than_the_best(net):
    best, sparse = net.select("validation"), net.select("1se")
    assert sparse.alpha >= best.alpha
    losses = net.validation_losses
    error = losses[best.index].std(ddof=1) / np.sqrt(losses.shape[1])
    assert losses[sparse.index].mean() <= losses[best.index].mean() + error


def test_one_observation_has_no_standard_error(data):
    X, y = data
    found = deepprox.path(DeepRegressor(()), X, y, [0.01, 0.1, 0.3], validation=(X[:1], y[:1]))
    assert found.select("1se").index == found.select("validation").index


@pytest.mark.parametrize("rule", ["loss", "bic", "validation"])
def test_the_best_with_few_inputs_is_chosen_among_them(net, rule):
    frame = net.frame()
    values = frame["validation_loss" if rule == "validation" else rule]
    for most in range(1, frame.n_inputs.max() + 1):
        few = (frame.n_inputs > 0) & (frame.n_inputs <= most)
        if few.any():
            assert net.select(rule, max_inputs=most).index == values[few].idxmin()
        else:
            with pytest.raises(ValueError, match=f"has 1 to {most} inputs"):
                net.select(rule, max_inputs=most)
    assert net.select("1se", max_inputs=most).index == net.select("1se").index
    with pytest.raises(ValueError, match="max_inputs must be a whole number of at least 1, got 0"):
        net.select(rule, max_inputs=0)


def test_both_directions_are_never_worse(data):
    X, y = data
    model = DeepRegressor((4,), link="tanh", random_state=1)
    alphas = np.geomspace(0.01, 0.5, 8)
    up = deepprox.path(model, X, y, alphas)
    both = deepprox.path(model, X, y, alphas, direction="both")
    objectives = np.array([[one.objective for one in found.solutions] for found in (up, both)])
    assert (objectives[1] <= objectives[0] + 1e-12).all()


def test_relaxed_models_read_the_inputs_that_were_chosen(data):
    X, y = data
    model = DeepRegressor((4,), link="tanh", loss=UNSCALED, random_state=0)
    alphas = np.geomspace(0.01, 0.4, 8)
    plain, relaxed = (deepprox.path(model, X, y, alphas, relax=relax) for relax in (False, True))
    assert (relaxed.inputs <= plain.inputs).all()
    later = plain.inputs.any(axis=1)
    later[0] = False
    assert (relaxed.train_scores[later] > plain.train_scores[later]).all()
    assert relaxed[-1].alpha == pytest.approx(alphas[0])


def test_spacing_by_inputs_passes_over_few_numbers_of_them():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 12))
    y = X @ np.geomspace(1, 0.05, 12) + 0.1 * rng.normal(size=150)
    model = DeepRegressor((), standardize=False)
    even, placed = (deepprox.path(model, X, y, 18, eps=1e-3, spacing=s) for s in ("geometric", "inputs"))
    assert (np.diff(placed.alphas) > 0).all() and len(placed) <= 18 and not placed.inputs[-1].any()
    numbers = [set(found.inputs.sum(axis=1).tolist()) for found in (even, placed)]
    assert len(numbers[1]) > len(numbers[0])
    _, coefs, _ = lasso_path(X - X.mean(0), y - y.mean(), alphas=placed.alphas[::-1], tol=1e-10)
    np.testing.assert_allclose([one.coefs_[0][:, 0] for one in placed], coefs.T[::-1], atol=1e-4)


def test_objects_follow_in_proportion_and_stay_beside_names(data):
    X, y = data
    model = DeepRegressor((4,), link="tanh", penalty=(penalties.L1(0.02), penalties.L1(0.01)), random_state=0)
    found = deepprox.path(model, X, y, [0.02, 0.04])
    assert [float(p.alpha) for p in found[1].penalty] == pytest.approx([0.04, 0.02])
    mixed = DeepRegressor((4,), link="tanh", penalty=("l1", penalties.L2(0.01)), random_state=0)
    found = deepprox.path(mixed, X, y, [0.02, 0.04])
    blocks = found[1].fitted_.network.blocks
    assert (float(blocks[0].penalty.alpha), float(blocks[1].penalty.alpha)) == pytest.approx((0.04, 0.01))


def test_a_ridge_path_ends_without_being_empty(data):
    X, y = data
    found = deepprox.path(DeepRegressor((), loss=UNSCALED, penalty="l2"), X, y, 8, eps=1e-2)
    explained = 1 - np.array([one.loss for one in found.solutions]) / (y.var() / 2)
    assert found.inputs[-1].all() and explained[-1] <= 0.01 * explained[0] < explained[0]


def test_interrupting_keeps_what_is_done(data, monkeypatch):
    X, y = data
    calls, solve = [], walking.Walk.solve

    def interrupted(self, alpha, *rest, **changes):
        calls.append(alpha)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return solve(self, alpha, *rest, **changes)

    monkeypatch.setattr(walking.Walk, "solve", interrupted)
    model = DeepRegressor((4,), link="tanh", random_state=0)
    found = deepprox.path(model, X, y, np.geomspace(0.01, 0.5, 8))
    assert found.interrupted and len(found) == 3 and "interrupted" in repr(found)
    assert found[2].predict(X).shape == y.shape


def test_a_bar_moves_along_the_strengths(data, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal has it: drawn before the first strength is known
    assert len(deepprox.path(DeepRegressor(()), *data, [0.1, 0.2], verbose=1)) == 2
    drawn = capsys.readouterr().err
    assert "looking for the null model" in drawn and "alpha 0.2" in drawn


def test_picture_shows_every_panel(net, tmp_path):
    drawing = net.plot()
    assert [ax.get_ylabel() for ax in drawing.axes_][2:] == ["BIC", "score"]
    drawing.figure_.savefig(tmp_path / "path.png")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alphas": 1}, "at least 2 strengths"),
        ({"alphas": [0.1, -1.0]}, "positive numbers"),
        ({"alphas": "many"}, "positive numbers"),
        ({"eps": 2.0}, "between 0 and 1"),
        ({"spacing": "even"}, "'geometric' or 'inputs'"),
        ({"spacing": "inputs", "alphas": [0.1, 1.0]}, "give their number"),
        ({"direction": "down"}, "'up' or 'both'"),
        ({"direction": "both", "relax": True}, "goes with direction"),
        ({"max_iter": 0}, "at least 1"),
        ({"validation": 3}, "pair"),
    ],
)
def test_bad_settings_get_one_sentence(data, settings, words):
    with pytest.raises(ValueError, match=words):
        deepprox.path(DeepRegressor((4,)), *data, **settings)


def test_a_strength_given_twice_is_taken_once(data):
    model = DeepRegressor((4,), link="tanh", random_state=0)
    found = deepprox.path(model, *data, [0.04, 0.02, 0.02, 0.03])
    np.testing.assert_array_equal(found.alphas, [0.02, 0.03, 0.04])


@pytest.mark.parametrize("model", [DeepRegressorCV(()), DeepClassifierIC(()), Lasso(), DeepRegressor])
@pytest.mark.parametrize("walk", [deepprox.path, deepprox.stability_selection])
def test_only_plain_estimators_have_paths(data, model, walk):
    with pytest.raises(TypeError, match=rf"{walk.__name__} takes a .* not a .*{type(model).__name__}: give"):
        walk(model, *data, [0.1, 0.2])


@pytest.mark.parametrize(
    ("most", "said"), [(None, "at none of the 2 models"), (3, "at no model with so few inputs")]
)
def test_a_rule_without_numbers_says_so(data, most, said):
    found = deepprox.path(DeepRegressor(()), *data, [0.01, 0.5])
    assert (found.inputs.sum(axis=1) > 3).tolist() == [True, False]
    found.solutions = [replace(one, loss=np.nan) for one in found.solutions]
    with pytest.raises(ValueError, match=said):
        found.select("loss", max_inputs=most)


def test_penalty_without_strength_is_refused(data):
    with pytest.raises(ValueError, match="strength can vary"):
        deepprox.path(DeepRegressor((4,), penalty=penalties.NonNegative()), *data)


def test_choosing_without_what_it_needs_is_refused(data):
    X, y = data
    found = deepprox.path(DeepClassifier((), loss="squared_hinge"), X, y > 0, [0.01, 0.1])
    with pytest.raises(ValueError, match="needs a likelihood"):
        found.select("bic")
    with pytest.raises(ValueError, match="needs validation data"):
        found.select("1se")
    with pytest.raises(ValueError, match="rule must be 'aic', "):
        found.select("best")
