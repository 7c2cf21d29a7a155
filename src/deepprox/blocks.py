"""Blocks: the maps between two splits, linear in their weights and affine in what they read."""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.activities import Activity
from deepprox.links import Identity, Link
from deepprox.penalties import Number, Penalty, Zero
from deepprox.struct import static, struct


@struct
class Dense:
    """``z = W [1; reads]``: the bias is column 0 of ``W``, a row is a unit."""

    size: int = static()
    link: Link = Identity()
    penalty: Penalty = Zero()
    penalize_bias: bool = static(default=False)
    activity: Activity | None = None

    def acts(self, z: Array, reads: Array) -> Array:
        """What the activity is charged for.

        Its charge may have a kink at zero. What is exactly there has no slope if it can go either way: a
        silent unit stays silent. What is never negative has that of the right side.
        """
        assert self.activity is not None
        A, signed = (z, True) if self.activity.on == "z" else (reads, self._goes_both_ways())
        return jnp.where((A == 0) & signed, lax.stop_gradient(A), A)

    def _goes_both_ways(self) -> Array | bool:
        """Whether what is read of a unit may be negative."""
        return self.link.elementwise and self.link(-jnp.ones(())) < 0

    def init(self, rng: np.random.Generator, n_in: int) -> np.ndarray:
        """Glorot's uniform start, biases included, times the link's gain."""
        bound = self.link.gain * math.sqrt(6 / (n_in + self.size))
        return rng.uniform(-bound, bound, (self.size, 1 + n_in))

    def features(self, reads: Array) -> Array:
        """``F = [1, reads]``: ``z = F W'``."""
        return jnp.concatenate([jnp.ones_like(reads[:, :1]), reads], axis=1)

    def linear(self, W: Array, reads: Array) -> Array:
        """``z = W [1; reads]`` of every observation."""
        return reads @ W[:, 1:].T + W[:, 0]

    def value(self, W: Array) -> Array:
        """The penalty at ``W``, with or without its bias column."""
        return self.penalty.value(W if self.penalize_bias else W[:, 1:])

    def prox(self, V: Array, step: Number) -> Array:
        """The prox of that penalty; a free bias stays where it is."""
        if self.penalize_bias:
            return self.penalty.prox(V, step)
        return jnp.concatenate([V[:, :1], self.penalty.prox(V[:, 1:], step)], axis=1)
