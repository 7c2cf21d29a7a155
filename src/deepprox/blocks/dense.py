"""The dense block: one place, at which all numbers are read."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.blocks.contract import Block, Facing
from deepprox.struct import replace, struct


@struct
class Dense(Block):
    """``z = W [1; reads]``: every unit reads every number."""

    by_unit: ClassVar[bool] = True

    def columns(self, n_in: int) -> np.ndarray:
        return np.arange(n_in)[None]

    def shape(self, n_in: int) -> tuple[int, int]:
        return self.size, 1 + n_in

    def numbers(self, n_in: int) -> int:
        return self.size

    def n_read(self, W: Any) -> int:
        return W.shape[-1] - 1

    def norms(self, W: Any) -> Any:
        return (W[:, 1:] ** 2).sum(0) ** 0.5

    def readers(self, W: Any) -> np.ndarray:
        return np.count_nonzero(W[:, 1:], axis=0)

    def used(self, W: Any) -> np.ndarray:
        return np.asarray((W[:, 1:] != 0).any(0))

    def without(self, W: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        out = np.array(W)
        out[:, 1:][:, numbers] = 0
        return out

    def features(self, reads: Array) -> Array:
        """``F = [1, reads]``: ``z = F W'``."""
        return jnp.concatenate([jnp.ones_like(reads[:, :1]), reads], axis=1)

    def linear(self, W: Array, reads: Array) -> Array:
        """``z = W [1; reads]`` of every observation, in NumPy too."""
        return reads @ W[:, 1:].T + W[:, 0]

    def back(self, W: Array, r: Array, n_in: int) -> Array:
        return r @ W[:, 1:]

    def bound(self, W: Array, n_in: int) -> Array:
        """``|A'A| 1``, which is closer."""
        return jnp.abs(W[:, 1:].T @ W[:, 1:]).sum(0)

    def on(self, columns: np.ndarray, n_columns: int) -> "Dense":
        """The block with some columns of its weights alone; a penalty that tells them apart keeps theirs.

        The bias is column 0, and one of them.
        """
        met = columns[self.first :] - self.first

        def cut(leaf: Any) -> Any:
            return leaf[..., met] if np.ndim(leaf) and leaf.shape[-1] == n_columns - self.first else leaf

        return replace(self, penalty=jax.tree.map(cut, self.penalty))

    def facing(self, W: Array, target: Array, n_before: int, inputs: Array | None) -> Facing:
        """By ``A'A``, once for all steps."""
        A, xi = W[:, 1 : 1 + n_before], target - W[:, 0]
        if inputs is not None:
            xi = xi - inputs @ W[:, 1 + n_before :].T
        gram, goal = A.T @ A, xi @ A
        return Facing(jnp.abs(gram).sum(0), lambda a: goal - a @ gram)

    @property
    def shrinks(self) -> bool:
        """Whether it is the same with fewer units: not if units are grouped, or weights told apart."""
        return self.link.elementwise and self.rests and self.penalty.any_shape and not self._told_apart

    @property
    def widens(self) -> bool:
        """Whether zeros beside what it reads change nothing: not if weights are told apart."""
        return self.penalty.any_shape and self.penalty.wide and not self._told_apart

    @property
    def screens(self) -> bool:
        """Whether inputs may leave one by one, and none has a strength of its own."""
        return self.penalty.screens and self.widens

    @property
    def _told_apart(self) -> bool:
        return any(np.ndim(leaf) for leaf in jax.tree.leaves(self.penalty))
