"""Damped Newton descent of many small problems side by side."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax


def descend(
    merit: Callable[[Array], Array],
    propose: Callable[[Array, Array], Array],
    start: Array,
    steps: int,
) -> Array:
    """Lower ``merit`` in every problem by ``steps`` proposals ``propose(x, damping)``.

    ``merit`` maps the stacked unknowns to one number for each problem, in a shape that broadcasts
    against them. A proposal that does not lower a problem's merit is refused there and its
    damping raised, so no problem ever ends above its start by more than rounding. A difference
    within rounding, or a step too short to show in the merit, counts as lower: near a solution the
    step knows better than the merit.
    """
    eps = float(jnp.finfo(start.dtype).eps)

    def step(_: int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, value, damping = carry
        trial = propose(x, damping)
        trial_value = merit(trial)
        short = jnp.abs(trial - x) <= eps**0.5 * (1 + jnp.abs(x))
        if value.shape != x.shape:
            short = short.all(-1, keepdims=True)
        better = (trial_value <= value + 4 * eps * jnp.abs(value)) | short
        damping = jnp.where(better, damping / 4, 4 * damping + 1)
        return jnp.where(better, trial, x), jnp.where(better, trial_value, value), damping

    value = merit(start)
    x, _, _ = lax.fori_loop(0, steps, step, (start, value, jnp.zeros_like(value)))
    return x
