"""The proxes of skglm, pyproximal and proxop: where they agree with ours, and where theirs are not lowest."""

import jax
import numpy as np
import proxop
import pyproximal
import pytest
import skglm.penalties
from hypothesis import given
from hypothesis import strategies as st
from skglm.utils import prox_funcs

from deepprox.penalties import (
    L0,
    L1,
    L2,
    MCP,
    SCAD,
    Box,
    Bridge,
    CappedL1,
    ElasticNet,
    GroupL2,
    LogSum,
    MaxNorm,
    NonNegative,
    Nuclear,
    SparseGroup,
    StudentT,
)
from numerics import seeds, steps, wide

SHAPE = (6, 5)
GAMMA = 1e4  # beyond every step: where the textbook formulas of MCP and SCAD hold
prox = jax.jit(lambda penalty, v, step: penalty.prox(v, step))
value = jax.jit(lambda penalty, w: penalty.value(w))


@jax.jit
def objectives(penalty, w, v, step):
    """What the prox of a separable penalty minimises, for each entry."""
    phi = jax.vmap(penalty.value)(w.reshape(-1, 1, 1)).reshape(w.shape)
    return phi + (w - v) ** 2 / (2 * step)


def each(f):
    """A scalar prox on all entries."""
    return lambda v, step: np.vectorize(lambda x: f(x, step), otypes=[float])(v)


def flat(operator):
    """A prox of one long vector."""
    return lambda v, step: operator.prox(v.ravel(), step).reshape(v.shape)


def transposed(f):
    """Units in the place of inputs."""
    return lambda v, step: f(np.ascontiguousarray(v.T), step).T


def pyproximal_sparse(v, step):
    """pyproximal's sparse group lasso; a group of zeros is divided by its size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return pyproximal.L21_plus_L1(0.7, 0.4).prox(v, step)


def proxop_units(v, step):
    """proxop's max-norm of each unit that stays: where it leaves, proxop's level is below zero."""
    radius = 0.7 * step
    stays = np.abs(v).sum(1) > radius
    return np.stack([proxop.Linf().prox(row, radius) if s else 0 * row for row, s in zip(v, stays)])


def skglm_sparse_unit(v, step):
    """skglm's sparse group lasso with every unit a group."""
    columns, ends = np.arange(30, dtype=np.int32), np.arange(0, 31, 5, dtype=np.int32)
    theirs = skglm.penalties.WeightedL1GroupL2(0.7, np.full(6, 0.6), np.full(30, 0.4), ends, columns)
    return np.stack([theirs.prox_1group(row, step, g) for g, row in enumerate(v)])


AGREE = {
    "L1, skglm": (L1(0.7), each(lambda x, step: skglm.penalties.L1(0.7).prox_1d(x, step, 0))),
    "L1, pyproximal": (L1(0.7), flat(pyproximal.L1(0.7))),
    "weighted L1, skglm": (
        L1(np.arange(5) / 2),
        lambda v, step: np.stack([prox_funcs.ST_vec(row, np.arange(5) / 2 * step) for row in v]),
    ),
    "L2, pyproximal": (L2(0.7), flat(pyproximal.L2(sigma=0.7))),
    "ElasticNet, skglm": (
        ElasticNet(0.7, 0.4),
        each(lambda x, step: skglm.penalties.L1_plus_L2(0.7, 0.4).prox_1d(x, step, 0)),
    ),
    "L0, proxop": (L0(0.7), lambda v, step: proxop.L0Norm().prox(v, 0.7 * step)),
    "MCP, skglm": (MCP(0.7, GAMMA), each(lambda x, step: prox_funcs.prox_MCP(x, step, 0.7, GAMMA))),
    "MCP, proxop": (MCP(0.7, 3.0), lambda v, step: proxop.MCP(0.7, 3.0).prox(v, step)),
    "SCAD, skglm": (SCAD(0.7, 3.7), each(lambda x, step: prox_funcs.prox_SCAD(x, step, 0.7, 3.7))),
    "SCAD, pyproximal": (SCAD(0.7, GAMMA), flat(pyproximal.SCAD(0.7, GAMMA))),
    "SCAD, proxop": (SCAD(0.7, GAMMA), lambda v, step: proxop.SCAD(0.7, GAMMA).prox(v, step)),
    "Bridge 1/2, skglm": (Bridge(0.7), each(lambda x, step: prox_funcs.prox_05(x, 0.7 * step))),
    "LogSum, pyproximal": (LogSum(0.7 / np.log(3), 0.5), flat(pyproximal.Log(0.7, 2.0))),
    "StudentT, proxop": (StudentT(0.7, 2.0, 0.5), lambda v, step: proxop.Cauchy(0.5).prox(v, 0.7 * step)),
    "units, skglm": (
        GroupL2(0.7, "unit"),
        lambda v, step: np.stack([prox_funcs.BST(row, 0.7 * step) for row in v]),
    ),
    "inputs, pyproximal": (GroupL2(0.7, "input"), flat(pyproximal.L21(6, 0.7))),
    "sparse inputs, pyproximal": (SparseGroup(0.7, 0.4, "input"), pyproximal_sparse),
    "sparse units, pyproximal": (SparseGroup(0.7, 0.4, "unit"), transposed(pyproximal_sparse)),
    "sparse units, skglm": (SparseGroup(0.7, 0.4, "unit"), skglm_sparse_unit),
    "MaxNorm, proxop": (MaxNorm(0.7), proxop_units),
    "Nuclear, pyproximal": (Nuclear(0.7), flat(pyproximal.Nuclear(SHAPE, 0.7))),
    "NonNegative, skglm": (
        NonNegative(),
        each(lambda x, step: skglm.penalties.PositiveConstraint().prox_1d(x, step, 0)),
    ),
    "Box, skglm": (
        Box(0.0, 2.0),
        each(lambda x, step: skglm.penalties.IndicatorBox(2.0).prox_1d(x, step, 0)),
    ),
    "Box, pyproximal": (Box(-0.5, 2.0), flat(pyproximal.Box(-0.5, 2.0))),
}


@pytest.mark.parametrize("ours, theirs", AGREE.values(), ids=AGREE)
@given(rng=seeds, step=steps)
def test_theirs_is_ours(ours, theirs, rng, step):
    v = wide(rng, SHAPE)
    assert np.allclose(prox(ours, v, step), theirs(v.copy(), step), rtol=1e-9, atol=1e-12 * np.abs(v).max())


VALUES = [
    (L1(0.7), lambda w: skglm.penalties.L1(0.7).value(w.ravel())),
    (ElasticNet(0.7, 0.4), lambda w: skglm.penalties.L1_plus_L2(0.7, 0.4).value(w.ravel())),
    (MCP(0.7, 3.0), lambda w: prox_funcs.value_MCP(w.ravel(), 0.7, 3.0)),
    (SCAD(0.7, 3.7), lambda w: prox_funcs.value_SCAD(w.ravel(), 0.7, 3.7)),
    (Bridge(0.7), lambda w: skglm.penalties.L0_5(0.7).value(w.ravel())),
    (Bridge(0.7, 2 / 3), lambda w: skglm.penalties.L2_3(0.7).value(w.ravel())),
    (LogSum(0.7, 0.5), lambda w: skglm.penalties.LogSumPenalty(0.7, 0.5).value(w.ravel())),
    (CappedL1(0.5, 2.0), lambda w: proxop.CapL1(0.5)(w)),
    (GroupL2(0.7, "unit"), lambda w: skglm.penalties.L2_1(0.7).value(w)),
    (GroupL2(0.7, "input"), lambda w: pyproximal.L21(6, 0.7)(w.ravel())),
    (SparseGroup(0.7, 0.4), pyproximal.L21_plus_L1(0.7, 0.4)),
    (MaxNorm(0.7), lambda w: 0.7 * proxop.Linf(axis=1)(w)),
    (Nuclear(0.7), lambda w: pyproximal.Nuclear(SHAPE, 0.7)(w.ravel())),
    (NonNegative(), lambda w: skglm.penalties.PositiveConstraint().value(w.ravel())),
    (Box(0.0, 2.0), lambda w: skglm.penalties.IndicatorBox(2.0).value(w.ravel())),
]


@pytest.mark.parametrize("ours, theirs", VALUES, ids=lambda side: type(side).__name__)
@given(rng=seeds)
def test_values_are_theirs(ours, theirs, rng):
    for w in (wide(rng, SHAPE), np.abs(wide(rng, SHAPE)), np.minimum(np.abs(wide(rng, SHAPE)), 1.0)):
        assert np.isclose(value(ours, w), theirs(w), rtol=1e-7)


DIFFER = {
    # the formula of step < gamma: from there on it leaves a local maximum, or misses zero
    "MCP, skglm": (MCP(0.7, 3.0), each(lambda x, step: prox_funcs.prox_MCP(x, step, 0.7, 3.0)), 30.0),
    "SCAD, pyproximal": (SCAD(0.7, 3.7), flat(pyproximal.SCAD(0.7, 3.7)), 30.0),
    # a hard threshold at a alpha, wherever the step is large enough for zero to win
    "SCAD, proxop": (SCAD(0.7, 3.7), lambda v, step: proxop.SCAD(0.7, 3.7).prox(v, step), 1000.0),
    # the threshold is alpha step, where sqrt(2 alpha step) is the prox
    "L0, pyproximal": (L0(0.7), flat(pyproximal.L0(0.7)), 0.3),
    # 2 where 4 belongs under the root: half of the strength
    "LogSum, pyproximal's Log1": (LogSum(0.7, 0.5), flat(pyproximal.Log1(0.7, 0.5)), 1.0),
    # a sum of the cases' conditions as numbers
    "CappedL1, proxop": (CappedL1(0.5, 2.0), lambda v, step: proxop.CapL1(0.5).prox(v, step), 1.0),
    # Newton's start in the units of x for a root in the units of w / v
    "Bridge, proxop": (Bridge(1.0, 0.3), lambda v, step: proxop.Root(0.3).prox(v, step), 0.01),
}


@pytest.mark.parametrize("ours, theirs, step", DIFFER.values(), ids=DIFFER)
def test_theirs_is_not_the_lowest(ours, theirs, step):
    v = np.random.default_rng(0).choice([-1, 1], SHAPE) * np.geomspace(1e-2, 1e2, 30).reshape(SHAPE)
    mine = objectives(ours, prox(ours, v, step), v, step)
    other = objectives(ours, theirs(v.copy(), step), v, step)
    assert np.all(mine <= other * (1 + 1e-12))
    assert np.any(other > mine * 1.01)


@given(rng=seeds, step=steps)
def test_log_sum_of_skglm_or_lower(rng, step):
    # skglm bisects for the threshold, and takes the root of a rounding error below zero on the way
    v, ours = wide(rng, SHAPE), LogSum(0.7, 0.5)
    with np.errstate(invalid="ignore"):
        theirs = each(lambda x, step: prox_funcs.prox_log_sum(x, 0.7 * step, 0.5))(v, step)
    w = np.asarray(prox(ours, v, step))
    same = (w == 0) == (theirs == 0)
    assert np.allclose(w[same], theirs[same], rtol=1e-9)
    assert np.all(objectives(ours, w, v, step) <= objectives(ours, theirs, v, step) * (1 + 1e-12))


def test_log_sum_of_skglm_may_miss_its_threshold():
    v = np.geomspace(1e-2, 1e2, 3000)[None]
    missed = []
    for step in np.geomspace(0.5, 50, 20):
        with np.errstate(invalid="ignore"):
            theirs = each(lambda x, step: prox_funcs.prox_log_sum(x, 0.7 * step, 0.5))(v, step)
        w = np.asarray(prox(LogSum(0.7, 0.5), v, step))
        mine, other = (objectives(LogSum(0.7, 0.5), u, v, step) for u in (w, theirs))
        assert np.all(mine <= other * (1 + 1e-12))
        missed.append(np.any(other > 1.01 * mine))
    assert any(missed)


def test_max_norm_of_proxop_turns_signs_when_a_unit_leaves():
    v = np.array([[1.0, -2.0]])
    assert np.all(prox(MaxNorm(1.0), v, 5.0) == 0)
    assert np.array_equal(proxop.Linf().prox(v[0], 5.0), [-1.0, 1.0])


@given(rng=seeds, step=steps)
def test_two_thirds_power_without_cancellation(rng, step):
    # skglm takes the difference of two nearly equal numbers to the power 1/3
    v, ours = wide(rng, SHAPE), Bridge(0.7, 2 / 3)
    theirs = each(lambda x, step: prox_funcs.prox_2_3(x, 0.7 * step))(v, step)
    w = np.asarray(prox(ours, v, step))
    told = np.isfinite(theirs)
    assert np.array_equal(w[told] == 0, theirs[told] == 0)
    assert np.allclose(w[told], theirs[told], rtol=1e-4)
    mine, other = objectives(ours, w, v, step), objectives(ours, theirs, v, step)
    assert np.all(mine[told] <= other[told] * (1 + 1e-12))


def test_two_thirds_power_of_skglm_loses_digits():
    v = np.geomspace(1, 1e3, 30).reshape(SHAPE)
    w = np.asarray(prox(Bridge(1.0, 2 / 3), v, 1e-4))
    theirs = each(lambda x, step: prox_funcs.prox_2_3(x, step))(v, 1e-4)
    residual = lambda w: np.abs(w - v + 1e-4 * 2 / 3 * w ** (-1 / 3)) / v  # noqa: E731
    assert residual(w).max() < 1e-15 and not residual(theirs).max() < 1e-9


@given(x=st.floats(0.1, 10), step=steps, q=st.floats(0.02, 0.98))
def test_bridge_thresholds_where_marjanovic_and_solo_do(x, step, q):
    # IEEE Transactions on Signal Processing 60 (2012): beta and h of the l_q prox
    beta = (2 * step * (1 - q)) ** (1 / (2 - q))
    threshold = beta + step * q * beta ** (q - 1)
    around = threshold * np.array([[0.1 * x / 10, 0.999, 1.001, 1 + x]])
    w = np.asarray(prox(Bridge(1.0, q), around, step))[0]
    assert np.array_equal(w != 0, [False, False, True, True])
    assert np.all(w[2:] >= beta * (1 - 1e-9))
    assert np.allclose(w[2:] + step * q * w[2:] ** (q - 1), around[0, 2:], rtol=1e-12)
