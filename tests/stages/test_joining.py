"""The join phase: certified points for every penalty, exact canonical forms, kinks that hold."""

from functools import partial

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from deepprox import links, losses, penalties
from deepprox.blocks import Dense
from deepprox.joining import box, candidates, kinks
from deepprox.joining import finish as finish_
from deepprox.joining.certificate import ravel, unravel
from deepprox.joining.finish import At, finish, search
from deepprox.joining.hessian import Hessian, hessian
from deepprox.joining.join import join
from deepprox.joining.live import canonical, live_part
from deepprox.joining.model import Model, model_at, no_kinks, survey
from deepprox.joining.point import Point, look
from deepprox.solve import Options, allowed, solve
from deepprox.struct import replace
from stages.problems import problem


def quiet(phase, rows):
    pass


DEEP = [
    penalties.L1(0.01),
    penalties.L2(0.1),
    penalties.ElasticNet(0.01),
    penalties.GroupL2(0.01, "input"),
    penalties.GroupL2(0.01, "unit"),
    penalties.SparseGroup(0.01),
    penalties.Bridge(0.01),
    penalties.LogSum(0.01),
    penalties.HorseshoeLike(0.01),
    penalties.StudentT(0.03),
    penalties.MaxNorm(0.02),
    penalties.Nuclear(0.02),
    penalties.Box(-1.0, 1.0),
]
# Level far out, or no shrinkage at all: the minimum of a network that can fit its data would be at infinity.
ONE_BLOCK = [
    penalties.Zero(),
    penalties.MCP(0.05),
    penalties.SCAD(0.05),
    penalties.L0(0.01),
    penalties.CappedL1(0.05, 1.0),
    penalties.NonNegative(),
    penalties.GroupL2(0.05, (0, 0, 1, 1)),
    penalties.SparseGroup(0.05, 0.5, (0, 1, 1, 0)),
    penalties.Mask(((True, False, True, True),) * 3),
    penalties.L1(0.05 * np.arange(12.0).reshape(3, 4)),
]


# Each compiles its own network. L1 and groups of units are also among the penalised biases below; MaxNorm has
# kinks away from zero as Nuclear has; SCAD, CappedL1 and SparseGroup bend as MCP, L0 and GroupL2 do.
QUICK = penalties.GroupL2(0.01, "input"), penalties.Bridge(0.01), penalties.Nuclear(0.02)
LATER = (penalties.SCAD, penalties.CappedL1, penalties.SparseGroup)
EVERY = [
    *(pytest.param(one, marks=[] if one in QUICK else pytest.mark.slow) for one in DEEP),
    *(pytest.param(one, marks=pytest.mark.slow if isinstance(one, LATER) else []) for one in ONE_BLOCK),
]


@pytest.mark.parametrize("penalty", EVERY, ids=lambda penalty: str(penalty)[:40])
def test_every_penalty_ends_certified(penalty):
    deep = any(penalty is one for one in DEEP)
    loss, hidden = (losses.Softmax(), (6, 4)) if deep else (losses.Squared(), ())
    posed, W = problem(penalty=penalty, hidden=hidden, loss=loss)
    W = tuple(allowed(block, w) for block, w in zip(posed.network.blocks, W))
    found = join(posed, W, 1e-7, 3000, quiet)
    assert found.status == "converged", found
    assert found.certificate <= 1e-7
    objective = jax.jit(posed.objective)
    assert found.objective < float(objective(W))
    np.testing.assert_allclose(found.objective, float(objective(found.W)), rtol=1e-12)


@pytest.mark.parametrize("penalty", [penalties.L1(0.01), penalties.GroupL2(0.01, "unit")], ids=str)
def test_penalised_biases_end_certified(penalty):
    posed, W = problem(penalty=penalty, hidden=(6,), bias=True)
    found = join(posed, W, 1e-8, 3000, quiet)
    assert found.status == "converged" and found.certificate <= 1e-8


def test_a_deep_network_with_a_level_penalty_ends_certified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = np.tanh(1.5 * X[:, :1] - X[:, 1:2]) + np.tanh(X[:, 2:3] + X[:, 3:4]) + 0.3 * rng.normal(size=(300, 1))
    posed, W = problem(penalty=penalties.MCP(0.03), hidden=(6,), loss=losses.Squared(), p=6, k=1)
    posed = replace(posed, X=X, y=y, weight=np.full(300, 1 / 300))
    found = solve(posed, [W], Options(tol=1e-8))
    assert found.status == "converged"
    concave = [(np.abs(w) > 0) & (np.abs(w) < 0.09) for w in found.W]
    assert sum(c[:, 1:].sum() for c in concave) == 0  # weights are zero, or large enough to be left alone


SMOOTH_OR_NOT = [links.Tanh(), links.ReLU()]
MORE = [pytest.param(link, marks=pytest.mark.slow) for link in (links.LeakyReLU(0.1), links.Softplus())]


@pytest.mark.parametrize("link", [*SMOOTH_OR_NOT, *MORE], ids=str)
def test_no_direction_descends_from_a_certified_point(link):
    posed, W = problem(link, penalties.L1(0.02), hidden=(8,), n=120)
    found = join(posed, W, 1e-8, 3000, quiet)
    assert found.status == "converged"
    rng, w = np.random.default_rng(0), ravel(found.W)
    objective = jax.jit(posed.objective)
    floor = float(objective(found.W))
    for size in (1e-3, 1e-4, 1e-5):
        for _ in range(50):
            moved = unravel(w + size * rng.normal(size=w.size), found.W)
            on_support = unravel(w + size * rng.normal(size=w.size) * (w != 0), found.W)
            assert float(objective(moved)) >= floor - 1e-12
            assert float(objective(on_support)) >= floor - 1e-12


def test_relu_networks_are_certified_at_their_kinks():
    held = []
    for seed in range(4):
        posed, W = problem(links.ReLU(), penalties.L1(0.01), hidden=(8,), n=120, seed=seed)
        found = solve(posed, [W], Options(tol=1e-6))
        assert found.status == "converged"
        held.append(found.n_held)
    assert max(held) > 0  # without slopes at kinks these could not be certified


@pytest.mark.parametrize(
    ("link", "alpha", "hidden", "n"),
    [(links.Tanh(), np.asarray(0.01), (5,), 40), (links.ReLU(), 0.01, (8,), 120)],
    ids=["Tanh", "ReLU"],
)  # shapes of other tests: they compile once
def test_the_zero_pattern_is_stable(link, alpha, hidden, n):
    posed, W = problem(link, penalties.L1(alpha), hidden=hidden, n=n)
    loose, tight = (solve(posed, [W], Options(tol=tol)) for tol in (1e-6, 1e-8))
    assert loose.status == tight.status == "converged"
    for a, b in zip(loose.W, tight.W):
        np.testing.assert_array_equal(a == 0, b == 0)


def test_the_hessian_is_the_hessian():
    posed, W = problem(penalty=penalties.MCP(0.01, 20.0), hidden=(3,))
    w, back = ravel_pytree(W)
    live = np.array([0, 2, 5, 11, 20])
    H = hessian(posed, W, kinks.no_slopes(posed), live).full
    full = jax.jit(jax.hessian(lambda v: posed.objective(back(v))))(w)
    np.testing.assert_allclose(H, np.asarray(full)[np.ix_(live, live)], atol=1e-10)


def sparse_weights(posed, W, rng, share=0.7):
    return tuple(np.where(rng.random(w.shape) < share, 0.0, w) for w in W)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("link", [links.Sigmoid(), links.ReLU()], ids=str)
def test_the_canonical_form_is_the_same_function(link, seed):
    posed, W = problem(link, hidden=(6, 5, 4))
    rng = np.random.default_rng(seed)
    W = sparse_weights(posed, W, rng)
    form, live = canonical(posed.network, W)
    eta, same = (posed.network.forward(w, posed.X)[-1] for w in (W, form))
    np.testing.assert_allclose(eta, same, atol=1e-14)
    again, _ = canonical(posed.network, form)
    for a, b in zip(form, again):
        np.testing.assert_array_equal(a, b)
    for here, after, units in zip(form, form[1:], live.reads[1:]):
        feeds, reads = (after[:, 1:] != 0).any(0), (here[:, 1:] != 0).any(1)
        np.testing.assert_array_equal(units, feeds)
        assert (reads[units]).all() and not here[~units].any()


def test_a_constant_unit_goes_into_the_next_bias():
    posed, _ = problem(links.Sigmoid(), hidden=(2,), p=2, k=1, loss=losses.Squared())
    W = (np.array([[0.4, 0, 0], [0.1, 1.0, 0]]), np.array([[0.5, 2.0, 3.0]]))
    form, live = canonical(posed.network, W)
    np.testing.assert_allclose(form[1], [[0.5 + 2 / (1 + np.exp(-0.4)), 0, 3.0]])
    np.testing.assert_array_equal(live.inputs, [True, False])
    np.testing.assert_array_equal(live.reads[1], [False, True])


def test_the_live_part_is_the_whole():
    posed, W = problem(hidden=(40, 30))
    W = tuple(w.copy() for w in W)
    W[0][3:], W[1][:, 4:], W[1][2:], W[2][:, 3:] = 0, 0, 0, 0
    form, live = canonical(posed.network, W)
    part = live_part(posed, live)
    assert [block.size for block in part.problem.network.blocks] == [16, 16, 3]
    small = part.take(form)
    of_part, of_whole = jax.jit(part.problem.objective), jax.jit(posed.objective)
    np.testing.assert_allclose(of_part(small), of_whole(form), rtol=1e-14)
    for a, b in zip(part.put(small), form):
        np.testing.assert_array_equal(a, b)


def test_a_small_problem_is_cut_only_where_more_of_them_follow():
    posed, W = problem(hidden=(40,))
    W[0][3:], W[1][:, 4:] = 0, 0
    live = canonical(posed.network, W)[1]
    sizes = [[block.size for block in live_part(posed, live, w).problem.network.blocks] for w in ((), (4,))]
    assert sizes == [[40, 3], [16, 3]]


@pytest.mark.parametrize("rank", [8, 3])
@pytest.mark.parametrize("active_sets", [12, 0])  # 0: gradient projection alone
def test_slopes_solve_their_box_problem(monkeypatch, active_sets, rank):
    from scipy.optimize import minimize

    monkeypatch.setattr(box, "ACTIVE_SETS", active_sets)
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, q = rng.normal(size=(rank, 6)), rng.normal(size=6)
        M = A.T @ A
        s = box.best_slopes(M, q, np.zeros(6))
        value = partial(lambda M, q, s: s @ M @ s / 2 + q @ s, M, q)
        best = minimize(value, np.full(6, 0.5), bounds=[(0, 1)] * 6, options={"ftol": 1e-15}).fun
        assert (s >= 0).all() and (s <= 1).all() and value(s) <= best + 1e-9


def test_observations_that_read_the_same_share_a_kink():
    X = np.repeat([[1.0, 5.0], [1.0, 6.0], [2.0, 5.0]], 4, axis=0)
    print_of = candidates.fingerprint(Dense(3), np.array([[1.0, 2, 0], [0, 1, -1], [3, 0, 0]]), X)
    assert [len(np.unique(column)) for column in print_of.T] == [2, 3, 1]
    few = candidates.fingerprint(Dense(1), np.array([[0.0, 1, 0]]), 1e9 * X + 1)
    assert len(np.unique(few)) == 2


def test_together_the_kinks_of_equal_readings_are_one():
    """One live input on a grid, another that tells all rows apart and is not read."""
    posed, _ = problem(links.ReLU(), loss=losses.Squared(), hidden=(1,), p=2, n=60, k=1)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1, 4, 60), rng.normal(size=60)]).astype(float)
    # responses below every prediction: all kinks are convex
    posed = replace(posed, X=X, y=-rng.uniform(1, 2, (60, 1)))
    W = np.array([[-2.0, 1.0, 0.0]]), np.array([[0.0, 1.0]])
    at = look(posed, W, kinks.no_slopes(posed), 1.0)
    jump = np.asarray(at.upstream[0])[:, 0]
    assert (jump > 0).all()
    assert candidates.find(posed, W, at.Z, at.upstream).offset.size == 60
    found = candidates.find(posed, W, at.Z, at.upstream, together=True)
    assert found.offset.size == 3
    for k, total in enumerate(found.jump):
        rows = np.sort(found.entries.place[found.candidate == k])
        np.testing.assert_array_equal(rows, np.flatnonzero(X[:, 0] == X[rows[0], 0]))
        np.testing.assert_allclose(total, jump[rows].sum())


def test_a_bias_is_redundant_where_its_unit_is_linear_at_all_observations():
    posed, W = problem(links.ReLU(), hidden=(3,), p=2, loss=losses.Squared())
    W[0][:, 0] = 100, -100, 0  # on everywhere, off everywhere, and both
    none = kinks.no_slopes(posed)
    own = look(posed, W, none, 1.0).slope
    idle = unravel(kinks.redundant_biases(posed, W, own, none), W)
    np.testing.assert_array_equal(idle[0][:, 0], [True, True, False])
    assert not idle[0][:, 1:].any() and not idle[1].any()
    first = np.arange(none.held[0].size).reshape(none.held[0].shape) == 0
    held = kinks.Slopes((first,), none.slope)  # with another slope at one observation it moves something
    idle = unravel(kinks.redundant_biases(posed, W, own, held), W)
    np.testing.assert_array_equal(idle[0][:, 0], [False, True, False])
    for given in (
        problem(links.ReLU(), hidden=(3,), p=2, bias=True),
        problem(links.Tanh(), hidden=(3,), p=2, loss=losses.Squared()),
    ):
        assert not kinks.redundant_biases(given[0], W, own, none).any()


def test_one_bias_is_redundant_where_the_loss_sees_differences_of_outputs():
    for bias in (False, True):
        posed, W = problem(links.Tanh(), bias=bias)
        at = look(posed, W, kinks.no_slopes(posed), 1.0)
        idle = kinks.redundant_biases(posed, W, at.slope, kinks.no_slopes(posed))
        assert idle.sum() == (0 if bias else 1)
        biases = np.asarray(unravel(at.gradient, W)[-1])[:, 0]
        np.testing.assert_allclose(biases.sum(), 0, atol=1e-15)
        assert not idle.any() or unravel(idle, W)[-1][:, 0].sum() == 1


@pytest.mark.parametrize(
    ("before", "w", "moved", "shorter", "stay"),
    [
        ([1.0, 0.0], [1.1, 0.0], [1.1, 0.0], 1.0, True),
        ([1.0, 0.0], [0.4, 0.0], [0.4, 0.0], 1.0, False),  # another such step would pass zero
        ([1.0, 0.0], [0.4, 0.0], [0.4, 0.0], 0.5, True),
        ([1.0, 0.2], [1.1, 0.0], [1.1, 0.0], 1.0, False),  # one has just become zero
        ([1.0, 0.2], [1.1, 0.0], [1.1, 0.0], 0.5, True),
        ([1.0, 0.0], [1.1, 0.2], [1.1, 0.2], 0.5, True),  # one has just been released
        ([1.0, 0.0], [1.1, 0.0], [1.1, 0.1], 0.5, False),  # one wants to be
    ],
)
def test_zeros_stay_where_no_shorter_step_changes_them(before, w, moved, shorter, stay):
    at = Point(*[None] * 4, np.array(moved), np.ones(2, bool), *[None] * 4)
    assert finish_.zeros_stay(np.array(before), np.array(w), at, shorter, 1e-9) == stay


def test_newton_is_quadratic_where_biases_are_redundant(monkeypatch):
    """A unit that is on everywhere: the model bends down along its bias, which only damping would mend.

    Levelling the biases after a step mends this one too, so it is left out here.
    """
    monkeypatch.setattr(finish_, "leap", lambda problem, W, V, *rest: (V, look(problem, V, *rest)))
    posed, _ = problem(links.ReLU(), penalties.L1(np.asarray(0.01)), hidden=(1,), loss=losses.Squared(), k=1)
    posed = replace(posed, y=posed.X @ np.array([[2.0], [-1.0], [1.0], [0.5]]))
    W = np.array([[20.0, 1.0, -0.5, 0.5, 0.25]]), np.array([[-40.0, 2.0]])
    found = join(posed, W, 1e-9, 3000, quiet)
    assert found.status == "converged" and found.live.reads[1].all()
    blocks = tuple(replace(b, penalty=penalties.L1(np.asarray(0.02))) for b in posed.network.blocks)
    stronger = replace(posed, network=replace(posed.network, blocks=blocks))
    steps = []
    for idle in (kinks.redundant_biases, lambda problem, W, *rest: np.zeros(ravel(W).shape, bool)):
        monkeypatch.setattr(kinks, "redundant_biases", idle)
        end = finish(stronger, found.W, kinks.no_slopes(posed), 1.0, 1e-8, 100)
        assert end.certificate <= 1e-8
        steps.append([step.certificate for step in end.steps])
    assert len(steps[0]) <= 5 and len(steps[0]) < len(steps[1]), steps


def test_the_least_damping_makes_a_model_convex():
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    for lowest in (1.0, 0.0, -0.3):
        H = (V * [lowest, 1, 2, 3, 4]) @ V.T
        model = Model(
            np.ones(5),
            np.zeros(5),
            Hessian(H, np.zeros((5, 5))),
            np.ones(5),
            np.zeros((0, 5)),
            candidates.none(),
        )
        damping, lower = model.least_damped(1e-10)
        np.testing.assert_allclose(lower @ lower.T, H + damping * np.eye(5), atol=1e-9)
        assert damping == pytest.approx(max(-2 * lowest, 1e-10 if lowest == 0 else 0.0), abs=1e-9)


def test_what_is_held_at_a_kink_needs_no_damping():
    """Curvature that is negative along the derivative of a held entry alone leaves the model convex."""
    posed, _ = problem(links.ReLU(), loss=losses.Squared(), hidden=(1,), p=2, n=60, k=1)
    posed = replace(posed, y=-np.ones((60, 1)))  # below every prediction: all kinks are convex
    x = np.asarray(posed.X)[0]
    W = np.array([[-x[0] - 2 * x[1], 1.0, 2.0]]), np.array([[0.0, 1.0]])
    none, free = kinks.no_slopes(posed), np.arange(5)
    at = look(posed, W, none, 1.0)
    found = candidates.find(posed, W, at.Z, at.upstream)
    held = np.abs(found.offset) < 1e-12
    assert held.sum() == 1
    along = candidates.jacobian(posed, W, none, found.row, found.unit)[held][0]
    H = Hessian(np.eye(5) - 1.5 * np.outer(along, along) / (along @ along), np.zeros((5, 5)))
    assert np.linalg.eigvalsh(H.full)[0] < -0.4
    seen = survey(posed, W, none, at, 1.0, False)
    bent, straight = (model_at(W, at, free, H, 1.0, around) for around in (seen, no_kinks(at)))
    assert bent.factor(1e-10)[0] == 0.0
    assert straight.factor(1e-10) is None and straight.least_damped(1e-10)[0] == pytest.approx(1.0)
    # an entry that no free weight moves is no help
    H = Hessian(-np.eye(2), np.zeros((2, 2)))
    assert model_at(W, at, free[3:], H, 1.0, seen).least_damped(1e-10)[0] == pytest.approx(2.0)


def test_one_observation_may_sit_at_kinks_of_two_blocks():
    """What its slopes add is a product: the model has it as it is now, and how it changes with each."""
    checked = 0
    for seed in range(8):
        posed, W = problem(links.ReLU(), loss=losses.Squared(), hidden=(4, 3), k=1, seed=seed)
        x, W = np.asarray(posed.X)[0], tuple(np.array(w) for w in W)
        W[0][0, 0] = -x @ W[0][0, 1:]
        reads = np.maximum(W[0][:, 0] + W[0][:, 1:] @ x, 0)
        W[1][0, 0] = -reads[1:] @ W[1][0, 2:]

        def held(*shares, posed=posed):
            slopes = kinks.no_slopes(posed)
            for mask, slope, share in zip(slopes.held, slopes.slope, shares, strict=True):
                mask[0, 0], slope[0, 0] = True, share
            return slopes

        def gradient(*shares, posed=posed, W=W, held=held):
            return np.asarray(look(posed, W, held(*shares), 1.0).gradient)

        at = look(posed, W, held(0.3, 0.6), 1.0)
        seen = survey(posed, W, held(0.3, 0.6), at, 1.0, False)
        sit = np.flatnonzero(np.abs(seen.kinks.offset) < kinks.SITS)
        if sit.size < 2:  # the objective is concave across one of them
            continue
        checked += 1
        shares = candidates.shares(posed, at.slope, held(0.3, 0.6), seen.kinks)
        np.testing.assert_allclose(sorted(shares[sit]), [0.3, 0.6])
        adds = seen.J.T * seen.kinks.jump
        np.testing.assert_allclose(seen.gradient + adds @ shares, at.gradient, atol=1e-12)
        first, second = sit[np.argsort(seen.kinks.unit[sit])]
        np.testing.assert_allclose(adds[:, first] * 0.2, gradient(0.5, 0.6) - gradient(0.3, 0.6), atol=1e-12)
        np.testing.assert_allclose(adds[:, second] * 0.2, gradient(0.3, 0.8) - gradient(0.3, 0.6), atol=1e-12)
    assert checked


def test_a_zero_moves_only_if_it_still_would_after_the_others():
    """Along it the model bends down: only where it moves is the step of the other weight damped."""
    w, side, G, no_J = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.5, -0.1]), np.zeros((0, 2))
    for together, leaves in ((-0.4, False), (0.0, True)):
        H = Hessian(np.array([[1.0, together], [together, -1.0]]), np.zeros((2, 2)))
        dw, _, damping = Model(w, side, H, G, no_J, candidates.none()).minimise(0.0, 1e-10)
        if leaves:
            assert dw[1] > 0 and damping == pytest.approx(2.0)
        else:
            np.testing.assert_allclose(dw, [-0.5, 0.0], atol=1e-9)
            assert damping <= 1e-10
    # where all are at zero, all may move
    dw, _, _ = Model(0 * w, np.ones(2), H, -np.ones(2), no_J, candidates.none()).minimise(0.0, 1e-10)
    assert (dw > 0).all()


def test_weights_that_cross_zero_stop_there_and_the_rest_is_at_the_minimum():
    rng, n_stopped = np.random.default_rng(0), []
    for _ in range(10):
        A, J, w = rng.normal(size=(40, 30)), rng.normal(size=(12, 30)), rng.normal(size=30)
        near = candidates.none()._replace(offset=0.3 * rng.normal(size=12), jump=rng.uniform(1, 20, 12))
        H, G = Hessian(A.T @ A, np.zeros((30, 30))), 5 * rng.normal(size=30)
        dw, s = Model(w, np.sign(w), H, G, J, near).solve(np.linalg.cholesky(H.full))
        stopped = dw == -w
        n_stopped.append(stopped.sum())
        slope = G + H.full @ dw + J.T @ (near.jump * s)
        np.testing.assert_allclose(slope[~stopped], 0, atol=1e-8)
        assert (((w + dw) * w)[~stopped] > 0).all()
        over = near.offset + J @ dw
        np.testing.assert_allclose(over[(s > 0) & (s < 1)], 0, atol=1e-8)
        assert (over[s == 1] > -1e-8).all() and (over[s == 0] < 1e-8).all()
    assert min(n_stopped) > 0 and max(n_stopped) < 30


def test_candidates_are_the_nearest_of_all_entries(monkeypatch):
    posed, W = problem(links.ReLU(), hidden=(8,), n=300)
    at = look(posed, W, kinks.no_slopes(posed), 1.0)
    assert at.Z[0].size > 2 * candidates.N_ALONE
    few = candidates.find(posed, W, at.Z, at.upstream)
    monkeypatch.setattr(candidates, "N_ALONE", at.Z[0].size)
    many = candidates.find(posed, W, at.Z, at.upstream)
    for one, other in zip((*few[:-1], *few.entries), (*many[:-1], *many.entries), strict=True):
        np.testing.assert_array_equal(one, other)


def test_damping_is_kept_only_where_a_step_was_refused():
    posed, W = problem(links.Tanh(), hidden=(3,), p=2, n=60)
    none, free = kinks.no_slopes(posed), np.arange(ravel(W).size)
    at = look(posed, W, none, 1.0)
    one = np.eye(free.size)
    bent, flat = one.copy(), 1e-9 * one  # along a flat model the first steps are far too long
    bent[0, 0] = -0.5
    kept = []
    for H in (bent, flat):
        model = model_at(W, at, free, Hessian(H, 0 * H), 1.0, no_kinks(at))
        after, ok = search(posed, At(W, none, at, 1.0, free=free), model)
        assert ok and after.objective < at.objective
        kept.append(after.damping)
    assert kept[0] == 0.0 < kept[1], kept


def test_newton_steps_are_given_up_where_kinks_fill_the_model(monkeypatch):
    posed, W = problem(links.ReLU(), penalties.L1(0.003), (8,), n=60)
    rows = {}

    def joined(full):
        monkeypatch.setattr(finish_, "FULL", full)
        rows[full] = []
        return join(posed, W, 1e-6, 600, lambda phase, new: rows[full].extend((phase, row) for row in new))

    monkeypatch.setattr(finish_, "COST", 0)
    tried, refused = joined(1.0), joined(0.0)  # never full; full with the first that is held
    assert max(row["n_held"] for phase, row in rows[1.0] if phase == "newton") > 0
    count = {full: [phase for phase, _ in rows[full]].count("join") for full in rows}
    assert count[0.0] > count[1.0] and len(rows[0.0]) <= 600
    assert refused.objective <= tried.objective * 1.05
