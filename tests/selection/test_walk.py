"""Where a strength begins: the last solutions, continued."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import deepprox
from deepprox import DeepRegressor, losses
from deepprox.joining import join
from deepprox.selection import walk
from selection.test_paths import tables


@dataclass(frozen=True)
class Solved:
    W: tuple
    live: Any


def found(*W):
    return Solved(W, None)


def stages(alphas, curve):
    return [walk.Stage(alpha, found(curve(np.log(alpha))), None) for alpha in alphas]


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_polynomials_in_the_logarithm_are_continued_exactly(m):
    rng = np.random.default_rng(m)
    terms = rng.normal(size=(m, 2, 3))
    curve = lambda x: 50 + sum(term * x**k for k, term in enumerate(terms))  # noqa: E731
    before = stages([0.5, 0.3, 0.2, 0.11][:m], curve)  # the nearest first, in any steps
    (W,) = walk.continued(0.7, before, before[0].found.W)
    np.testing.assert_allclose(W, curve(np.log(0.7)), rtol=1e-10)


def test_a_weight_stays_zero_or_becomes_it_and_a_bias_moves_freely():
    near, far = np.array([[1.0, 1.0, 0.0, 3.0]]), np.array([[3.0, 3.0, -1.0, 4.0]])
    before = [walk.Stage(2.0, found(near), None), walk.Stage(1.0, found(far), None)]
    (W,) = walk.continued(4.0, before, (near,))
    np.testing.assert_allclose(W, [[-1.0, 0.0, 0.0, 2.0]])


@pytest.mark.parametrize("at_once", [0, np.inf])
def test_the_lowest_of_the_polynomials_begins_or_one_that_is_near_enough(monkeypatch, at_once):
    monkeypatch.setattr(walk, "AT_ONCE", at_once)
    X, y = tables()
    unscaled, alphas = losses.Squared(centre=0.0, spread=1.0), np.geomspace(0.02, 0.03, 10)
    model = DeepRegressor((4,), link="tanh", loss=unscaled, random_state=0)
    path = deepprox.path(model, X[:90], y[:90], alphas)
    before = [walk.Stage(a, one, one) for a, one in zip(path.alphas, path.solutions)]
    zeros = [np.concatenate([w.ravel() == 0 for w in stage.found.W]) for stage in before[-4:]]
    assert all((one == zeros[0]).all() for one in zeros)
    way = walk.Walk(model, X[:90], y[:90])
    way.widths = walk.live_widths(path.solutions[0].live)
    W, level = way.ahead(0.0315, before)
    near, last = before[-1].found.W, before[:-5:-1]
    trials = [walk.continued(0.0315, last[:m], near) for m in range(1, len(last) + 1)]
    with walk.precision(way.dtype):
        problem = way.posed(0.0315).problem
        none = walk.no_slopes(problem)
        levels = [float(walk.look(problem, trial, none, 1.0).objective) for trial in trials]
    assert levels[1] < levels[0]  # a line through two, the last solution
    chosen = 3 if at_once else int(np.argmin(levels))
    assert level == pytest.approx(levels[chosen], rel=1e-12)
    for one, other in zip(W, trials[chosen], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_continued_path_takes_fewer_steps_to_the_same_solutions(monkeypatch):
    X, y = tables()
    unscaled, alphas = losses.Squared(centre=0.0, spread=1.0), np.geomspace(0.02, 0.03, 10)
    model = DeepRegressor((4,), link="tanh", loss=unscaled, random_state=0)
    continued = deepprox.path(model, X[:90], y[:90], alphas)
    monkeypatch.setattr(walk, "continued", lambda alpha, stages, near: near)
    plain = deepprox.path(model, X[:90], y[:90], alphas)
    steps = [sum(one.n_iter for one in found.solutions[4:]) for found in (continued, plain)]
    assert steps[0] < 0.7 * steps[1], steps
    for one, other in zip(continued.solutions, plain.solutions, strict=True):
        assert one.status == other.status == "converged"
        assert one.objective == pytest.approx(other.objective, rel=1e-9)


def test_along_a_path_no_only_unit_is_left_out(monkeypatch):
    X, y = tables()
    units, prune = [], join.prune
    monkeypatch.setattr(
        join, "prune", lambda problem, W, *rest: units.append(W[1]) or prune(problem, W, *rest)
    )
    path = deepprox.path(DeepRegressor((6,), random_state=0), X, y, 12)
    assert any(found.live.reads[1].sum() == 1 for found in path.solutions)
    along = [int(w[:, 1:].any(0).sum()) for w in units]
    assert along and min(along) > 1
