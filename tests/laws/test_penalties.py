"""Laws of a penalty: its prox is the global minimiser, with exact zeros, for every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from deepprox.penalties import (
    L1,
    MCP,
    SCAD,
    Box,
    Bridge,
    CappedL1,
    ElasticNet,
    GroupL2,
    HorseshoeLike,
    LogSum,
    Mask,
    MaxNorm,
    Nuclear,
    SparseGroup,
    StudentT,
    adaptive,
)
from deepprox.struct import replace
from numerics import scalar_minimum, seeds, steps, wide
from rows import PENALTIES

SHAPE = (6, 5)
# these loop, sort, factorise or gather
ALGORITHMS = (LogSum, StudentT, MaxNorm, Nuclear, GroupL2)
SIZES = 10.0 ** np.arange(-8, 4)
any_step = steps | st.sampled_from([1e-6, 1e6])


def rows(condition=lambda row: True):
    """The law runs on these rows."""
    return pytest.mark.parametrize("row", [row for row in PENALTIES if condition(row)], ids=str)


every = rows()
convex = rows(lambda row: row.convex)
sparse = rows(lambda row: row.sparse)
radial = rows(lambda row: row.radial)
graded = rows(lambda row: "alpha" in vars(row.penalty))
first = {jax.tree.structure(row.penalty): row for row in reversed(PENALTIES)}.values()
algorithms = rows(lambda row: row in first and type(row.penalty) in ALGORITHMS)
entries = rows(lambda row: row in first and row.radial and row.axis is None and "alpha" in vars(row.penalty))

value = jax.jit(lambda penalty, w: penalty.value(w))
gradient = jax.jit(jax.grad(lambda w, penalty: penalty.value(w)))
prox = jax.jit(lambda penalty, v, step: penalty.prox(v, step))


def draw(rng):
    """Weights of all sizes; some entries, one input and one unit are exactly zero."""
    v = wide(rng, SHAPE, zeros=0.1)
    v[0], v[:, 0] = 0, 0
    return v


@rows(lambda row: row.penalty.straight)
@given(rng=seeds)
def test_it_is_linear_on_either_side_of_zero_if_it_says_so(row, rng):
    w = np.asarray(draw(rng))
    other = w * rng.uniform(0.5, 2.0, SHAPE)
    middle, ends = value(row.penalty, (w + other) / 2), [value(row.penalty, at) for at in (w, other)]
    np.testing.assert_allclose(middle, np.mean(ends), rtol=1e-12)


@jax.jit
def objective(penalty, w, v, step):
    """What the prox minimises."""
    return penalty.value(w) + ((w - v) ** 2).sum() / (2 * step)


def radius(w, axis):
    """The sizes of the groups."""
    return np.abs(w) if axis is None else np.sqrt((np.asarray(w) ** 2).sum(axis))


@jax.jit
def profile(penalty, t):
    """``phi(t)``: the penalty of one weight, entry by entry."""
    return jax.vmap(penalty.value)(t.reshape(-1, 1, 1)).reshape(t.shape)


@jax.jit
def brute_force(penalty, r, step):
    """``argmin_t phi(t) + (t - r)^2 / (2 step)`` on a refined grid that has 0 and r: sizes and values."""
    f = lambda t: profile(penalty, t) + (t - r) ** 2 / (2 * step)  # noqa: E731
    t = scalar_minimum(f, 0 * r, 1.2 * r, jnp.stack([0 * r, r]), points=501, rounds=3)
    return t, f(t)


@jax.jit
def lowest_nearby(penalty, w, v, step, moves):
    """The lowest objective at ``w`` moved, and at the penalty's own projections of these."""
    moved = w + moves
    allowed = jax.vmap(penalty.prox, (0, None))(moved, step)
    return jax.vmap(objective, (None, 0, None, None))(
        penalty, jnp.concatenate([moved, allowed]), v, step
    ).min()


@radial
@given(rng=seeds, step=any_step)
def test_prox_is_the_global_minimiser(row, rng, step):
    v = draw(rng)
    w = prox(row.penalty, v, step)
    _, lowest = brute_force(row.penalty, radius(v, row.axis), step)
    reached = profile(row.penalty, radius(w, row.axis)) + radius(w - v, row.axis) ** 2 / (2 * step)
    assert np.all(reached <= lowest * (1 + 1e-10))


@every
@given(rng=seeds, step=any_step)
def test_no_perturbation_is_lower(row, rng, step):
    v = draw(rng)
    w = prox(row.penalty, v, step)
    all_entries = rng.standard_normal((len(SIZES), *SHAPE))
    one_column = all_entries * np.eye(5)[rng.integers(5, size=len(SIZES))][:, None]
    one_row = all_entries * np.eye(6)[rng.integers(6, size=len(SIZES))][..., None]
    rank_one = one_column[:, :, :1] * one_row[:, :1] + one_column.sum(2, keepdims=True) * rng.standard_normal(
        5
    )
    one_entry = one_column * np.eye(6)[rng.integers(6, size=len(SIZES))][..., None]
    away = np.broadcast_to(np.stack([w, v - w])[:, None], (2, len(SIZES), *SHAPE))
    ways = np.stack([all_entries, one_column, one_row, one_entry, rank_one, *away, *(-away)])
    moves = (ways * SIZES[:, None, None]).reshape(-1, *SHAPE)
    reached = objective(row.penalty, w, v, step)
    assert reached <= lowest_nearby(row.penalty, w, v, step, moves) * (1 + 1e-10)


@rows(lambda row: not row.radial)
def test_no_other_minimiser_is_lower(row):
    rng = np.random.default_rng(0)
    for step in (0.1, 1.0, 10.0):
        v = draw(rng) / 30
        w = prox(row.penalty, v, step)
        reached = objective(row.penalty, w, v, step)
        # Powell moves along lines, so that it also finds its way around kinks
        for start in (w, v, 0.5 * w + 0.5 * v):
            f = lambda u, v=v, step=step: float(objective(row.penalty, u.reshape(SHAPE), v, step))  # noqa: E731
            with np.errstate(invalid="ignore"):
                other = minimize(f, np.ravel(start), method="Powell", options={"maxiter": 2})
            assert reached <= other.fun * (1 + 1e-12)


@sparse
@given(rng=seeds, step=any_step)
def test_zeros_are_exact(row, rng, step):
    v = draw(rng)
    assert np.all(prox(row.penalty, v, 1e10) == 0)
    if row.radial:
        # one per cent more than v is still thresholded: no ties
        t, _ = brute_force(row.penalty, 1.01 * radius(v, row.axis), step)
        assert np.all(radius(prox(row.penalty, v, step), row.axis)[t == 0] == 0)


@every
@given(rng=seeds, step=any_step)
def test_zero_is_the_least(row, rng, step):
    nothing = np.zeros(SHAPE)
    assert value(row.penalty, nothing) == 0
    assert value(row.penalty, draw(rng)) >= 0
    assert np.all(prox(row.penalty, nothing, step) == 0)


@graded
@given(rng=seeds, step=any_step)
def test_no_strength_is_no_penalty(row, rng, step):
    v = draw(rng)
    assert np.array_equal(prox(replace(row.penalty, alpha=0.0), v, step), v)
    assert value(replace(row.penalty, alpha=0.0), v) == 0


@every
@given(rng=seeds, step=any_step)
def test_stationary_where_the_prox_is_not_zero(row, rng, step):
    v = draw(rng)
    w = np.asarray(prox(row.penalty, v, step))
    slope = np.asarray(gradient(w, row.penalty))
    assert np.all(np.isfinite(slope)) and np.all(np.isfinite(gradient(v, row.penalty)))
    if row.penalty.smooth:
        assert np.allclose((slope + (w - v) / step)[w != 0], 0, atol=1e-10 * np.abs(v / step).max())


@every
def test_says_whether_it_is_convex(row):
    assert row.penalty.convex == row.convex


@convex
@given(rng=seeds, step=any_step)
def test_prox_is_firmly_nonexpansive(row, rng, step):
    u, v = draw(rng), draw(rng)
    gap = np.asarray(prox(row.penalty, u, step) - prox(row.penalty, v, step))
    assert (gap**2).sum() <= (gap * (u - v)).sum() * (1 + 1e-10)


@convex
@given(rng=seeds, step=any_step)
def test_three_point_inequality(row, rng, step):
    u, v = draw(rng), draw(rng)
    w = prox(row.penalty, v, step)
    for other in (u, prox(row.penalty, u, step)):
        bound = objective(row.penalty, w, v, step) + ((other - w) ** 2).sum() / (2 * step)
        assert bound <= objective(row.penalty, other, v, step) * (1 + 1e-10)


@every
@given(rng=seeds, step=steps)
def test_float32(row, rng, step):
    v = np.float32(draw(rng))
    w = prox(row.penalty, v, np.float32(step))
    slope = gradient(w, row.penalty)
    assert w.dtype == slope.dtype == jax.eval_shape(row.penalty.value, w).dtype == jnp.float32
    assert np.all(np.isfinite(slope))
    reached, best = (
        objective(row.penalty, np.float64(u), np.float64(v), step)
        for u in (w, prox(row.penalty, np.float64(v), step))
    )
    assert reached <= best * (1 + 1e-4)


@sparse
def test_float32_weights_too_small_to_square_leave(row):
    v = jnp.full(SHAPE, 1e-30, jnp.float32)
    assert np.all(prox(row.penalty, v, jnp.float32(1e-3)) == 0)


@algorithms
def test_side_by_side_is_one_by_one(row):
    rng = np.random.default_rng(0)
    v, step = np.stack([draw(rng) for _ in range(3)]), np.array([0.01, 1.0, 100.0])
    together = jax.jit(jax.vmap(row.penalty.prox))(v, step)
    assert np.allclose(together, [prox(row.penalty, *each) for each in zip(v, step)], rtol=1e-12)


@entries
@given(rng=seeds, step=any_step)
def test_a_strength_for_each_weight_acts_on_it_alone(row, rng, step):
    v, alpha = draw(rng), np.abs(wide(rng, (6, 1)))
    w = np.asarray(prox(replace(row.penalty, alpha=alpha), v, step))
    total = 0
    for k, one in enumerate(replace(row.penalty, alpha=a) for a in alpha[:, 0]):
        assert np.allclose(w[k], np.asarray(prox(one, v, step))[k], rtol=1e-12)
        total += value(one, v * np.eye(6)[k][:, None])
    assert np.isclose(value(replace(row.penalty, alpha=alpha), v), total, rtol=1e-12)


def test_every_penalty_says_whether_it_is_smooth_and_fits_any_shape():
    # solvers choose their steps by these
    kinked = {type(row.penalty).__name__ for row in PENALTIES if not row.penalty.smooth}
    assert kinked == {"MaxNorm", "Nuclear", "Box"}
    fixed = {type(row.penalty).__name__ for row in PENALTIES if not row.penalty.any_shape}
    assert fixed == {"GroupL2", "SparseGroup", "Mask"}
    assert GroupL2(1.0, "unit").any_shape and SparseGroup().any_shape


@rows(lambda row: row.penalty.wide and row.penalty.any_shape)
@given(rng=seeds, step=any_step, more=st.integers(1, 4))
def test_columns_of_zeros_change_nothing_where_a_penalty_says_so(row, rng, step, more):
    v = draw(rng)
    wider = np.pad(v, [(0, 0), (0, more)])
    assert np.isclose(value(row.penalty, wider), value(row.penalty, v), rtol=1e-12)
    w = np.asarray(prox(row.penalty, wider, step))
    assert not w[:, v.shape[1] :].any()
    assert np.allclose(w[:, : v.shape[1]], prox(row.penalty, v, step), rtol=1e-12, atol=0)


def test_which_penalties_are_blind_to_columns_of_zeros():
    assert {type(row.penalty).__name__ for row in PENALTIES if not row.penalty.wide} == {"Nuclear", "Mask"}


@given(rng=seeds, step=steps, gamma=steps)
def test_mcp_is_a_hard_threshold_from_step_gamma_on(rng, step, gamma):
    v = draw(rng)
    for factor in (1.0, 1 + step):
        kept = np.abs(v) > np.sqrt(factor) * gamma
        assert np.array_equal(prox(MCP(1.0, gamma), v, factor * gamma), np.where(kept, v, 0.0))


@given(rng=seeds, share=st.floats(0.9, 1.1))
def test_flat_stretches_of_the_problem_are_no_obstacle(rng, share):
    # where the prox problem is on the verge of two minima, Newton's root is almost double
    v = 10 ** rng.uniform(0, 1, SHAPE)
    for penalty, step in [
        (LogSum(1.0, 3.0), 9.0 * share),
        (SCAD(1.0, 3.7), 2.7 * share),
        (SCAD(1.0, 3.7), 4.7 * share),
        (CappedL1(1.0, 2.0), 4.0 * share),
        (StudentT(1.0, 1.0, 1.0), 4.0 * share),
    ]:
        w = prox(penalty, v, step)
        reached = profile(penalty, np.abs(w)) + (w - v) ** 2 / (2 * step)
        assert np.all(reached <= brute_force(penalty, v, step)[1] * (1 + 1e-10))


@given(rng=seeds, step=any_step)
def test_whole_units_leave_exactly_in_the_ball(rng, step):
    v = draw(rng)
    loads = np.abs(v).sum(1)
    w = np.asarray(prox(MaxNorm(1.0), v, step))
    assert np.array_equal((w == 0).all(1), loads <= step)
    largest = np.linalg.norm(v, 2)
    assert np.all(prox(Nuclear(1.0), v, 1.0001 * largest) == 0)
    assert np.linalg.matrix_rank(prox(Nuclear(1.0), v, 0.9999 * largest), tol=1e-9 * largest) == 1


@given(rng=seeds, step=any_step)
def test_given_groups_are_inputs_or_one_group(rng, step):
    v = draw(rng)
    for make in (GroupL2, lambda alpha, by: SparseGroup(alpha, 0.3, by)):
        single, inputs = make(0.7, (2, 0, 3, 1, 4)), make(0.7, "input")
        assert np.allclose(prox(single, v, step), prox(inputs, v, step), rtol=1e-12)
        one, unit = make(0.7, (0,) * 5), make(0.7, "unit")
        flat = prox(unit, v.reshape(1, -1), step).reshape(SHAPE)
        assert np.allclose(prox(one, v, step), flat, rtol=1e-12)
        assert np.isclose(value(one, v), value(unit, v.reshape(1, -1)), rtol=1e-12)


def test_adaptive_weights_are_zous():
    coef = np.array([[0.0, -0.5, 2.0]])
    assert np.allclose(adaptive(coef), [[1e6, 2.0, 0.5]], rtol=1e-5)
    assert np.allclose(adaptive(coef, power=2.0, floor=1.0), [[1.0, 1 / 2.25, 1 / 9]])
    w = prox(L1(0.3 * adaptive(coef)), np.array([[3.0, 3.0, 3.0]]), 1.0)
    assert np.allclose(w, [[0.0, 2.4, 2.85]], rtol=1e-5) and w[0, 0] == 0


def test_a_mask_may_be_an_array():
    mask = np.arange(30).reshape(SHAPE) % 3 == 0
    v = draw(np.random.default_rng(0))
    for given_mask in (mask, mask.astype(float), jnp.asarray(mask)):
        assert np.array_equal(prox(Mask(given_mask), v, 1.0), np.where(mask, v, 0.0))
    assert value(Mask(mask), v) == np.inf and value(Mask(mask), v * mask) == 0


@pytest.mark.parametrize(
    "mistake, sentence",
    [
        (lambda: Bridge(1.0, 1.0), "Bridge needs 0 < q < 1, got q=1.0"),
        (lambda: Bridge(1.0, 0.0), "Bridge needs 0 < q < 1"),
        (lambda: Bridge(1.0, float("nan")), "Bridge needs 0 < q < 1"),
        (lambda: GroupL2(1.0, "row").check(), "by must be 'input', 'unit', or a tuple"),
        (lambda: GroupL2(1.0, (0, 2)).check(), "numbered from 0 without a gap"),
        (lambda: GroupL2(1.0, (0, -1)).check(), "numbered from 0 without a gap"),
        (lambda: SparseGroup(1.0, 0.5, ("a", "b")).check(), "numbered from 0 without a gap"),
        (lambda: value(GroupL2(1.0, "row"), np.ones(SHAPE)), "by must be 'input', 'unit', or a tuple"),
        (lambda: value(GroupL2(1.0, (0, 1)), np.ones(SHAPE)), "by has 2 group numbers, but .* 5 columns"),
        (lambda: prox(SparseGroup(1.0, 0.5, (0,) * 6), np.ones(SHAPE), 1.0), "by has 6 group numbers"),
        (lambda: value(Mask(np.ones((2, 2))), np.ones(SHAPE)), r"mask has shape \(2, 2\)"),
        (lambda: Box(0.5, 1.0).check(), "Box needs low <= 0 <= high"),
        (lambda: Box(-1.0, -0.5).check(), "Box needs low <= 0 <= high"),
        (lambda: SCAD(1.0, 2.0).check(), "SCAD needs a > 2"),
        (lambda: MCP(1.0, 0.0).check(), "MCP needs gamma > 0"),
        (lambda: LogSum(1.0, 0.0).check(), "LogSum needs eps > 0"),
        (lambda: CappedL1(1.0, 0.0).check(), "CappedL1 needs cap > 0"),
        (lambda: ElasticNet(1.0, 1.5).check(), "ElasticNet needs 0 <= l1_ratio <= 1"),
        (lambda: SparseGroup(1.0, -0.5).check(), "SparseGroup needs 0 <= l1_ratio <= 1"),
        (lambda: HorseshoeLike(1.0, 1.0, 0.0).check(), "HorseshoeLike needs scale > 0 and floor > 0"),
        (lambda: StudentT(1.0, 0.0).check(), "StudentT needs df > 0 and scale > 0"),
    ],
)
def test_a_mistake_is_one_sentence(mistake, sentence):
    with pytest.raises(ValueError, match=sentence):
        mistake()


@every
def test_rows_are_in_range(row):
    assert row.penalty.check() is None


@rows(lambda row: row.penalty.by_formula)
@given(rng=seeds)
def test_derivatives_are_those_of_the_value(row, rng):
    shape = np.shape(getattr(row.penalty, "mask", np.zeros(SHAPE)))
    w = wide(rng, shape)
    if not np.isfinite(row.penalty.value(w)):
        w = np.asarray(row.penalty.prox(w, 1.0))
        w = np.where(w == 0, 0.5, w) * np.broadcast_to(getattr(row.penalty, "mask", 1.0), shape)
    by_jax = jax.grad(row.penalty.value)
    slope, bend = row.penalty.derivatives(w)
    alive = w != 0
    np.testing.assert_allclose(row.penalty.value(w), row.penalty.value(jnp.asarray(w)), rtol=1e-12)
    np.testing.assert_allclose(slope[alive], by_jax(w)[alive], rtol=1e-9, atol=1e-12)
    along = jax.jvp(by_jax, (w,), (np.ones_like(w),))[1]  # weights do not interact
    np.testing.assert_allclose(bend[alive], along[alive], rtol=1e-9, atol=1e-12)
