"""Charges for what units do, from the front."""

import numpy as np
import pytest

from deepprox import DeepRegressor
from deepprox.activities import ActivityGroup, ActivityL1


def three_units(n, seed):
    """A response made by three rectified units, and what they make without noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    units = np.maximum([X[:, 0] + X[:, 1], X[:, 2] - X[:, 3], X[:, 4]], 0)
    signal = units[0] + units[1] - units[2]
    return X, signal + 0.2 * rng.normal(size=n), signal


def test_the_group_activity_selects_the_width():
    X, y, _ = three_units(600, 0)
    model = DeepRegressor((20,), alpha=3e-4, activity=ActivityGroup(0.003), random_state=0).fit(X, y)
    assert model.solution_.status == "converged"
    assert model.live_[1].sum() == 3
    X_new, _, signal = three_units(500, 1)
    assert model.score(X_new, signal) > 0.99


@pytest.mark.parametrize(("link", "on"), [("tanh", "reads"), ("relu", "z")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_silent_units_are_certified_and_live_ones_charged(link, on):
    # at a silent unit |z| has its kink for every observation at once: a wrong slope there leaves alpha,
    # a few observations of live units at kinks leave far less
    X, y, _ = three_units(200, 0)
    activity = ActivityL1(0.01, on)
    model = DeepRegressor((6,), link=link, alpha=1e-3, activity=activity, random_state=1).fit(X, y)
    assert model.solution_.certificate < 0.1 * 0.01
    assert not model.live_[1].all()
    # the charge is in the objective and not in the loss
    z = X @ model.coefs_[0] + model.intercepts_[0]
    charge = 0.01 * np.abs(np.tanh(z) if on == "reads" else z).mean(0).sum()
    weights = 1e-3 * sum(np.abs(w).sum() for w in model.coefs_standardized_)
    assert np.isclose(model.loss_, ((y - model.predict(X)) ** 2).mean() / y.var() / 2)
    assert np.isclose(model.objective_, model.loss_ + charge + weights)


@pytest.mark.parametrize(
    ("activity", "error", "sentence"),
    [
        ("l1", TypeError, "activity must be None or an instance of deepprox.activities.Activity"),
        (ActivityL1(0.1, on="w"), ValueError, "on must be 'reads' or 'z'"),
        (ActivityL1(-0.1), ValueError, "strength of an activity must be at least 0"),
        ((None, None), ValueError, "activity has 2 entries, but there is 1 hidden layer"),
    ],
)
def test_bad_activities_are_told(activity, error, sentence):
    X, y, _ = three_units(20, 0)
    with pytest.raises(error, match=sentence):
        DeepRegressor((3,), activity=activity, alpha=1e-2).fit(X, y)
