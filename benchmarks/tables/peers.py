"""What the estimators are compared with: scikit-learn's, at their defaults and tuned as users would."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

Make = Callable[[bool], BaseEstimator]  # whether the response is a class -> an estimator


def scaled(classes: bool, model: BaseEstimator) -> BaseEstimator:
    """Inputs, and a response of numbers, on a common scale."""
    model = make_pipeline(StandardScaler(), model)
    return model if classes else TransformedTargetRegressor(model, transformer=StandardScaler())


def linear(classes: bool) -> BaseEstimator:
    """Ridge logistic regression, or the lasso, each with its strength by five folds."""
    if not classes:
        return scaled(False, LassoCV(random_state=0))
    return scaled(True, LogisticRegressionCV(max_iter=500))


def mlp(classes: bool) -> BaseEstimator:
    return scaled(classes, (MLPClassifier if classes else MLPRegressor)(random_state=0))


def svm(classes: bool) -> BaseEstimator:
    return scaled(classes, SVC() if classes else SVR())


def boosting(classes: bool) -> BaseEstimator:
    return (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(random_state=0)


def forest(classes: bool) -> BaseEstimator:
    return (RandomForestClassifier if classes else RandomForestRegressor)(random_state=0, n_jobs=1)


DEFAULTS: dict[str, Make] = {"linear": linear, "mlp": mlp, "svm": svm, "boosting": boosting, "forest": forest}


def inside(classes: bool, name: str) -> str:
    """The name of a parameter of the model inside of :func:`scaled`."""
    return name if classes else f"regressor__{name}"


def search(model: BaseEstimator, grid: dict[str, Any]) -> BaseEstimator:
    """The best of a grid by five folds."""
    return GridSearchCV(model, grid, cv=5)


def tuned_linear(classes: bool) -> BaseEstimator:
    """The elastic net between lasso and ridge."""
    from sklearn.linear_model import ElasticNetCV

    if not classes:
        return scaled(False, ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9, 1.0], random_state=0))
    ways = {"penalty": "elasticnet", "solver": "saga", "max_iter": 500, "l1_ratios": (0.0, 0.5, 1.0)}
    return scaled(True, LogisticRegressionCV(Cs=5, random_state=0, **ways))


def tuned_mlp(classes: bool) -> BaseEstimator:
    step = "mlpclassifier" if classes else "mlpregressor"
    grid = {inside(classes, f"{step}__alpha"): [1e-3, 1e-1, 1.0]}
    return search(mlp(classes), grid | {inside(classes, f"{step}__hidden_layer_sizes"): [(50,), (100, 50)]})


def tuned_svm(classes: bool) -> BaseEstimator:
    step = "svc" if classes else "svr"
    grid: dict[str, Any] = {inside(classes, f"{step}__C"): [0.1, 1.0, 10.0, 100.0]}
    return search(svm(classes), grid | {inside(classes, f"{step}__gamma"): ["scale", 0.01, 0.1]})


def tuned_boosting(classes: bool) -> BaseEstimator:
    return search(boosting(classes), {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [5, 15, 31]})


def tuned_forest(classes: bool) -> BaseEstimator:
    return search(forest(classes), {"max_features": ["sqrt", 0.33, 0.67], "min_samples_leaf": [1, 3]})


TUNED: dict[str, Make] = {
    "linear": tuned_linear,
    "mlp": tuned_mlp,
    "svm": tuned_svm,
    "boosting": tuned_boosting,
    "forest": tuned_forest,
}


def scored(model: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    """Accuracy or R squared on the rows to test, of a fit to those to train."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(model.fit(X[train], y[train]).score(X[test], y[test]))
