"""The split phase by its invariants: every step descends, padding and lanes change nothing."""

import jax
import numpy as np
import pytest
from hypothesis import given

from deepprox import links, losses, penalties
from deepprox.activities import ActivityGroup, ActivityL1
from deepprox.problem import Network
from deepprox.solve import Options, allowed, initial, solve
from deepprox.splitting import admm, state
from deepprox.splitting.continuation import automatic_rho, grow
from deepprox.splitting.residuals import satisfied
from deepprox.splitting.segments import Segment, at_splits, group, grouped
from deepprox.splitting.w_step import w_steps
from deepprox.splitting.z_step import z_step
from deepprox.struct import replace
from numerics import seeds
from rows import GROUP_LINKS, LINKS, PENALTIES
from stages.problems import problem

PACE = admm.Pace(1.0, 1.02, 10.0)


forward = jax.jit(lambda network, W, X: network.forward(W, X))


def anywhere(posed, W, rng, per_observation=True):
    """A state far from feasible, as if in the middle of a run."""
    Z = forward(posed.network, W, posed.X)
    Z = tuple(np.asarray(z) + rng.normal(size=z.shape) for z in Z)
    shape = (len(posed.X), 1) if per_observation else ()
    rho = tuple(10 ** rng.uniform(-2, 1, shape) for _ in Z)
    U = tuple(rng.normal(size=z.shape) / 3 for z in Z)
    return replace(state.start(W, Z, rho), U=U)


one_of_each = {type(row.penalty): row.penalty for row in PENALTIES if row.penalty.any_shape}.values()
# One of every kind; the laws hold the pull of every link and the prox of every penalty.
QUICK_LINKS = [links.HardTanh(), links.GELU(), links.Softmax(3), links.MaxAbs(3)]
QUICK_PENALTIES = penalties.L1, penalties.GroupL2, penalties.MCP, penalties.Nuclear, penalties.NonNegative


def case(link, penalty, hidden, quick):
    return pytest.param(link, penalty, hidden, marks=[] if quick else pytest.mark.slow)


CASES = [
    case(links.Tanh(), penalties.L1(0.02), (6, 5), False),  # as with an activity below
    (links.ReLU(), penalties.MCP(0.02), (6, 5)),
    *(case(row.link, penalties.L1(0.02), (6,), row.link in QUICK_LINKS) for row in [*LINKS, *GROUP_LINKS]),
    *(case(links.Tanh(), one, (), isinstance(one, QUICK_PENALTIES)) for one in one_of_each),
]


@pytest.mark.parametrize(("link", "penalty", "hidden"), CASES, ids=str)
def test_no_step_raises_the_lagrangian(link, penalty, hidden):
    descends_from_anywhere(*problem(link, penalty, hidden=hidden))


def with_activities(posed, *activities):
    """The problem with charges on its hidden blocks."""
    *hidden, last = posed.network.blocks
    charged = [replace(block, activity=one) for block, one in zip(hidden, activities, strict=True)]
    return replace(posed, network=Network((*charged, last)))


ACTIVITIES = [
    (ActivityL1, "z"),
    (ActivityGroup, "reads"),
    pytest.param(ActivityL1, "reads", marks=pytest.mark.slow),
    pytest.param(ActivityGroup, "z", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "on"), ACTIVITIES)
def test_no_step_raises_the_lagrangian_with_an_activity(kind, on):
    posed, W = problem(hidden=(6, 6))
    descends_from_anywhere(with_activities(posed, kind(0.1, on), kind(0.02, on)), W)


@pytest.mark.parametrize("link", [links.Softmax(3), links.MaxAbs(3)], ids=str)
def test_no_step_raises_the_lagrangian_with_an_activity_of_units_that_are_read_together(link):
    posed, W = problem(link, hidden=(6,))
    descends_from_anywhere(with_activities(posed, ActivityL1(0.3, "z")), W)


SEGMENTS = [
    (links.ReLU(), penalties.L1(0.02), (6, 6), (1,)),
    (links.Tanh(), penalties.MCP(0.02), (6, 6), ()),
    (links.Softmax(3), penalties.L1(0.02), (6, 6, 6), (2,)),
]


@pytest.mark.parametrize(("link", "penalty", "hidden", "splits"), SEGMENTS, ids=str)
def test_no_step_of_a_segment_raises_the_lagrangian(link, penalty, hidden, splits):
    descends_from_anywhere(*problem(link, penalty, hidden=hidden), splits)


def test_no_step_of_a_segment_raises_the_lagrangian_with_activities_inside():
    posed, W = problem(hidden=(6, 6, 6))
    posed = with_activities(posed, ActivityL1(0.1, "z"), ActivityGroup(0.05), ActivityL1(0.02))
    descends_from_anywhere(posed, W, (2,))


def descends_from_anywhere(posed, W, splits=None):
    W = tuple(allowed(block, w) for block, w in zip(posed.network.blocks, W))
    if splits is not None:
        posed, W = grouped(posed, splits), group(W, splits)

    @jax.jit
    def steps(at):
        after_z = replace(at, Z=z_step(posed, at, 3, 4))
        F = state.features(posed, after_z.Z)
        after_w = replace(after_z, W=w_steps(posed, after_z, F, after_z.Z, 15)[0])
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
    weak, strong = (automatic_rho([np.full((3, 4), a)] * 3, (1, 2)) for a in (0.01, 0.1))
    assert all(b > a for a, b in zip(weak, strong))
    assert 0 < weak[0] < weak[1] < weak[2]


def test_rho_is_larger_where_a_segment_ends():
    pulls = [np.full((3, 4), 0.1)] * 4
    every, some = automatic_rho(pulls, (1, 2, 3)), automatic_rho(pulls, (1, 3))
    assert len(some) == 3 and (some[0], some[2]) == (every[0], every[3]) and some[1] > every[2]


def one_sweep(posed, at, sweeps=3):
    return admm.chunk(posed, at, PACE, admm.Inner(), sweeps, False)


# the second has a block beside a segment of two
SPLIT = [pytest.param((5,), (1,), marks=pytest.mark.slow), ((5, 4), (1,))]


@pytest.mark.parametrize(("hidden", "splits"), SPLIT, ids=str)
def test_an_observation_of_weight_zero_changes_nothing(hidden, splits):
    posed, W = problem(hidden=hidden)
    posed, W = grouped(posed, splits), group(W, splits)
    rng = np.random.default_rng(1)
    at = anywhere(posed, W, rng, per_observation=False)
    pad = lambda a: np.concatenate([a, 7 * np.ones_like(a[:3])])  # noqa: E731
    padded = replace(posed, X=pad(posed.X), y=pad(posed.y), weight=np.r_[posed.weight, np.zeros(3)])
    wide = replace(at, Z=tuple(map(pad, at.Z)), U=tuple(map(pad, at.U)))
    (a, info_a), (b, info_b) = one_sweep(posed, at), one_sweep(padded, wide)
    for x, y in zip(jax.tree.leaves(a.W), jax.tree.leaves(b.W), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)
    np.testing.assert_allclose(info_a.primal, info_b.primal, rtol=1e-10)


@pytest.mark.parametrize(("hidden", "splits"), SPLIT, ids=str)
def test_lanes_are_the_single_runs(hidden, splits):
    posed, W = problem(hidden=hidden)
    posed, W = grouped(posed, splits), group(W, splits)
    rng = np.random.default_rng(2)
    runs = [anywhere(posed, W, rng, per_observation=False) for _ in range(3)]
    together = jax.tree.map(lambda *a: np.stack(a), *runs)
    lanes, _ = admm.chunk(posed, together, PACE, admm.Inner(), 3, True)
    for k, run in enumerate(runs):
        alone, _ = one_sweep(posed, run)
        for x, y in zip(jax.tree.leaves(lanes.W), jax.tree.leaves(alone.W), strict=True):
            np.testing.assert_allclose(x[k], y, atol=1e-10)


def test_every_hidden_block_split_is_the_network_as_it_is():
    posed, W = problem(hidden=(5, 4))
    assert grouped(posed, (1, 2)).network == posed.network
    assert group(W, (1, 2)) == W and at_splits(W, (1, 2)) == W
    (first, segment), (w, above) = grouped(posed, (1,)).network.blocks, group(W, (1,))
    assert first == posed.network.blocks[0] and segment.network.blocks == posed.network.blocks[1:]
    assert w is W[0] and above == W[1:]


def test_a_segment_of_one_block_is_the_block():
    # the same minima, found through the observations and without the diagonal of W'W
    posed, W = problem(penalty=penalties.L1(0.02))
    at = replace(anywhere(posed, W, np.random.default_rng(3)), rho=(np.ones(()), np.ones(())))
    alone = replace(posed, network=Network(tuple(Segment(Network((b,))) for b in posed.network.blocks)))

    @jax.jit
    def steps(posed, at):
        Z = z_step(posed, at, 300, 4)
        return Z, w_steps(posed, at, state.features(posed, at.Z), at.Z, 2000)[0]

    theirs, ours = steps(posed, at), steps(alone, replace(at, W=tuple((w,) for w in W)))
    for a, b in zip(jax.tree.leaves(theirs), jax.tree.leaves(ours), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


@pytest.fixture(scope="module")
def regression():
    """A problem, and the best of three starts of its fit with all splits."""
    posed, _ = problem(penalty=penalties.L1(0.02), hidden=(5, 5), loss=losses.Squared(), n=80)
    return posed, best_of_three(posed, Options())


def best_of_three(posed, options):
    """One by one: side by side they compile programs of their own."""
    return min((solve(posed, [W], options) for W in initial(posed, 0, 3)), key=lambda found: found.objective)


@pytest.mark.parametrize("splits", [pytest.param((1,), marks=pytest.mark.slow), ()], ids=str)
def test_fewer_splits_end_as_well(regression, splits):
    posed, every = regression
    found = best_of_three(posed, Options(splits=splits))
    assert found.status == every.status == "converged" and found.certificate <= 1e-6
    assert found.objective <= 1.02 * every.objective
    assert "emptied" not in found.message


def test_a_given_rho_stays_for_several_starts(regression):
    posed, _ = regression
    rho = (np.asarray(9.0), np.asarray(9.0), np.asarray(0.5))
    found = solve(posed, initial(posed, 0, 3), Options(splits=(), rho=rho, join=False, max_iter=40))
    assert {row["rho"] for row in found.history} == {0.5} and len(found.history) == 40


@pytest.mark.parametrize("splits", [(1,), pytest.param((), marks=pytest.mark.slow)], ids=str)
def test_the_plain_admm_settles_with_fewer_splits(splits):
    posed, _ = problem(penalty=penalties.L2(0.05), hidden=(3, 3))
    options = Options(join=False, splits=splits, rho=(np.asarray(1.0),) * 3, tol=1e-5, max_iter=2000)
    found = solve(posed, initial(posed, 0), options)
    assert found.status == "settled"
    assert found.primal < 1e-4 * found.history[0]["primal"]
    assert found.certificate < 1e-3  # where an ADMM settles is a stationary point of the objective


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
