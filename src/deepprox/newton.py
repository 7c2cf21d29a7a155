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
    within rounding counts as lower: near a solution the step knows better than the merit.
    """
    rounding = 4 * jnp.finfo(start.dtype).eps

    def step(_: int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, value, damping = carry
        trial = propose(x, damping)
        trial_value = merit(trial)
        better = trial_value <= value + rounding * jnp.abs(value)
        damping = jnp.where(better, damping / 4, 4 * damping + 1)
        return jnp.where(better, trial, x), jnp.where(better, trial_value, value), damping

    value = merit(start)
    x, _, _ = lax.fori_loop(0, steps, step, (start, value, jnp.zeros_like(value)))
    return x
