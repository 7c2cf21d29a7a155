"""A user's file: ``test_types.py`` asks mypy what it sees here. Nothing runs it."""

from typing import assert_type

import numpy as np

from deepprox import (
    DeepClassifier,
    DeepClassifierCV,
    DeepRegressor,
    DeepRegressorIC,
    fit_stream,
    path,
    penalties,
    stability_selection,
)
from deepprox.solution import Solution

X = np.zeros((10, 3))
y = np.arange(10)

classifier = DeepClassifier((10,), link="sigmoid", penalty=("l1", penalties.MCP(0.1)), random_state=0)
assert_type(classifier.fit(X, y), DeepClassifier)
assert_type(classifier.fit(X, y).predict(X), np.ndarray)
assert_type(classifier.predict_proba(X), np.ndarray)
assert_type(classifier.decision_function(X), np.ndarray)
assert_type(classifier.partial_fit(X, y, classes=[0, 1]), DeepClassifier)
assert_type(classifier.set_params(alpha=0.1), DeepClassifier)
assert_type(classifier.score(X, y), float)
assert_type(classifier.coefs_, list[np.ndarray])
assert_type(classifier.selected_features_, np.ndarray)
assert_type(classifier.solution_, Solution)
assert_type(classifier.solution_.certificate, float)

regressor = DeepRegressor(5, loss="huber", splits=(1,), dtype="float32", checkpoint="folder")
assert_type(regressor.fit(X, y).predict(X), np.ndarray)
assert_type(regressor.predict_interval(X), tuple[np.ndarray, np.ndarray])
assert_type(regressor.criteria().bic, float)
assert_type(fit_stream(regressor, "rows.parquet", "y"), DeepRegressor)

found = path(regressor, X, y, spacing="inputs")
assert_type(found.select("bic").estimator, DeepRegressor)
assert_type(found[0], DeepRegressor)
assert_type([model.objective_ for model in found], list[float])
assert_type(found.inputs, np.ndarray)
assert_type(stability_selection(classifier, X, y).selected, np.ndarray)

assert_type(DeepClassifierCV(rule="min").fit(X, y), DeepClassifierCV)
assert_type(DeepRegressorIC(criterion="aic").fit(X, y).alpha_, float)

DeepClassifier(link="rleu")  # type: ignore[arg-type]
DeepClassifier(loss="poisson")  # type: ignore[arg-type]
DeepRegressor(penalty="lasoo")  # type: ignore[arg-type]
DeepRegressorIC(criterion="baic")  # type: ignore[arg-type]
found.select("bicc")  # type: ignore[arg-type]
