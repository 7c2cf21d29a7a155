"""No phase leaves a finite point for an infinite one, and the canonical form raises no objective.

A bias that may not move, or that costs something, is where this could go wrong: a constant unit wants to move
into it.
"""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deepprox import links, losses, penalties
from deepprox.activities import ActivityGroup, ActivityL1
from deepprox.blocks import Dense
from deepprox.joining.kinks import no_slopes
from deepprox.joining.live import absorbed, canonical
from deepprox.joining.point import look
from deepprox.problem import Network, Problem
from deepprox.solve import Options, all_allowed, initial, solve
from deepprox.struct import struct
from rows import PENALTIES

SIZES = (4, 5, 4, 2)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 4))
Y = np.stack([np.sin(2 * X[:, 0]) + 2, X[:, 1] * X[:, 0] - 1], axis=1)
SIGMOID = links.Sigmoid()


def of_shape(penalty, shape):
    """The penalty for weights of this shape: given zeros and groups belong to one."""
    if isinstance(penalty, penalties.Mask):
        mask = np.random.default_rng(3).random(shape) < 0.7
        mask[:, 0] = False  # the first column: where biases are penalised, biases that may not move
        return penalties.Mask(mask)
    if isinstance(getattr(penalty, "by", ""), tuple):
        return replace(penalty, by=tuple(int(j) % 3 for j in range(shape[1])))
    return penalty


def posed(penalty, charged, link=SIGMOID, hidden=SIZES[1:-1], activity=None):
    sizes = (SIZES[0], *hidden, SIZES[-1])
    blocks = []
    for n_in, n_out in pairwise(sizes):
        word = of_shape(penalty, (n_out, n_in + charged))
        last = len(blocks) == len(hidden)
        blocks.append(Dense(n_out, link, word, charged, None if last else activity))
    weight = np.full(len(X), 1 / len(X))
    return Problem(Network(tuple(blocks)), losses.Squared(), X, Y, weight)


def cut(problem, rng):
    """Weights in which units are constant, dead or neither, on both sides of what a move costs."""
    W = [rng.normal(size=shape) * 10 ** rng.uniform(-1, 1) for shape in problem.network.shapes(SIZES[0])]
    for w in W[:-1]:
        w[rng.random(len(w)) < 0.5, 1:] = 0
    for w in W[1:]:
        w[:, 1:][:, rng.random(w.shape[1] - 1) < 0.2] = 0
    return tuple(map(np.asarray, all_allowed(problem.network, tuple(W))))


rows = pytest.mark.parametrize("row", PENALTIES, ids=str)
charged = pytest.mark.parametrize("charged", [False, True], ids=["free", "charged"])


@rows
@charged
def test_the_canonical_form_costs_no_more(row, charged):
    problem, rng = posed(row.penalty, charged), np.random.default_rng(1)
    penalty = jax.jit(problem.network.penalty)
    for _ in range(20):
        W = cut(problem, rng)
        form, live = canonical(problem.network, W)
        before, after = float(penalty(W)), float(penalty(form))
        assert np.isfinite(before) and after <= before * (1 + 1e-14)
        eta, same = (problem.network.forward(V, X)[-1] for V in (W, form))
        np.testing.assert_allclose(same, eta, rtol=1e-12, atol=1e-12 * np.abs(eta).max())
        for a, b in zip(form, canonical(problem.network, form)[0]):
            np.testing.assert_array_equal(a, b)
        for w, units in zip(form[1:], live.reads[1:]):
            np.testing.assert_array_equal(units, (w[:, 1:] != 0).any(0))


@struct
class NearOne(penalties.Penalty):
    """``sum |w_j - 1|``: a zero costs more than a one."""

    def value(self, w):
        return jnp.abs(w - 1).sum()

    def prox(self, v, step):
        return 1 + jnp.sign(v - 1) * jnp.maximum(jnp.abs(v - 1) - step, 0)


@charged
def test_no_unit_leaves_whose_absence_costs_more(charged):
    problem, rng = posed(NearOne(), charged), np.random.default_rng(1)
    kept = 0
    for _ in range(20):
        W = cut(problem, rng)
        form = canonical(problem.network, W)[0]
        assert float(problem.network.penalty(form)) <= float(problem.network.penalty(W)) * (1 + 1e-14)
        kept += any((a != b).any() for a, b in zip(form, absorbed(problem.network, W)))
    assert kept > 0


@pytest.mark.parametrize("activity", [ActivityL1(0.1), ActivityGroup(0.1), ActivityL1(0.1, "z")], ids=str)
@pytest.mark.parametrize("link", [links.Sigmoid(), links.Tanh()], ids=str)
def test_no_unit_leaves_that_is_charged_for_its_absence(link, activity):
    problem, rng = posed(penalties.L1(0.01), False, link, activity=activity), np.random.default_rng(1)
    for _ in range(10):
        W = cut(problem, rng)
        form = canonical(problem.network, W)[0]
        before, after = (float(problem.objective(V)) for V in (W, form))
        assert after <= before * (1 + 1e-12)


def followed(problem, start, **options):
    """A solution from a start that is allowed; nothing on the way was infinite, and no join step rose."""
    found = solve(problem, [start], Options(**options))
    assert found.status != "diverged"
    assert all(np.isfinite(row["objective"]) for row in found.history)
    again = look(problem, found.W, no_slopes(problem), 1.0).objective
    np.testing.assert_allclose(found.objective, float(again), rtol=1e-12)
    joined = [row["objective"] for row in found.history if row["phase"] in ("join", "prune", "newton")]
    if problem.network.smooth:  # else the history has envelopes
        assert found.objective <= min(joined, default=np.inf) * (1 + 1e-9)
    return found


def test_no_phase_leaves_given_zeros():
    problem = posed(penalties.Mask(()), True, hidden=(5,))
    followed(problem, initial(problem, 0)[0], max_iter=60, sweeps=10)


ONE_OF_EACH = {type(row.penalty): row for row in PENALTIES}.values()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "charged"),
    [*((row, True) for row in PENALTIES), *((row, False) for row in ONE_OF_EACH)],
    ids=lambda value: str(value) if not isinstance(value, bool) else "charged" if value else "free",
)
def test_no_phase_leaves_a_finite_point(row, charged):
    """Sweeps or batches, the race of two routes, Newton steps, what leaves out units, the canonical form."""
    problem = posed(row.penalty, charged, hidden=(5,))
    for first in ({"sweeps": 10}, {"batch": 8, "steps": 50}):
        followed(problem, initial(problem, 0)[0], max_iter=90, **first)


@pytest.mark.parametrize(
    "penalty", [penalties.Nuclear(0.02), penalties.Box(-2.0, 2.0)], ids=["nuclear", "box"]
)
def test_steps_are_no_longer_than_the_curvature_allows(penalty):
    """The first step length is 1, and the products of two blocks bend more than that."""
    problem = posed(penalty, False, links.Identity(), hidden=(5,))
    for scale in 1, 10:
        problem = replace(problem, X=scale * X, y=scale * Y)
        start = initial(problem, 0)[0]
        found = followed(problem, start, max_iter=2000)
        assert found.status == "converged"
        # one block of full rank does not do better without a penalty: what is lost is what is charged
        F = np.column_stack([np.ones(len(X)), problem.X])
        rest = problem.y - F @ np.linalg.lstsq(F, problem.y, rcond=None)[0]
        least = (rest**2).sum() / 2 / len(X)
        assert least <= found.loss <= found.objective <= 1.15 * least


@pytest.mark.parametrize("n_starts", [1, 3])
def test_a_bound_is_kept_in_every_precision(n_starts):
    """The nearest number to 0.1 in single precision is above it."""
    problem = posed(penalties.Box(-0.1, 0.1), True, hidden=(5,))
    found = solve(problem, initial(problem, 0, n_starts), Options(max_iter=300))
    assert np.isfinite(found.objective) and max(np.abs(w).max() for w in found.W) == 0.1


@struct
class Unbiased(penalties.L1):
    """``alpha * sum |w_j|``, and no biases."""

    def value(self, w):
        return jnp.where((w[:, 0] == 0).all(), self.alpha * jnp.abs(w).sum(), jnp.inf)

    def prox(self, v, step):
        return penalties.soft_threshold(v, step * self.alpha).at[:, 0].set(0.0)


@pytest.mark.parametrize("by", ["block", "penalty", "mask"])
def test_an_output_without_a_bias_is_certified(by):
    """The ``b_1 = 0`` of the paper, said by the block, by its penalty, and by given zeros."""
    problem = posed(penalties.L1(0.02), True, hidden=(5,))
    hidden, last = problem.network.blocks
    mask = penalties.Mask(np.broadcast_to(np.arange(6) > 0, (2, 6)))
    said = {"block": {"bias": False}, "penalty": {"penalty": Unbiased(0.02)}, "mask": {"penalty": mask}}
    problem = replace(problem, network=Network((hidden, replace(last, **said[by]))))
    options = Options(max_iter=5000 if by != "mask" else 300, tol=1e-7)
    found = solve(problem, initial(problem, 0), options)
    np.testing.assert_array_equal(found.W[-1][:, 0], 0)
    assert np.isfinite(found.objective)
    # weights that cost nothing after weights that do have no end
    assert by == "mask" or (found.status == "converged" and found.certificate <= 1e-7)
