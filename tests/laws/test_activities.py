"""Laws of an activity: its formula, and a majoriser that touches it and never goes below."""

import jax
import numpy as np
import pytest
from hypothesis import given

from deepprox.activities import ActivityGroup, ActivityL1
from numerics import seeds, wide

SHAPE = (9, 4)
ROWS = [
    (ActivityL1(0.7), lambda A, weight: 0.7 * (weight @ np.abs(A)).sum()),
    (ActivityGroup(0.7), lambda A, weight: 0.7 * np.linalg.norm(np.sqrt(weight)[:, None] * A, axis=0).sum()),
]
every = pytest.mark.parametrize(("activity", "formula"), ROWS, ids=["l1", "group"])
value = jax.jit(lambda activity, A, weight: activity.value(A, weight))
curvature = jax.jit(lambda activity, A, weight: activity.curvature(A, weight))
gradient = jax.jit(jax.grad(lambda A, activity, weight: activity.value(A, weight)))


def draw(rng):
    """Two arrays, one of them with a silent unit, and weights that sum to one."""
    A, B = wide(rng, (2, *SHAPE), zeros=0.1)
    A[:, 0] = 0
    weight = rng.random(SHAPE[0])
    return A, B, weight / weight.sum()


@every
@given(rng=seeds)
def test_value_is_the_formula(activity, formula, rng):
    A, _, weight = draw(rng)
    assert np.isclose(value(activity, A, weight), formula(A, weight), rtol=1e-12)


@every
@given(rng=seeds)
def test_the_majoriser_is_never_below(activity, formula, rng):
    A, B, weight = draw(rng)
    k = np.asarray(curvature(activity, A, weight))
    bound = value(activity, A, weight) + (weight[:, None] * k * (B**2 - A**2)).sum() / 2
    assert value(activity, B, weight) <= bound * (1 + 1e-10)


@every
@given(rng=seeds)
def test_the_majoriser_touches(activity, formula, rng):
    A, _, weight = draw(rng)
    k = np.asarray(curvature(activity, A, weight))
    slope = np.asarray(gradient(A, activity, weight))
    assert np.all(np.isfinite(slope))
    assert np.allclose(slope[A != 0], (weight[:, None] * k * A)[A != 0], rtol=1e-10)
