"""Our estimators as somebody takes them who reads nothing, and what a fit of any estimator is made of."""

from typing import Any

import numpy as np

from deepprox import (
    DeepClassifier,
    DeepClassifierCV,
    DeepClassifierIC,
    DeepRegressor,
    DeepRegressorCV,
    DeepRegressorIC,
)


def plain(classes: bool) -> Any:
    return (DeepClassifier if classes else DeepRegressor)(random_state=0)


def by_folds(classes: bool) -> Any:
    return (DeepClassifierCV if classes else DeepRegressorCV)(random_state=0)


def by_criterion(classes: bool) -> Any:
    return (DeepClassifierIC if classes else DeepRegressorIC)(random_state=0)


OURS = {"deepprox": plain, "deepprox, folds": by_folds, "deepprox, criterion": by_criterion}


def facts(model: Any) -> dict[str, Any]:
    """Non-zero weights, inputs that are left, and the certificate, as far as an estimator has them."""
    if hasattr(model, "solution_"):
        return {
            "n_nonzero": int(model.n_nonzero_),
            "inputs": np.flatnonzero(model.selected_features_).tolist(),
            "certificate": float(model.solution_.certificate),
            "status": model.solution_.status,
        }
    model = getattr(model, "best_estimator_", model)
    model = getattr(model, "regressor_", model)
    last = model[-1] if hasattr(model, "named_steps") else model
    if hasattr(last, "coefs_"):
        return {"n_nonzero": int(sum(np.count_nonzero(w) for w in (*last.coefs_, *last.intercepts_)))}
    if isinstance(coef := getattr(last, "coef_", None), np.ndarray):
        coef = np.atleast_2d(coef)
        inputs = np.flatnonzero(np.abs(coef).sum(0)).tolist()
        return {"n_nonzero": int(np.count_nonzero(coef)) + len(coef), "inputs": inputs}
    return {}
