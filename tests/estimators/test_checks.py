"""scikit-learn's own checks, all of them, and the company an estimator keeps there."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from deepprox import DeepClassifier, DeepRegressor

SMALL = {"hidden_layer_sizes": (5,), "max_iter": 300}
PARTS = ShuffleSplit(3, train_size=0.9, random_state=0)  # so large that they run the programs of the whole


@parametrize_with_checks([DeepClassifier((), alpha=1e-2)])
def test_scikit_learn(estimator, check):
    check(estimator)


def for_regressors(estimator, check):
    """Now what is for regressors alone, and later what a classifier passes too."""
    name = check.func.__name__
    return pytest.param(estimator, check, id=name, marks=[] if "regressor" in name else pytest.mark.slow)


@pytest.mark.parametrize(
    ("estimator", "check"),
    [for_regressors(*pair) for pair in estimator_checks_generator(DeepRegressor((), alpha=1e-2))],
)
def test_scikit_learn_of_a_regressor(estimator, check):
    check(estimator)


@pytest.mark.slow  # scikit-learn's many small tables compile a network each
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([DeepClassifier(**SMALL), DeepRegressor(**SMALL)])
def test_scikit_learn_of_networks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def flowers():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def fitted(flowers):
    return model().fit(*flowers)


def model(**changes):
    return DeepClassifier(**{"hidden_layer_sizes": (5,), "alpha": 0.01, "random_state": 0} | changes)


def test_pickle_and_clone(fitted, flowers):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(flowers[0]), fitted.predict_proba(flowers[0]))
    assert again.history_.equals(fitted.history_)
    assert not hasattr(clone(fitted), "coefs_")


def test_what_is_stored_is_numpy(fitted):
    arrays = [*fitted.coefs_, *fitted.intercepts_, *fitted.live_, fitted.feature_importances_]
    assert all(type(array) is np.ndarray for array in arrays)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_in_a_pipeline(flowers):
    pipeline = make_pipeline(StandardScaler(), model())
    search = GridSearchCV(pipeline, {"deepclassifier__alpha": [0.01, 0.3]}, cv=PARTS).fit(*flowers)
    assert search.best_params_ == {"deepclassifier__alpha": 0.01}
    assert search.best_score_ > 0.9


def test_cross_validation_of_labels(flowers):
    X, y = flowers
    assert cross_val_score(model(), X, y.map({0: "a", 1: "b", 2: "c"}), cv=PARTS).mean() > 0.9


def test_select_from_model_keeps_the_live_inputs(flowers):
    X, y = flowers
    X = X.assign(noise=np.random.default_rng(0).normal(size=len(X)))
    select = (
        SelectFromModel(model(hidden_layer_sizes=(), alpha=0.05), threshold=1e-12)
        .set_output(transform="pandas")
        .fit(X, y)
    )
    live = select.estimator_.selected_features_
    assert list(select.transform(X).columns) == list(X.columns[live])
    assert not live[-1] and live.any()


def test_set_output_through_a_pipeline(flowers):
    pipeline = make_pipeline(StandardScaler(), model()).set_output(transform="pandas").fit(*flowers)
    assert list(pipeline[-1].feature_names_in_) == list(flowers[0].columns)


def test_sample_weight_is_routed(flowers):
    X, y = flowers
    weight = np.where(y == 2, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = (
            model(hidden_layer_sizes=())
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True)
        )
        search = GridSearchCV(inner, {"alpha": [0.01]}, cv=2)
        search.fit(X, y, sample_weight=weight)
    assert set(search.best_estimator_.predict(X)) == {0, 1}


def test_callbacks_are_told(flowers):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    told = []

    class Listener:
        def setup(self, estimator, context):
            told.append("setup")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            told.append(context.task_name)
            if fitted_estimator is not None:
                told.append(fitted_estimator.score(*flowers) > 0.9)

        def teardown(self, estimator, context):
            told.append("teardown")

    assert isinstance(Listener(), callback.FitCallback)
    model().set_callbacks(Listener()).fit(*flowers)
    assert told[0] == "setup" and told[-3:] == ["fit", True, "teardown"]
    assert "split" in told


def test_scoring_monitor_sees_the_result(flowers):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    monitor = callback.ScoringMonitor(scoring="accuracy")
    fitted = model().set_callbacks(monitor).fit(*flowers)
    assert monitor.get_logs().data[-1]["accuracy"] == fitted.score(*flowers)


def test_a_data_frame_gives_names(fitted, flowers):
    assert list(fitted.feature_names_in_) == list(flowers[0].columns)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(flowers[0].rename(columns=str.upper))
    assert isinstance(fitted.history_, pd.DataFrame)
