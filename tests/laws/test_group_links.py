"""Laws of a link of groups: its formula, its width, and a pull that descends to the lowest it can find."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize

from deepprox.links import LogSumExp, LpNorm, MaxAbs, ReLU, Softmax
from numerics import seeds, wide
from rows import GROUP_LINKS

N, SIZE = 12, 6
every = pytest.mark.parametrize("row", GROUP_LINKS, ids=str)
call = jax.jit(lambda link, z: link(z))
slopes = jax.jit(jax.grad(lambda z, link: link(z).sum()))
pull = jax.jit(lambda link, c, q, kappa, z, steps: link.pull(c, q, kappa, z, steps))


def draw(row, rng):
    """``c, q, kappa, z`` of ordinary sizes, with strengths from 1e-2 to 1e2."""
    width = row.link.width(SIZE)
    c, z = rng.normal(0, 2, (2, N, SIZE))
    return c, rng.normal(0, 2, (N, width)), 10 ** rng.uniform(-2, 2, (N, width)), z


@jax.jit
def merit(link, c, q, kappa, z):
    """What ``pull`` lowers, of every observation."""
    return ((z - c) ** 2).sum(-1) / 2 + (kappa * (link(z) - q) ** 2).sum(-1) / 2


@every
@given(rng=seeds)
def test_value_is_the_formula(row, rng):
    z = wide(rng, (N, SIZE), zeros=0.1)
    groups = 1 if row.all_units else SIZE // row.link.group
    expected = row.formula(z.reshape(N, groups, -1)).reshape(N, -1)
    assert call(row.link, z).shape == (N, row.link.width(SIZE)) == expected.shape
    assert np.allclose(call(row.link, z), expected, rtol=1e-12, atol=1e-12)


@every
def test_derivatives_are_finite_everywhere(row):
    z = np.zeros((4, SIZE))
    z[1], z[2, 0], z[3] = 1.0, 3.0, 1e150
    assert np.all(np.isfinite(slopes(z, row.link)))


@every
@pytest.mark.parametrize("steps", [1, 4])
@given(rng=seeds)
def test_pull_never_ends_above_its_start(row, steps, rng):
    c, q, kappa, z = draw(row, rng)
    ended = merit(row.link, c, q, kappa, pull(row.link, c, q, kappa, z, steps))
    assert np.all(ended <= merit(row.link, c, q, kappa, z) * (1 + 1e-13))


@pytest.mark.parametrize("row", [row for row in GROUP_LINKS if row.closed], ids=str)
def test_closed_pull_is_the_global_minimiser(row):
    c, q, kappa, z = draw(row, np.random.default_rng(0))
    end = np.asarray(pull(row.link, c, q, kappa, z, 0))
    reached = np.asarray(merit(row.link, c, q, kappa, end))
    for i in range(N):

        def f(u, i=i):  # in NumPy: it is called thousands of times
            apart = row.formula(u.reshape(len(q[i]), -1)) - q[i]
            return ((u - c[i]) ** 2).sum() / 2 + (kappa[i] * apart**2).sum() / 2

        found = min(minimize(f, start, method="Nelder-Mead").fun for start in (c[i], z[i], end[i] + 0.1))
        assert reached[i] <= found * (1 + 1e-10)


@pytest.mark.parametrize("row", [row for row in GROUP_LINKS if not row.closed and not row.kinked], ids=str)
@given(rng=seeds)
def test_many_steps_reach_a_local_minimum(row, rng):
    c, q, kappa, z = draw(row, rng)
    end = np.asarray(pull(row.link, c, q, kappa, z, 300))
    reached = np.asarray(merit(row.link, c, q, kappa, end))
    for size in (1e-2, 1e-3, 1e-4):
        nearby = end + size * rng.standard_normal((20, *end.shape))
        lowest = np.min([merit(row.link, c, q, kappa, z) for z in nearby], axis=0)
        assert np.all(reached <= lowest * (1 + 1e-4) + 1e-6)  # Gauss-Newton is linear


@every
@given(rng=seeds)
def test_float32(row, rng):
    single = tuple(jnp.asarray(a, jnp.float32) for a in draw(row, rng))
    end = pull(row.link, *single, 4)
    assert end.dtype == call(row.link, end).dtype == jnp.float32
    assert np.all(merit(row.link, *single[:3], end) <= merit(row.link, *single) * (1 + 1e-5))


@given(rng=seeds)
def test_identities_between_links(rng):
    a, b = wide(rng, (2, N), zeros=0.1)
    pooled = call(MaxAbs(2), np.stack([a, b], axis=1))[:, 0]
    # rounding of the difference is all that separates the two sides of the table's identity
    assert np.allclose(pooled, call(ReLU(), np.abs(a) - np.abs(b)) + np.abs(b), rtol=1e-12)
    z = rng.normal(size=(N, SIZE))
    assert np.allclose(slopes(z, LogSumExp(SIZE)), call(Softmax(), z), rtol=1e-12)
    assert np.allclose(call(LpNorm(60.0, 2), z), call(MaxAbs(2), z), rtol=0.02)


def test_a_group_that_does_not_divide_the_width_is_told():
    for link, said in [
        (MaxAbs(4), "groups of 4 units, which does not divide a width of 6: choose a width of 4 or 8"),
        (MaxAbs(9), "does not divide a width of 6: choose a width of 9, or a group that divides 6"),
        (MaxAbs(-2), r"MaxAbs\(group=-2\) needs a group of a whole number of units, or 0"),
        (Softmax(1.5), "needs a group of a whole number of units, or 0"),
    ]:
        with pytest.raises(ValueError, match=said):
            link(np.zeros((2, SIZE)))


@given(rng=seeds)
def test_high_powers_tend_to_the_largest(rng):
    z = rng.normal(size=(N, SIZE))
    for p in (1e4, 1e8, LpNorm.largest):
        for dtype in (np.float64, np.float32):
            some = z.astype(dtype)
            assert np.allclose(
                call(LpNorm(p, 3), some), call(MaxAbs(3), some), rtol=2 / p + np.finfo(dtype).eps
            )
        assert np.allclose(slopes(z, LpNorm(p, 3)), slopes(z, MaxAbs(3)), atol=1e-3)


@pytest.mark.parametrize("p", [0.5, np.inf, -np.inf, np.nan, 1e16, "2", None, 1 + 1j, [2.0]], ids=str)
def test_a_power_that_no_norm_has_is_told(p):
    with pytest.raises(ValueError, match=r"LpNorm needs p of at least 1 and at most 1e.15, got p=.*MaxAbs"):
        LpNorm(p)
