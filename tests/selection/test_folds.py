"""What the networks of folds give beside a strength: predictions, scores, intervals, sets, pictures."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, brier_score_loss, r2_score
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, ShuffleSplit

from deepprox import DeepClassifier, DeepClassifierCV, DeepRegressor, DeepRegressorCV, load, penalties
from deepprox.plotting import CalibrationDisplay
from deepprox.selection.held_out import HeldOut

RNG = np.random.default_rng(5)
X = RNG.normal(size=(70, 4))
Y = np.column_stack([X[:, 0] - np.abs(X[:, 1]), X[:, 2] * 5]) + 0.3 * RNG.normal(size=(70, 2))
Y1 = Y[:, 0]
LABELS = np.array(["a", "b", "c"])[np.digitize(Y1, [-1.5, 0])]
NEW = RNG.normal(size=(9, 4))
SMALL = {"hidden_layer_sizes": (3,), "alphas": 4, "random_state": 0}
SPLIT = KFold(3, shuffle=True, random_state=1)


@pytest.fixture(scope="module")
def fits():
    """Of both kinds and both ways: side by side, and on paths."""
    weight, repeated = RNG.uniform(0.5, 2, 70), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    return {
        "numbers": DeepRegressorCV(**SMALL, cv=SPLIT).fit(X, Y1),
        "columns": DeepRegressorCV(**SMALL, cv=repeated).fit(X, Y),
        "weighted": DeepRegressorCV(**SMALL, cv=ShuffleSplit(3, random_state=2)).fit(X, Y1, weight),
        "one block": DeepRegressorCV((), alphas=4, cv=SPLIT).fit(X, Y1),
        "classes": DeepClassifierCV(**SMALL, cv=SPLIT).fit(X, LABELS),
        "two classes": DeepClassifierCV(**SMALL, loss="logistic", cv=SPLIT).fit(X, Y1 > -0.7),
        "margins": DeepClassifierCV((), loss="squared_hinge", alphas=4, cv=SPLIT).fit(X, Y1 > -0.7),
        "weights": weight,
    }


ALL = ["numbers", "columns", "weighted", "one block", "classes", "two classes", "margins"]
NUMBERS, CLASSES = ALL[:4], ALL[4:]


def response(name):
    return {"columns": Y, "classes": LABELS}.get(name, Y1 > -0.7 if name in CLASSES else Y1)


def said(model, rows):
    """What a plain model says of rows, a column for each class or output."""
    if isinstance(model, DeepRegressor):
        out = model.predict(rows)
        return out[:, None] if out.ndim == 1 else out
    if model.loss != "squared_hinge":
        return model.predict_proba(rows)
    eta = model.decision_function(rows)
    return np.column_stack([-eta, eta])


def by_hand(model, y):
    """Rows, folds, predictions and truth of every test fold."""
    for k, (_, outside) in enumerate(model.cv.split(X, y)):
        predicted = said(model.estimators_[k], X[outside])
        truth = np.searchsorted(model.classes_, y[outside]) if hasattr(model, "classes_") else y[outside]
        yield from zip(outside, [k] * len(outside), predicted, truth)


@pytest.mark.parametrize("name", ALL)
def test_predictions_out_of_fold_are_those_of_the_folds(fits, name):
    model, y = fits[name], response(name)
    rows = list(by_hand(model, y))
    expected = np.full((70, rows[0][2].size), np.nan)
    for i in range(70):
        own = [predicted for row, _, predicted, _ in rows if row == i]
        if own:
            expected[i] = np.mean(own, axis=0)
    found = model.oof_prediction_
    if name == "margins":
        expected = expected[:, 1]
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-12)
    there = ~np.isnan(expected.reshape(70, -1)[:, 0])
    assert there.all() == (name != "weighted")
    weight = fits["weights"][there] if name == "weighted" else None
    if name in NUMBERS:
        score = r2_score(y[there], found[there], sample_weight=weight)
    else:
        best = (found > 0).astype(int) if name == "margins" else found.argmax(1)
        score = accuracy_score(y, model.classes_[best])
    assert model.oof_score_ == pytest.approx(score)


@pytest.mark.parametrize("name", ALL)
def test_predictions_are_the_mean_of_the_folds_or_of_all_rows(fits, name):
    model = fits[name]
    each = np.mean([said(one, NEW) for one in model.estimators_], axis=0)
    single = clone(model).set_params(average=False)
    vars(single).update({k: v for k, v in vars(model).items() if k.endswith("_")})
    if name in NUMBERS:
        np.testing.assert_allclose(model.predict(NEW).reshape(each.shape), each)
    else:
        assert (model.predict(NEW) == model.classes_[each.argmax(1)]).all()
        decision, alone = (one.decision_function(NEW) for one in (model, single))
        best = (decision > 0) * 1 if decision.ndim == 1 else decision.argmax(1)
        assert best.tolist() == each.argmax(1).tolist()
        if name != "margins":
            np.testing.assert_allclose(model.predict_proba(NEW), each)
        np.testing.assert_array_equal(alone, model.best_estimator_.decision_function(NEW))
    np.testing.assert_array_equal(single.predict(NEW), model.best_estimator_.predict(NEW))
    assert "mean of the 3" in str(model.summary()) or len(model.estimators_) == 6
    assert "mean of the" not in str(single.summary()) and "out of fold" in str(single.summary())
    live = [one.selected_features_ for one in model.estimators_]
    np.testing.assert_allclose(model.selection_frequency_, np.mean(live, axis=0))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_are_those_of_the_formula(fits, name, level):
    model, y = fits[name], response(name).reshape(70, -1)
    rows = list(by_hand(model, y))
    weight = fits["weights"] if name == "weighted" else np.ones(70)
    there = sorted({i for i, *_ in rows})
    weight = weight / weight[there].mean()
    times = np.bincount([i for i, *_ in rows], minlength=70)
    own = np.array([weight[i] / times[i] for i, *_ in rows])
    news = [said(one, NEW) for one in model.estimators_]
    low, high = (end.reshape(len(NEW), -1) for end in model.predict_interval(NEW, level))
    for m in range(len(NEW)):
        for j in range(y.shape[1]):
            apart = np.array([abs(truth[j] - predicted[j]) for *_, predicted, truth in rows])
            centre = np.array([news[k][m, j] for _, k, *_ in rows])
            for end, values, sign in ((high, centre + apart, 1), (low, centre - apart, -1)):
                order = np.argsort(sign * values)
                reached = np.cumsum(own[order]) >= level * (len(there) + 1) - 1e-9
                wanted = values[order[reached.argmax()]] if reached.any() else sign * np.inf
                assert end[m, j] == pytest.approx(wanted)


def test_intervals_of_equal_weights_are_order_statistics(fits):
    model = fits["numbers"]
    residuals, centre = np.empty(70), np.empty((70, len(NEW)))
    for k, (_, outside) in enumerate(SPLIT.split(X)):
        residuals[outside] = np.abs(Y1[outside] - model.estimators_[k].predict(X[outside]))
        centre[outside] = model.estimators_[k].predict(NEW)
    low, high = model.predict_interval(NEW, 0.8)
    np.testing.assert_allclose(high, np.sort(centre + residuals[:, None], 0)[int(np.ceil(0.8 * 71)) - 1])
    np.testing.assert_allclose(low, np.sort(centre - residuals[:, None], 0)[int(np.floor(0.2 * 71)) - 1])


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_sets_are_those_of_the_formula(fits, name, level):
    model = fits[name]
    rows = list(by_hand(model, response(name)))
    news, sets = [said(one, NEW) for one in model.estimators_], model.predict_set(NEW, level)
    assert sets.shape == (len(NEW), len(model.classes_)) and sets.dtype == bool
    for m in range(len(NEW)):
        for c in range(sets.shape[1]):
            closer = sum(-predicted[truth] < -news[k][m, c] for _, k, predicted, truth in rows)
            assert sets[m, c] == (closer < level * 71 - 1e-9)


@pytest.mark.slow
def test_nine_of_ten_are_covered():
    """Of exchangeable rows with heavy tails: 4000 of them in 40 draws, within 5 standard errors."""
    rng, inside, total = np.random.default_rng(0), 0, 0
    for _ in range(40):
        n, m = 60, 100
        x = rng.normal(size=n + m)
        y = x + rng.standard_t(3, n + m)
        fold = np.arange(n) % 5
        slopes = [x[:n][fold != k] @ y[:n][fold != k] / (x[:n][fold != k] ** 2).sum() for k in range(5)]
        predicted = [np.outer(x[:n][fold == k], slopes[k]) for k in range(5)]
        outside = [np.flatnonzero(fold == k) for k in range(5)]
        held = HeldOut.of(outside, predicted, [y[rows][:, None] for rows in outside], np.ones(n))
        low, high = held.interval(np.stack([x[n:, None] * slope for slope in slopes]), 0.9)
        inside += ((low[:, 0] <= y[n:]) & (y[n:] <= high[:, 0])).sum()
        total += m
    error = np.sqrt(0.9 * 0.1 * (1 / total + 1 / (40 * 61)))
    assert abs(inside / total - 0.9) < 5 * error


def test_too_few_rows_for_a_level_have_no_ends():
    model = DeepRegressorCV((), alphas=[0.01], cv=3).fit(X[:8], Y1[:8])
    low, high = model.predict_interval(NEW, 0.9)
    assert np.isneginf(low).all() and np.isposinf(high).all()


@pytest.mark.parametrize("name", ["numbers", "classes", "two classes"])
def test_errors_and_scores_of_every_strength(fits, name):
    model, y = fits[name], response(name)
    index = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    for k, (_, outside) in enumerate(SPLIT.split(X, y)):
        one, rows = model.estimators_[k], X[outside]
        assert one.alpha == model.alpha_ and one.solution_.status == "drawn"
        if name == "numbers":
            spread = model.fitted_.loss.spread
            error = ((one.predict(rows) - y[outside]) ** 2).mean() / 2 / spread[0] ** 2
        elif name == "classes":
            hits = y[outside][:, None] == model.classes_
            error = ((one.predict_proba(rows) - hits) ** 2).sum(1).mean()
        else:
            error = brier_score_loss(y[outside], one.predict_proba(rows)[:, 1])
        assert model.loss_path_[index, k] == pytest.approx(error, rel=1e-4)
        assert model.score_path_[index, k] == pytest.approx(one.score(rows, y[outside]), rel=1e-4)
    assert model.alpha_ == model.alpha_min_ <= model.alpha_1se_
    means = model.loss_path_.mean(1)
    assert means[index] == means.min() and model.best_estimator_.solution_.done


def test_a_fold_knows_nothing_of_what_it_leaves_out():
    wild, settings = Y1.copy(), {**SMALL, "alphas": [0.01], "cv": SPLIT}
    outside = next(SPLIT.split(X))[1]
    wild[outside] += 1e3
    far = X.copy()
    far[outside] *= 100
    models = [DeepRegressorCV(**settings).fit(*data).estimators_[0] for data in ((X, Y1), (far, wild))]
    np.testing.assert_allclose(*(model.predict(NEW) for model in models), rtol=1e-4)


@pytest.mark.parametrize("sizes", [(), (3,)])
def test_scorers_choose_and_are_shown(sizes):
    calls = []

    def scorer(model, X, y, sample_weight=None):
        calls.append(sample_weight is None)
        return -float(np.abs(model.predict(X) - y).mean())

    settings = {**SMALL, "hidden_layer_sizes": sizes, "cv": SPLIT}
    ours, named = (
        DeepRegressorCV(**settings, scoring=scoring).fit(X, Y1)
        for scoring in (scorer, "neg_mean_absolute_error")
    )
    np.testing.assert_allclose(ours.score_path_, named.score_path_)
    best = ours.score_path_.mean(1)
    assert best.max() == best[ours.alphas_ == ours.alpha_][0] == pytest.approx(ours.oof_score_)
    assert all(calls) and len(calls) == ours.score_path_.size
    DeepRegressorCV(**settings | {"alphas": [0.01]}, scoring=scorer).fit(X, Y1, np.ones(70))
    assert not calls[-1]
    with pytest.raises(ValueError, match="scoring"):
        DeepRegressorCV(scoring="best").fit(X, Y1)


def test_groups_stay_together():
    groups = np.arange(70) // 7
    model = DeepRegressorCV(**SMALL, cv=GroupKFold(5)).fit(X, Y1, groups=groups)
    for k in range(5):
        outside = model.held_out_.rows[model.held_out_.fold == k]
        assert not set(groups[outside]) & set(np.delete(groups, outside))
    with pytest.raises(ValueError, match="groups"):
        DeepRegressorCV(**SMALL, cv=GroupKFold(5)).fit(X, Y1)


def test_folds_by_default_keep_equal_rows_together():
    twice = np.r_[0:70, 0:10]
    held = DeepClassifierCV(**SMALL).fit(X[twice], LABELS[twice]).held_out_
    fold = np.empty(80, int)
    fold[held.rows] = held.fold
    assert (fold[:10] == fold[70:]).all() and len(held.rows) == 80
    counts = [np.bincount(fold[:70][label == LABELS], minlength=5) for label in "abc"]
    assert max(np.ptp(count) for count in counts) <= 3


def test_weights_are_repetitions_and_rows_without_are_not_there():
    times = RNG.integers(0, 3, 70)
    again = np.repeat(np.arange(70), times)
    folds = [(np.arange(70)[np.arange(70) % 3 != k], np.arange(70)[np.arange(70) % 3 == k]) for k in range(3)]
    repeated = [tuple(np.flatnonzero(np.isin(again, part)) for part in fold) for fold in folds]
    weighted = DeepRegressorCV(**SMALL, cv=folds).fit(X, Y1, times)
    copied = DeepRegressorCV(**SMALL, cv=repeated).fit(X[again], Y1[again])
    np.testing.assert_allclose(weighted.loss_path_, copied.loss_path_, rtol=1e-9)
    np.testing.assert_array_equal(weighted.predict(NEW), copied.predict(NEW))
    assert weighted.oof_score_ == pytest.approx(copied.oof_score_)


def test_penalties_with_strengths_of_their_own_follow_in_proportion():
    both = (penalties.L1(0.5), penalties.L1(1.0))
    model = DeepRegressorCV(**SMALL | {"penalty": both, "alphas": [0.01, 0.02]}, cv=SPLIT).fit(X, Y1)
    for one in (model.best_estimator_, *model.estimators_):
        strengths = [float(block.penalty.alpha) for block in one.fitted_.network.blocks]
        assert strengths == pytest.approx([model.alpha_ / 2, model.alpha_])


@pytest.mark.parametrize("settings", [{"batch_size": None}, {"relax": True}, {"splits": "none"}])
def test_other_phases_walk_paths(settings):
    model = DeepRegressorCV(**SMALL | {"alphas": [0.03, 0.1]}, cv=SPLIT, **settings).fit(X, Y1)
    assert len(model.path_) == 2 and model.estimators_[0].solution_.status == "converged"
    assert not hasattr(pickle.loads(pickle.dumps(model)), "path_")


@pytest.mark.parametrize("name", ALL)
def test_copies_and_files_say_the_same(fits, name, tmp_path):
    model = fits[name]
    again = pickle.loads(pickle.dumps(model))
    saved = clone(model).set_params(cv=None)
    vars(saved).update({k: v for k, v in vars(model).items() if k.endswith("_")})
    saved.save(tmp_path / "model.deepprox")
    for one in (again, load(tmp_path / "model.deepprox")):
        np.testing.assert_array_equal(one.predict(NEW), model.predict(NEW))
        np.testing.assert_array_equal(one.oof_prediction_, model.oof_prediction_)
        assert one.oof_score_ == model.oof_score_ and "out of fold" in str(one.summary())
        np.testing.assert_array_equal(one.best_estimator_.predict(NEW), model.best_estimator_.predict(NEW))
        intervals = [m.predict_interval(NEW) if name in NUMBERS else m.predict_set(NEW) for m in (one, model)]
        np.testing.assert_array_equal(*intervals)


def test_one_onnx_model_is_one_network(fits):
    pytest.importorskip("onnx")
    model = fits["classes"]
    with pytest.raises(ValueError, match="best_estimator_"):
        model.to_onnx()
    assert model.best_estimator_.to_onnx().graph.node
    single = clone(model).set_params(average=False)
    vars(single).update({k: v for k, v in vars(model).items() if k.endswith("_")})
    assert single.to_onnx().graph.node


@pytest.mark.parametrize("name", ["numbers", "columns", "classes", "two classes"])
def test_calibration_is_drawn(fits, name, tmp_path):
    display = fits[name].plot_calibration()
    display.figure_.savefig(tmp_path / "calibration.png")
    if name in CLASSES:
        for k in range(len(fits[name].classes_)):
            mean, share, sizes = display.reliability(k)
            p = fits[name].oof_prediction_[:, k]
            assert sizes.sum() == 70 and (np.diff(mean) >= 0).all()
            assert mean @ sizes == pytest.approx(p.sum())
            assert share @ sizes == pytest.approx((response(name) == fits[name].classes_[k]).sum())


def test_what_has_no_calibration_is_told(fits):
    with pytest.raises(ValueError, match="probabilities"):
        fits["margins"].plot_calibration()
    with pytest.raises(TypeError, match="not a DeepClassifier"):
        CalibrationDisplay.from_estimator(DeepClassifier())


def test_names_of_columns_and_the_posterior_of_the_network_of_all_rows():
    table = pd.DataFrame(X, columns=[*"abcd"])
    model = DeepRegressorCV((), alphas=[0.01], cv=2).fit(table, Y1)
    assert [*model.estimators_[0].feature_names_in_] == [*"abcd"]
    draws = model.sample_posterior("laplace", random_state=0)
    ends = [one.predict_interval(table[:3], posterior=draws) for one in (model, model.best_estimator_)]
    np.testing.assert_array_equal(*ends)
    np.testing.assert_array_equal(
        model.predict(table, posterior=draws), model.best_estimator_.predict(table, posterior=draws)
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"average": 2}, "average must be True or False"),
        ({"cv": [([0, 1], [99])]}, "not among the 70"),
        ({"cv": [([], [1, 2])]}, "leaves no row"),
        ({"cv": [([1, 2], [])]}, "no folds with rows"),
        ({"alphas": "many"}, "alphas must be"),
        ({"eps": 2}, "eps must be"),
    ],
)
def test_bad_settings_get_one_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        DeepRegressorCV(**SMALL | settings).fit(X, Y1)
