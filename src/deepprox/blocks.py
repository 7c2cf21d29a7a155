"""Blocks: the maps between two splits, linear in their weights and affine in what they read."""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.activities import Activity
from deepprox.checks import shown
from deepprox.links import Identity, Link
from deepprox.penalties import Number, Penalty, Zero
from deepprox.struct import static, struct


@struct
class Dense:
    """``z = W [1; reads]``: the bias is column 0 of ``W``, a row is a unit.

    Without a ``bias`` that column is zero, and no weights of the block. It ``reads`` the activations of the
    block before, or these and then the inputs; the first block reads the inputs.
    """

    size: int = static()
    link: Link = Identity()
    penalty: Penalty = Zero()
    penalize_bias: bool = static(default=False)
    activity: Activity | None = None
    bias: bool = static(default=True)
    reads: tuple[str, ...] = static(default=("before",))

    def __post_init__(self) -> None:
        if self.reads not in (("before",), ("before", "inputs")):
            raise ValueError(
                f"A block reads ('before',) or ('before', 'inputs'), the activations of the block before and "
                f"the inputs; got reads={shown(self.reads)}."
            )

    @property
    def first(self) -> int:
        """The first column that the penalty is for: 0 if it is for biases too."""
        return int(not (self.bias and self.penalize_bias))

    @property
    def free_bias(self) -> bool:
        """Whether a bias may be any number and costs nothing."""
        return self.bias and not self.penalize_bias

    @property
    def rests(self) -> bool:
        """Whether a unit without weights is charged nothing for what it does."""
        charged = self.activity is not None and self.activity.on == "reads"
        return not charged or not self.link.elementwise or float(self.link(jnp.zeros(()))) == 0

    def own(self, W: np.ndarray) -> np.ndarray:
        """The weights that there are."""
        return W if self.bias else W[:, 1:]

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
        W = rng.uniform(-bound, bound, (self.size, 1 + n_in))
        W[:, 0] *= self.bias
        return W

    def features(self, reads: Array) -> Array:
        """``F = [1, reads]``: ``z = F W'``."""
        return jnp.concatenate([jnp.ones_like(reads[:, :1]), reads], axis=1)

    def linear(self, W: Array, reads: Array) -> Array:
        """``z = W [1; reads]`` of every observation."""
        return reads @ W[:, 1:].T + W[:, 0]

    def value(self, W: Array) -> Array:
        """The penalty at ``W``, with or without its bias column; infinite with a bias that there is not."""
        value = self.penalty.value(W[:, self.first :])
        return value if self.bias else jnp.where((W[:, 0] == 0).all(), value, jnp.inf)

    def prox(self, V: Array, step: Number) -> Array:
        """The prox of that penalty; a free bias stays where it is."""
        left = V[:, : self.first] if self.bias else jnp.zeros_like(V[:, :1])
        return jnp.concatenate([left, self.penalty.prox(V[:, self.first :], step)], axis=1)
