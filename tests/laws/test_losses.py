"""Laws of a loss: its formula, its mean, and a prox that descends and reaches the minimiser."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from deepprox.losses import Loss, Softmax
from numerics import seeds, wide
from rows import LOSSES

SHAPE = (12, 3)
every = pytest.mark.parametrize("row", LOSSES, ids=str)
smooth = [row for row in LOSSES if row.loss.smooth]
steps = st.floats(-3, 4).map(lambda exponent: 10.0**exponent)

value = jax.jit(lambda loss, eta, y: loss.value(eta, y))
gradient = jax.jit(jax.grad(lambda eta, loss, y: loss.value(eta, y).sum()))
mean = jax.jit(lambda loss, eta: loss.mean(eta))
prox = jax.jit(lambda loss, v, y, step, eta, steps: loss.prox(v, y, step, eta, steps))
default_prox = jax.jit(Loss.prox)


def draw(row, rng):
    """``v, y, eta``: half of the observations of ordinary size, half from 1e-3 to 1e3."""
    ordinary = rng.random((SHAPE[0], 1)) < 0.5
    v, eta = (np.where(ordinary, rng.normal(0, 3, SHAPE), wide(rng, SHAPE)) for _ in range(2))
    return v, row.response(rng, SHAPE), eta


@jax.jit
def objective(loss, eta, v, y, step):
    """What the prox minimises, in every observation."""
    return loss.value(eta, y) + ((eta - v) ** 2).sum(1) / (2 * step)


def objective_of_one(loss, v, y, step, eta):
    return float(objective(loss, eta[None], v[None], y[None], step)[0])


@jax.jit
def gap(loss, eta, v, y, step):
    """A bound on the objective left to gain: it is 1/step strongly convex."""
    slope = jax.grad(lambda eta: objective(loss, eta, v, y, step).sum())(eta)
    return step / 2 * (slope**2).sum(1)


@every
@given(rng=seeds)
def test_it_sees_differences_alone_if_it_says_so(row, rng):
    y, eta = row.response(rng, SHAPE), rng.normal(0, 2, SHAPE)
    here, there = (np.asarray(value(row.loss, at, y)) for at in (eta, eta + 1.5))
    assert np.allclose(here, there, rtol=1e-9, atol=1e-9) == row.loss.differences


@every
@given(rng=seeds)
def test_convex_if_it_says_so(row, rng):
    _, y, eta = draw(row, rng)
    other = eta[rng.permutation(len(eta))]
    ends, middle = (value(row.loss, at, y) for at in (np.stack([eta, other]), (eta + other) / 2))
    ends = np.asarray(ends).mean(0)
    assert row.loss.convex
    assert np.all(middle <= ends + 1e-9 * np.abs(ends) + 1e-12)


@every
@given(rng=seeds)
def test_value_is_the_formula(row, rng):
    _, y, eta = draw(row, rng)
    near, digits = np.clip(eta, -row.reach, row.reach), 1e-12 if row.reach == np.inf else 1e-9
    assert np.allclose(value(row.loss, near, y), row.formula(near, y), rtol=digits, atol=digits)
    assert np.all(np.isfinite(value(row.loss, 1e100 * eta, y)))
    assert np.all(row.loss.takes(y)) and not np.any(row.loss.takes(np.full(2, np.nan)))


@pytest.mark.parametrize("row", [row for row in LOSSES if row.metric], ids=str)
@given(rng=seeds)
def test_metric_of_the_mean(row, rng):
    y, eta = row.response(rng, SHAPE), rng.normal(0, 3, SHAPE)
    assert np.isclose(
        value(row.loss, eta, y).mean(), row.metric(y, np.asarray(mean(row.loss, eta))), rtol=1e-9
    )


@every
@given(rng=seeds)
def test_gradient_is_that_of_finite_differences(row, rng):
    y, eta = row.response(rng, SHAPE), rng.normal(0, 3, SHAPE)
    for k in range(SHAPE[1]):
        h = 1e-5 * np.eye(SHAPE[1])[k]
        low, high = (gradient(eta + side * h, row.loss, y)[:, k] for side in (-1, 1))
        difference = (value(row.loss, eta + h, y) - value(row.loss, eta - h, y)) / 2e-5
        slack = 1e-8 * (1 + np.abs(value(row.loss, eta, y)))
        # between the slopes on both sides, which differ where the loss bends
        assert np.all((low - slack <= difference) & (difference <= high + slack))


@pytest.mark.parametrize("row", [row for row in LOSSES if row.canonical], ids=str)
@given(rng=seeds)
def test_gradient_is_mean_less_response(row, rng):
    """The inverse link is canonical."""
    _, y, eta = draw(row, rng)
    assert np.allclose(gradient(eta, row.loss, y), mean(row.loss, eta) - y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "row", [row for row in LOSSES if type(row.loss).inverse_mean is not Loss.inverse_mean], ids=str
)
@given(rng=seeds)
def test_inverse_mean_inverts_the_mean(row, rng):
    mu = mean(row.loss, rng.normal(0, 3, SHAPE))
    assert np.allclose(mean(row.loss, row.loss.inverse_mean(mu)), mu, rtol=1e-12)


@given(rng=seeds)
def test_softmax_does_not_see_a_shift(rng):
    _, y, eta = draw(next(row for row in LOSSES if row.loss == Softmax()), rng)
    shifted = eta + wide(rng, (SHAPE[0], 1))
    assert np.allclose(value(Softmax(), eta, y), value(Softmax(), shifted, y), rtol=1e-12, atol=1e-11)
    assert np.allclose(mean(Softmax(), eta), mean(Softmax(), shifted), rtol=1e-10, atol=1e-12)


@every
@given(rng=seeds, step=steps)
def test_four_steps_never_end_above_their_start(row, rng, step):
    v, y, eta = draw(row, rng)
    ended = objective(row.loss, prox(row.loss, v, y, step, eta, 4), v, y, step)
    assert np.all(ended <= objective(row.loss, eta, v, y, step) * (1 + 1e-12))


@pytest.mark.parametrize("row", smooth, ids=str)
@given(rng=seeds, step=steps)
def test_many_steps_reach_the_minimiser(row, rng, step):
    v, y, eta = draw(row, rng)
    end = prox(row.loss, v, y, step, eta, 100)
    assert np.all(
        gap(row.loss, end, v, y, step) <= 1e-10 * (1 + np.abs(objective(row.loss, end, v, y, step)))
    )


@every
@given(rng=seeds, step=steps)
def test_the_prox_is_below_every_other_point_by_the_squared_distance(row, rng, step):
    """Three points: what a prox is, at kinks too."""
    v, y, eta = draw(row, rng)
    end = prox(row.loss, v, y, step, eta, 1 if row.exact else 100)
    least = objective(row.loss, end, v, y, step)
    for other in (eta, v, end + wide(rng, SHAPE), end + 1e-3 * rng.standard_normal(SHAPE)):
        there = objective(row.loss, other, v, y, step)
        apart = ((other - end) ** 2).sum(1) / (2 * step)
        assert np.all(least + apart <= there + 1e-10 * (1 + np.abs(there)))


@pytest.mark.parametrize("row", [row for row in LOSSES if row.default], ids=str)
@pytest.mark.parametrize("count", [1, 100])
@given(rng=seeds, step=steps)
def test_default_prox_takes_the_same_steps(row, count, rng, step):
    v, y, eta = draw(row, rng)
    end = default_prox(row.loss, v, y, step, eta, steps=count)
    assert np.allclose(end, prox(row.loss, v, y, step, eta, count), rtol=1e-7, atol=1e-8 * (1 + step))


@pytest.mark.parametrize("row", smooth, ids=str)
@given(rng=seeds, step=steps)
def test_default_prox_stays_at_the_prox(row, rng, step):
    v, y, eta = draw(row, rng)
    end = prox(row.loss, v, y, step, eta, 100)
    assert np.allclose(
        default_prox(row.loss, v, y, step, end, steps=4), end, rtol=1e-7, atol=1e-8 * (1 + step)
    )


@every
@pytest.mark.parametrize("step", [1e-3, 1.0, 1e4])
def test_scipy_agrees(row, step):
    v, y, eta = draw(row, np.random.default_rng(0))
    end = np.asarray(prox(row.loss, v, y, step, eta, 100))
    for one_end, one_v, one_y in zip(end[:3], v, y):
        f = partial(objective_of_one, row.loss, one_v, one_y, step)
        start = np.clip(one_v, -30, 30)  # where no exponential makes a cliff
        best = minimize(f, start, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
        assert f(one_end) <= best.fun + 1e-10 * (1 + abs(best.fun))


@every
@given(rng=seeds, step=steps)
def test_float32(row, rng, step):
    v, y, eta = (jnp.asarray(a, jnp.float32) for a in draw(row, rng))
    end = prox(row.loss, v, y, jnp.float32(step), eta, 100)
    assert end.dtype == value(row.loss, eta, y).dtype == mean(row.loss, eta).dtype == jnp.float32
    double = tuple(a.astype(float) for a in (v, y))
    best = objective(row.loss, prox(row.loss, *double, step, v.astype(float), 100), *double, step)
    assert np.all(objective(row.loss, end.astype(float), *double, step) <= best + 1e-4 * (0.1 + np.abs(best)))


@pytest.mark.parametrize("row", [row for row in LOSSES if row.loss.by_formula], ids=str)
@given(rng=seeds)
def test_derivatives_are_those_of_the_value(row, rng):
    eta, y = rng.normal(0, 2, (5, 3)), row.response(rng, (5, 3))
    one = lambda e, t: row.loss.value(e[None], t[None])[0]  # noqa: E731
    slope, bend = row.loss.derivatives(eta, y)
    np.testing.assert_allclose(slope, jax.vmap(jax.grad(one))(eta, y), rtol=1e-9, atol=1e-11)
    full = bend if bend.ndim == 3 else bend[:, :, None] * np.eye(3)
    np.testing.assert_allclose(full, jax.vmap(jax.hessian(one))(eta, y), rtol=1e-9, atol=1e-11)
    assert not row.loss.quadratic or (bend == 1).all()
