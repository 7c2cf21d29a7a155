"""Fitted models with something in them changed."""

import copy
from dataclasses import replace


def changed(model, W=None, **facts):
    """A copy of a fitted model with other weights, or other fields of its record."""
    other, fitted = copy.copy(model), model.fitted_
    if W is not None:
        facts["solution"] = replace(fitted.solution, W=tuple(W))
    other.fitted_ = replace(fitted, **facts)
    return other
