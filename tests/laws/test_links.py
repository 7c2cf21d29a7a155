"""Laws of a link: its formula, and a pull that descends to a stationary point, or straight to the lowest."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

from deepprox.links import ReLU, Sigmoid, Tanh
from numerics import scalar_minimum, seeds, wide
from rows import LINKS

SHAPE = (40,)
MANY = 1000  # Gauss-Newton is linear, and slow where a minimum is nearly flat
every = pytest.mark.parametrize("row", LINKS, ids=str)
closed = pytest.mark.parametrize("row", [row for row in LINKS if row.closed], ids=str)
searched = pytest.mark.parametrize("row", [row for row in LINKS if not row.closed], ids=str)

call = jax.jit(lambda link, z: link(z))
pull = jax.jit(lambda link, c, q, kappa, z, steps: link.pull(c, q, kappa, z, steps))


def draw(rng):
    """``c, q, kappa, z``: half of the entries of ordinary size, half from 1e-3 to 1e3."""
    c, q, z = np.where(rng.random((3, *SHAPE)) < 0.5, rng.normal(0, 3, (3, *SHAPE)), wide(rng, (3, *SHAPE)))
    return c, q, np.abs(wide(rng, SHAPE)), z


@jax.jit
def merit(link, c, q, kappa, z):
    """What ``pull`` lowers."""
    return (z - c) ** 2 / 2 + kappa * (link(z) - q) ** 2 / 2


@jax.jit
def newton_length(link, c, q, kappa, z):
    """Length of the Gauss-Newton step that is left at ``z``, relative to it: 0 at a stationary point."""
    steep = jax.vmap(jax.grad(link))(z)
    return jnp.abs(z - c + kappa * (link(z) - q) * steep) / (1 + kappa * steep**2) / (1 + jnp.abs(z))


@jax.jit
def lowest(link, c, q, kappa):
    """The least merit on a grid of every z that could beat ``c``, and of those where links bend."""
    reach = jnp.sqrt(kappa) * jnp.abs(link(c) - q)
    f = partial(merit, link, c, q, kappa)
    bends = jnp.broadcast_to(jnp.linspace(-40, 40, 1601)[:, None], (1601, *c.shape))
    candidates = jnp.concatenate([jnp.stack([0 * c, c]), bends])
    return f(scalar_minimum(f, c - reach, c + reach, candidates))


@jax.jit
def is_convex(link, q, kappa):
    """Whether the merit bends upwards everywhere, read off a grid."""
    pulled = jax.grad(jax.grad(lambda z, q, kappa: kappa * (link(z) - q) ** 2 / 2))
    bend = jax.vmap(jax.vmap(pulled, (None, 0, 0)), (0, None, None))
    return jnp.all(1 + bend(jnp.linspace(-40, 40, 1601), q, kappa) > 0, axis=0)


@every
@given(rng=seeds)
def test_value_is_the_formula(row, rng):
    z = wide(rng, SHAPE, zeros=0.1)
    assert np.allclose(call(row.link, z), row.formula(z), rtol=1e-12, atol=1e-300)


@every
def test_nothing_overflows(row):
    z = np.array([-1e300, -750.0, -0.0, 0.0, 750.0, 1e300])
    slopes = jax.jit(jax.vmap(jax.grad(row.link)))(z)
    assert np.all(np.isfinite(call(row.link, z))) and np.all(np.isfinite(slopes))


@given(rng=seeds)
def test_identities_between_links(rng):
    u = wide(rng, SHAPE, zeros=0.1)
    assert np.array_equal(call(ReLU(), u), (np.abs(u) + u) / 2)
    assert np.allclose(call(Tanh(), u), 2 * call(Sigmoid(), 2 * u) - 1, atol=1e-15)


@every
@pytest.mark.parametrize("steps", [1, 4])
@given(rng=seeds)
def test_pull_never_ends_above_its_start(row, steps, rng):
    c, q, kappa, z = draw(rng)
    ended = merit(row.link, c, q, kappa, pull(row.link, c, q, kappa, z, steps))
    assert np.all(ended <= merit(row.link, c, q, kappa, z) * (1 + 1e-14))


@closed
@given(rng=seeds)
def test_closed_pull_is_the_global_minimiser(row, rng):
    c, q, kappa, z = draw(rng)
    reached = merit(row.link, c, q, kappa, pull(row.link, c, q, kappa, z, 0))
    assert np.all(reached <= lowest(row.link, c, q, kappa) * (1 + 1e-10) + 1e-12)


@searched
@given(rng=seeds)
def test_many_steps_reach_a_stationary_point(row, rng):
    c, q, kappa, z = draw(rng)
    end = pull(row.link, c, q, kappa, z, MANY)
    assert np.all(newton_length(row.link, c, q, kappa, end) <= 1e-7)


@searched
@given(rng=seeds)
def test_convex_pull_is_the_global_minimiser(row, rng):
    c, q, kappa, z = draw(rng)
    convex = np.asarray(is_convex(row.link, q, kappa))
    reached = merit(row.link, c, q, kappa, pull(row.link, c, q, kappa, z, MANY))
    assert convex.any()
    below = reached <= lowest(row.link, c, q, kappa) * (1 + 1e-10) + 1e-12
    assert np.all(np.asarray(below)[convex])


@every
@given(rng=seeds)
def test_float32(row, rng):
    single = tuple(jnp.asarray(a, jnp.float32) for a in draw(rng))
    end = pull(row.link, *single, MANY)
    assert end.dtype == call(row.link, end).dtype == jnp.float32
    c, q, kappa, z = (np.asarray(a, float) for a in single)
    reached = merit(row.link, c, q, kappa, np.asarray(end, float))
    assert np.all(reached <= merit(row.link, c, q, kappa, z) * (1 + 1e-5))
    certain = row.closed | np.asarray(is_convex(row.link, q, kappa))
    below = reached <= lowest(row.link, c, q, kappa) * (1 + 1e-5) + 1e-6
    assert np.all(np.asarray(below)[certain])
