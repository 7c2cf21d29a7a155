"""What the laws share: wide draws of one shape, and a minimiser that cannot be fooled by a local minimum."""

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
steps = st.floats(-3, 3).map(lambda exponent: 10.0**exponent)


def wide(rng, shape, zeros=0.0):
    """Signed numbers from 1e-3 to 1e3 in size, a share of them exactly zero."""
    size = 10 ** rng.uniform(-3, 3, shape)
    return np.where(rng.random(shape) < zeros, 0.0, rng.choice([-1.0, 1.0], shape) * size)


def scalar_minimum(f, low, high, candidates, points=801, rounds=5):
    """Entry-wise ``argmin f`` over a grid on ``[low, high]``, refined, and over ``candidates``.

    ``f`` maps an array of shape (m, *entries) to one of the same shape; ties go to the first candidate.
    """
    unit = jnp.linspace(0, 1, points).reshape(-1, *[1] * low.ndim)

    def refined(_, around):
        low, high, best = around
        t = jnp.concatenate([candidates, best[None], low + (high - low) * unit])
        best = jnp.take_along_axis(t, jnp.argmin(f(t), axis=0)[None], axis=0)[0]
        spacing = (high - low) / (points - 1)
        return best - spacing, best + spacing, best

    return lax.fori_loop(0, rounds, refined, (low, high, candidates[0]))[2]
