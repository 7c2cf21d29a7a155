"""The split phase by its invariants: every step descends, padding and lanes change nothing."""

import jax
import numpy as np
import pytest
from hypothesis import given

from deepprox import links, losses, penalties
from deepprox.activities import ActivityGroup, ActivityL1
from deepprox.problem import Network
from deepprox.solve import allowed
from deepprox.splitting import admm, state
from deepprox.splitting.continuation import automatic_rho, grow
from deepprox.splitting.residuals import satisfied
from deepprox.splitting.w_step import gram, w_step
from deepprox.splitting.z_step import z_step
from deepprox.struct import replace
from numerics import seeds
from rows import GROUP_LINKS, LINKS, PENALTIES
from stages.problems import problem

PACE = admm.Pace(1.0, 1.02, 10.0)


def anywhere(posed, W, rng, per_observation=True):
    """A state far from feasible, as if in the middle of a run."""
    Z = posed.network.forward(W, posed.X)
    Z = tuple(np.asarray(z) + rng.normal(size=z.shape) for z in Z)
    shape = (len(posed.X), 1) if per_observation else ()
    rho = tuple(10 ** rng.uniform(-2, 1, shape) for _ in Z)
    U = tuple(rng.normal(size=z.shape) / 3 for z in Z)
    return state.start(W, Z, rho)._replace(U=U)


one_of_each = {type(row.penalty): row.penalty for row in PENALTIES if row.penalty.any_shape}.values()
CASES = [
    (links.Tanh(), penalties.L1(0.02), (6, 5)),
    (links.ReLU(), penalties.MCP(0.02), (6, 5)),
    *((row.link, penalties.L1(0.02), (6,)) for row in [*LINKS, *GROUP_LINKS]),
    *((links.Tanh(), penalty, ()) for penalty in one_of_each),
]


@pytest.mark.parametrize(("link", "penalty", "hidden"), CASES, ids=str)
def test_no_step_raises_the_lagrangian(link, penalty, hidden):
    descends_from_anywhere(*problem(link, penalty, hidden=hidden))


@pytest.mark.parametrize("on", ["reads", "z"])
@pytest.mark.parametrize("kind", [ActivityL1, ActivityGroup])
def test_no_step_raises_the_lagrangian_with_an_activity(kind, on):
    posed, W = problem(hidden=(6, 6))
    first, second, last = posed.network.blocks
    blocks = replace(first, activity=kind(0.1, on)), replace(second, activity=kind(0.02, on)), last
    descends_from_anywhere(replace(posed, network=Network(blocks)), W)


def descends_from_anywhere(posed, W):
    W = tuple(allowed(block, w) for block, w in zip(posed.network.blocks, W))

    @jax.jit
    def steps(at):
        after_z = at._replace(Z=z_step(posed, at, 3, 4))
        F = state.features(posed, after_z.Z)
        new = []
        for block, w, f, z, u, r in zip(posed.network.blocks, at.W, F, after_z.Z, at.U, at.rho):
            S, C = gram(posed, f, z + u, r)
            new.append(w_step(block, w, S, C, np.zeros(()), 15)[0])
        after_w = after_z._replace(W=tuple(new))
        return [state.lagrangian(posed, s) for s in (at, after_z, after_w)]

    @given(seeds)
    def descends(rng):
        before, after_z, after_w = (float(v) for v in steps(anywhere(posed, W, rng)))
        noise = 1e-12 * (1 + abs(before))
        assert after_z <= before + noise
        assert after_w <= after_z + noise

    descends()


def test_growing_rho_keeps_the_duals():
    rng = np.random.default_rng(0)
    rho = (np.asarray(0.1), rng.uniform(0.1, 9.9, (7, 1)))
    U = tuple(rng.normal(size=(7, 2)) for _ in rho)
    grown, rescaled = grow(rho, U, 1.5, 10.0)
    for r, u, r_next, u_next in zip(rho, U, grown, rescaled):
        np.testing.assert_allclose(r * u, r_next * u_next, rtol=1e-14)
        assert (r_next <= 10).all() and (r_next >= r).all()


def test_rho_rises_with_the_penalty_and_towards_the_output():
    weak, strong = (automatic_rho([np.full((3, 4), a)] * 3) for a in (0.01, 0.1))
    assert all(b > a for a, b in zip(weak, strong))
    assert 0 < weak[0] < weak[1] < weak[2]


def one_sweep(posed, at, sweeps=3):
    return admm.chunk(posed, at, PACE, admm.Inner(), sweeps, False)


def test_an_observation_of_weight_zero_changes_nothing():
    posed, W = problem()
    rng = np.random.default_rng(1)
    at = anywhere(posed, W, rng, per_observation=False)
    pad = lambda a: np.concatenate([a, 7 * np.ones_like(a[:3])])  # noqa: E731
    padded = replace(posed, X=pad(posed.X), y=pad(posed.y), weight=np.r_[posed.weight, np.zeros(3)])
    wide = at._replace(Z=tuple(map(pad, at.Z)), U=tuple(map(pad, at.U)))
    (a, info_a), (b, info_b) = one_sweep(posed, at), one_sweep(padded, wide)
    for x, y in zip(a.W, b.W):
        np.testing.assert_allclose(x, y, atol=1e-12)
    np.testing.assert_allclose(info_a.primal, info_b.primal, rtol=1e-10)


def test_lanes_are_the_single_runs():
    posed, W = problem()
    rng = np.random.default_rng(2)
    runs = [anywhere(posed, W, rng, per_observation=False) for _ in range(3)]
    together = jax.tree.map(lambda *a: np.stack(a), *runs)
    lanes, _ = admm.chunk(posed, together, PACE, admm.Inner(), 3, True)
    for k, run in enumerate(runs):
        alone, _ = one_sweep(posed, run)
        for x, y in zip(lanes.W, alone.W):
            np.testing.assert_allclose(x[k], y, atol=1e-10)


@pytest.mark.parametrize("relaxation", [1.0, 1.6])
def test_one_block_settles_at_the_lasso(relaxation):
    from sklearn.linear_model import Lasso

    posed, W = problem(penalty=penalties.L1(0.05), hidden=(), loss=losses.Squared(), k=1)
    at = state.start(W, posed.network.forward(W, posed.X), (np.asarray(1.0),))
    at, info = admm.chunk(posed, at, admm.Pace(relaxation, 1.0, 1.0), admm.Inner(w=100), 300, False)
    assert satisfied(info._make(np.asarray(c)[-1] for c in info), 1e-6)
    theirs = Lasso(0.05, tol=1e-14).fit(posed.X, posed.y[:, 0])
    np.testing.assert_allclose(at.W[0][0, 1:], theirs.coef_, atol=1e-6)
    assert ((np.asarray(at.W[0])[0, 1:] == 0) == (theirs.coef_ == 0)).all()


def test_float32_stays_float32_and_descends():
    posed, W = problem(dtype=np.float32)
    at = state.start(W, posed.network.forward(W, posed.X), tuple(np.float32(0.1) for _ in W))
    pace = admm.Pace(*(np.float32(number) for number in PACE))
    at, info = admm.chunk(posed, at, pace, admm.Inner(), 50, False)
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(at))
    assert info.objective[-1] < info.objective[0]
