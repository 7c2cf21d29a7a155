"""What a fitted estimator says of new observations."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deepprox.estimators._forward import forward_of
from deepprox.estimators._given import read_new
from deepprox.estimators._response import response_of
from deepprox.memory import need, of_data


def outputs(model: Any, X: Any, as_mean: bool) -> np.ndarray:
    """``eta`` of new inputs, or its mean."""
    check_is_fitted(model)
    fitted = model.fitted_
    dtype = fitted.W[0].dtype
    X = read_new(model, X, dtype)
    need(of_data(X.shape[0], fitted.network.blocks[-1].size, dtype.itemsize))
    return forward_of(fitted).outputs(X, as_mean)


def losses_of(model: Any, X: Any, y: Any) -> np.ndarray:
    """The loss of every new observation."""
    eta = outputs(model, X, as_mean=False)
    return forward_of(model.fitted_).losses(eta, response_of(model).code(y))
