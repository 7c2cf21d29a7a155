"""Checkpoints of a path: solutions that are done are kept, and the walk goes on to the same bits."""

import numpy as np
import pytest

from deepprox import DeepRegressor, path, stability_selection
from deepprox.estimators import _checkpoint
from deepprox.estimators.session import Session

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))  # the shapes of other small networks: they compile once
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
SETTINGS = {"hidden_layer_sizes": (4,), "link": "tanh", "random_state": 0}


class Killed(BaseException):
    """What stands for a kill: nothing catches it."""


@pytest.fixture
def solved(monkeypatch):
    """How many problems were solved; after ``limit`` of them, death."""
    solve, record = Session.run, {"count": 0, "limit": None}

    def counting(self, *args, **kwargs):
        if record["count"] == record["limit"]:
            raise Killed
        record["count"] += 1
        return solve(self, *args, **kwargs)

    monkeypatch.setattr(Session, "run", counting)
    monkeypatch.setattr(_checkpoint, "SHARE", np.inf)
    return record


@pytest.mark.parametrize("way", [{}, {"spacing": "inputs"}, {"direction": "both"}, {"relax": True}])
def test_a_path_goes_on_to_the_same_bits(solved, tmp_path, way):
    whole, all_of_them = path(DeepRegressor(**SETTINGS), X, Y, 6, **way), solved["count"]
    solved.update(count=0, limit=4)
    with pytest.raises(Killed):
        path(DeepRegressor(**SETTINGS, checkpoint=tmp_path), X, Y, 6, **way)
    solved.update(count=0, limit=None)
    again = path(DeepRegressor(**SETTINGS, checkpoint=tmp_path, resume=True), X, Y, 6, **way)
    assert solved["count"] == all_of_them - 4
    np.testing.assert_array_equal(again.alphas, whole.alphas)
    for one, other in zip(again.solutions, whole.solutions, strict=True):
        assert one.objective == other.objective and one.status == other.status
        for a, b in zip(one.W, other.W, strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="it is of other data, other settings"):
        path(DeepRegressor(**SETTINGS, checkpoint=tmp_path, resume=True), X, Y, 7, **way)


def test_halves_keep_nothing(tmp_path):
    with pytest.raises(ValueError, match="keeps no checkpoint: set checkpoint=None"):
        stability_selection(DeepRegressor(**SETTINGS, checkpoint=tmp_path), X, Y)
