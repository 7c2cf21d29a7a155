"""Estimators that choose their own strength."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LassoCV, LassoLarsIC
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from deepprox import DeepClassifierCV, DeepClassifierIC, DeepRegressorCV, DeepRegressorIC
from deepprox.selection.walk import Walk

ALL = (DeepClassifierCV, DeepClassifierIC, DeepRegressorCV, DeepRegressorIC)


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 7))
    return X, X[:, 0] - 2 * X[:, 1] + 0.5 * rng.normal(size=80)


def test_folds_agree_with_lassocv(linear):
    X, y = linear
    alphas = np.geomspace(0.005, 1.0, 12)
    X = (X - X.mean(0)) / X.std(0)
    ours = DeepRegressorCV((), alphas=alphas, cv=4, rule="min", standardize=False).fit(X, y)
    theirs = LassoCV(alphas=alphas, cv=4, tol=1e-8).fit(X, y)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    # squared loss is half a square
    np.testing.assert_allclose(2 * ours.loss_path_, theirs.mse_path_[::-1], rtol=1e-3)
    np.testing.assert_allclose(ours.coefs_[0][:, 0], theirs.coef_, atol=1e-4)
    assert ours.alpha_1se_ >= ours.alpha_min_


def test_criterion_chooses_as_lasso_lars_ic(linear):
    X, y = linear
    ours = DeepRegressorIC((), alphas=40, eps=1e-3).fit(X, y)
    theirs = LassoLarsIC("bic").fit((X - X.mean(0)) / X.std(0), y)
    assert (ours.selected_features_ == (theirs.coef_ != 0)).all()
    assert ours.criterion_.shape == ours.alphas_.shape


def test_classes_by_name_survive_choosing(linear):
    X, y = (part[:60] for part in linear)  # all of them and two thirds compile to the same shapes
    labels = np.where(y > 0, "benign", "malignant")
    settings = {"alphas": 5, "eps": 0.03, "random_state": 0, "n_jobs": 2}
    chosen = DeepClassifierCV((2,), link="tanh", cv=3, **settings).fit(X, labels)
    assert list(chosen.classes_) == ["benign", "malignant"]
    assert chosen.score(X, labels) > 0.9 and chosen.alpha_ in chosen.alphas_
    assert chosen.loss_path_.shape == (len(chosen.alphas_), 3)
    again = pickle.loads(pickle.dumps(chosen))
    assert not hasattr(again, "path_")
    np.testing.assert_array_equal(again.predict_proba(X), chosen.predict_proba(X))
    assert "DeepClassifierCV" in str(chosen.summary())


def test_relaxing_chooses_fewer_inputs(linear):
    X, y = linear
    plain, relaxed = (DeepRegressorIC((), alphas=20, relax=relax).fit(X, y) for relax in (False, True))
    assert relaxed.selected_features_.sum() <= plain.selected_features_.sum()
    assert relaxed.selected_features_[:2].all()


@pytest.mark.parametrize("cls", [DeepRegressorCV, DeepRegressorIC])
def test_a_second_fit_forgets_the_first(linear, cls):
    X, y = linear
    model = cls((), alphas=[0.01, 0.1]).fit(pd.DataFrame(X, columns=[*"abcdefg"]), y)
    before = {*vars(model)}
    assert [*model.feature_names_in_] == [*"abcdefg"]
    assert before - vars(model.fit(X, y)).keys() == {"feature_names_in_"}
    make_pipeline(model).fit(X, y)  # leaves what scikit-learn keeps on a model meanwhile


def test_one_fold_has_no_standard_error(linear):
    alphas, fold = [0.001, 0.01, 0.1], ShuffleSplit(1, random_state=0)
    model = DeepRegressorCV((), alphas=alphas, cv=fold).fit(*linear)
    assert model.loss_path_.shape == (3, 1)
    assert model.alpha_ == model.alpha_1se_ == model.alpha_min_ == alphas[int(model.loss_path_.argmin())]


@pytest.mark.parametrize(("cls", "after"), [(DeepRegressorCV, 1), (DeepRegressorCV, 3), (DeepRegressorIC, 1)])
def test_an_interruption_ends_the_fit(linear, monkeypatch, cls, after):
    calls, solve = [], Walk.solve

    def interrupted(self, *args, **kwargs):
        calls.append(self)
        if len(calls) == after + 1:  # of the path of two strengths, or of the first fold
            raise KeyboardInterrupt
        return solve(self, *args, **kwargs)

    monkeypatch.setattr(Walk, "solve", interrupted)
    model = cls((), alphas=[0.01, 0.1])
    with pytest.raises(KeyboardInterrupt):
        model.fit(*linear)
    assert len(calls) == after + 1 and not hasattr(model, "alpha_")


@pytest.mark.parametrize("cls", ALL)
def test_parameters_are_kept_as_given(cls):
    model = cls(hidden_layer_sizes=(3,), alphas=7)
    assert clone(model).get_params() == model.get_params()


def test_bad_rules_get_one_sentence(linear):
    with pytest.raises(ValueError, match="'min' or '1se'"):
        DeepRegressorCV((), rule="best").fit(*linear)
    with pytest.raises(ValueError, match="criterion must be 'aic', 'aicc'"):
        DeepRegressorIC((), criterion="dic").fit(*linear)


def test_a_criterion_counts_rows_and_not_weights(linear):
    """Weights of 1 and 2 are shares: the same rows twice over are more, and no two weights say so."""
    X, y = linear
    often = 1 + np.arange(len(y)) % 2
    settings = {"hidden_layer_sizes": (), "alphas": [0.01, 0.1]}
    shares, doubled = (DeepRegressorIC(**settings).fit(X, y, w).criterion_ for w in (often, 2 * often))
    repeated = DeepRegressorIC(**settings).fit(X.repeat(often, axis=0), y.repeat(often)).criterion_
    np.testing.assert_allclose(doubled, shares, rtol=1e-9)
    assert (np.abs(repeated - shares) > 10).all()


# It gives folds of weighted and of repeated rows that hold the same. To a criterion these are not the same,
# but of three strengths on that table one is the best by far.
@pytest.mark.slow
@parametrize_with_checks([cls((2,), alphas=3, random_state=0) for cls in ALL])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
