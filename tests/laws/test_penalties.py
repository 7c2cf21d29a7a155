"""Laws of a penalty: its prox is the global minimiser, with exact zeros, for every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from skglm.penalties import L1 as SkglmL1
from skglm.utils.prox_funcs import BST, prox_MCP

from deepprox.penalties import L1, MCP, GroupL2
from deepprox.struct import replace
from numerics import scalar_minimum, seeds, steps, wide
from rows import PENALTIES

SHAPE = (6, 5)
every = pytest.mark.parametrize("row", PENALTIES, ids=str)
convex = pytest.mark.parametrize("row", [row for row in PENALTIES if row.convex], ids=str)
sparse = pytest.mark.parametrize("row", [row for row in PENALTIES if row.sparse], ids=str)
graded = pytest.mark.parametrize("row", [row for row in PENALTIES if row.penalty.__dict__], ids=str)

value = jax.jit(lambda penalty, w: penalty.value(w))
gradient = jax.jit(jax.grad(lambda w, penalty: penalty.value(w)))
prox = jax.jit(lambda penalty, v, step: penalty.prox(v, step))


def draw(rng):
    """Weights of all sizes; some entries, one input and one unit are exactly zero."""
    v = wide(rng, SHAPE, zeros=0.1)
    v[0], v[:, 0] = 0, 0
    return v


@jax.jit
def objective(penalty, w, v, step):
    """What the prox minimises."""
    return penalty.value(w) + ((w - v) ** 2).sum() / (2 * step)


def radius(w, axis):
    """The sizes of the groups."""
    return jnp.abs(w) if axis is None else jnp.sqrt((w**2).sum(axis))


@jax.jit
def profile(penalty, t):
    """``phi(t)``: the penalty of one weight, entry by entry."""
    return jax.vmap(penalty.value)(t.reshape(-1, 1, 1)).reshape(t.shape)


@jax.jit
def brute_force(penalty, r, step):
    """``argmin_t phi(t) + (t - r)^2 / (2 step)`` on a refined grid that has 0 and r: sizes and values."""
    f = lambda t: profile(penalty, t) + (t - r) ** 2 / (2 * step)  # noqa: E731
    t = scalar_minimum(f, 0 * r, 1.2 * r, jnp.stack([0 * r, r]))
    return t, f(t)


@every
@given(rng=seeds, step=steps)
def test_prox_is_the_global_minimiser(row, rng, step):
    v = draw(rng)
    w = prox(row.penalty, v, step)
    _, lowest = brute_force(row.penalty, radius(v, row.axis), step)
    reached = profile(row.penalty, radius(w, row.axis)) + radius(w - v, row.axis) ** 2 / (2 * step)
    assert np.all(reached <= lowest * (1 + 1e-10))


@every
@given(rng=seeds, step=steps)
def test_no_perturbation_is_lower(row, rng, step):
    v = draw(rng)
    w = prox(row.penalty, v, step)
    reached = objective(row.penalty, w, v, step)
    for size in 10.0 ** np.arange(-6, 3):
        moved = w + size * rng.standard_normal(SHAPE)
        assert reached <= objective(row.penalty, moved, v, step) * (1 + 1e-10)


@sparse
@given(rng=seeds, step=steps)
def test_zeros_are_exact(row, rng, step):
    v = draw(rng)
    # one per cent more than v is still thresholded: no ties
    t, _ = brute_force(row.penalty, 1.01 * radius(v, row.axis), step)
    assert np.all(radius(prox(row.penalty, v, step), row.axis)[t == 0] == 0)
    assert np.all(prox(row.penalty, v, 1e10) == 0)


@every
@given(rng=seeds, step=steps)
def test_zero_is_the_least(row, rng, step):
    nothing = np.zeros(SHAPE)
    assert value(row.penalty, nothing) == 0
    assert value(row.penalty, draw(rng)) >= 0
    assert np.all(prox(row.penalty, nothing, step) == 0)


@graded
@given(rng=seeds, step=steps)
def test_no_strength_is_no_penalty(row, rng, step):
    v = draw(rng)
    assert np.array_equal(prox(replace(row.penalty, alpha=0.0), v, step), v)
    assert value(replace(row.penalty, alpha=0.0), v) == 0


@every
@given(rng=seeds, step=steps)
def test_stationary_where_the_prox_is_not_zero(row, rng, step):
    v = draw(rng)
    w = prox(row.penalty, v, step)
    slope = gradient(w, row.penalty)
    assert np.all(np.isfinite(slope))
    assert np.allclose((slope + (w - v) / step)[w != 0], 0, atol=1e-10 * np.abs(v / step).max())


@convex
@given(rng=seeds, step=steps)
def test_prox_is_firmly_nonexpansive(row, rng, step):
    u, v = draw(rng), draw(rng)
    gap = prox(row.penalty, u, step) - prox(row.penalty, v, step)
    assert (gap**2).sum() <= (gap * (u - v)).sum() * (1 + 1e-10)


@convex
@given(rng=seeds, step=steps)
def test_three_point_inequality(row, rng, step):
    u, v = draw(rng), draw(rng)
    w = prox(row.penalty, v, step)
    bound = objective(row.penalty, w, v, step) + ((u - w) ** 2).sum() / (2 * step)
    assert bound <= objective(row.penalty, u, v, step) * (1 + 1e-10)


@every
@given(rng=seeds, step=steps)
def test_float32(row, rng, step):
    v = jnp.asarray(draw(rng), jnp.float32)
    w = prox(row.penalty, v, jnp.float32(step))
    assert w.dtype == value(row.penalty, v).dtype == jnp.float32
    reached, best = (
        objective(row.penalty, u, v, step) for u in (w, prox(row.penalty, v.astype(float), step))
    )
    assert reached <= best * (1 + 1e-4)


@sparse
def test_float32_weights_too_small_to_square_leave(row):
    v = jnp.full(SHAPE, 1e-30, jnp.float32)
    assert np.all(prox(row.penalty, v, jnp.float32(1e-3)) == 0)


@given(rng=seeds, step=steps, gamma=steps)
def test_mcp_is_a_hard_threshold_from_step_gamma_on(rng, step, gamma):
    v = draw(rng)
    for factor in (1.0, 1 + step):
        kept = np.abs(v) > np.sqrt(factor) * gamma
        assert np.array_equal(prox(MCP(1.0, gamma), v, factor * gamma), np.where(kept, v, 0.0))


@given(rng=seeds, step=steps)
def test_skglm_agrees(rng, step):
    v = draw(rng)
    each = np.vectorize
    assert np.allclose(prox(L1(0.7), v, step), each(SkglmL1(0.7).prox_1d)(v, step, 0), rtol=1e-12)
    assert np.allclose(value(L1(0.7), v), SkglmL1(0.7).value(v.ravel()), rtol=1e-12)
    gamma = 1.01 * step
    assert np.allclose(prox(MCP(0.7, gamma), v, step), each(prox_MCP)(v, step, 0.7, gamma), rtol=1e-9)
    blocks = np.stack([BST(row, 0.7 * step) for row in v])
    assert np.allclose(prox(GroupL2(0.7, "unit"), v, step), blocks, rtol=1e-12)
