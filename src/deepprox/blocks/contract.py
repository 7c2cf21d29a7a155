"""The contract of a block: a linear map with its link and its penalty.

    z_ip = W [1; f_ip]

``f_ip`` is what is read at place ``p`` of observation ``i``: a dense block has one place and reads everything
there; a filter is a unit that is used at many places. Arrays over observations stay flat: what a block gives
are the numbers of all its places one after the other, its units last.

A new block is one class with ``columns``, a table of which numbers it reads where. All else follows from
that; :class:`~deepprox.blocks.Dense` replaces what it knows a faster way to. Slices of weight matrices are
taken in this folder alone.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.activities import Activity
from deepprox.arrays import as_taken, namespace
from deepprox.checks import shown
from deepprox.links import Identity, Link
from deepprox.penalties import Number, Penalty, Zero
from deepprox.struct import static, struct


class Facing(NamedTuple):
    """``|target - z(a)|^2 / 2`` as a function of activations ``a``: how steep, and the way down.

    ``bound`` is a diagonal above its second derivatives.
    """

    bound: Array
    down: Callable[[Array], Array]


@struct
class Block(ABC):
    """``z = W [1; f]`` at every place: the bias is column 0 of ``W``, a row is a unit.

    Without a ``bias`` that column is zero, and no weights of the block. It ``reads`` the activations of the
    block before, or these and then the inputs; the first block reads the inputs. One that is not dense is
    told how many numbers these are, ``n_in``. The output block is dense.
    """

    size: int = static()
    link: Link = Identity()
    penalty: Penalty = Zero()
    penalize_bias: bool = static(default=False)
    activity: Activity | None = None
    bias: bool = static(default=True)
    reads: tuple[str, ...] = static(default=("before",))
    n_in: int | None = static(default=None)
    by_unit: ClassVar[bool] = False  # whether every number that it gives is a unit, with weights of its own

    def __post_init__(self) -> None:
        if self.reads not in (("before",), ("before", "inputs")):
            raise ValueError(
                f"A block reads ('before',) or ('before', 'inputs'), the activations of the block before and "
                f"the inputs; got reads={shown(self.reads)}."
            )

    # Where it reads

    @abstractmethod
    def columns(self, n_in: int) -> np.ndarray:
        """Which of ``n_in`` numbers meet which column of the weights, at every place; -1 where none does."""

    def shape(self, n_in: int) -> tuple[int, int]:
        """That of the weights."""
        return self.size, 1 + self.columns(n_in).shape[1]

    def numbers(self, n_in: int) -> int:
        """How many numbers it gives: units times places."""
        return self.size * len(self.columns(n_in))

    def by_place(self, each: Any, n_numbers: int) -> Any:
        """Something of every unit as something of every number."""
        return np.tile(each, n_numbers // self.size)

    def by_owner(self, mask: np.ndarray) -> np.ndarray:
        """A mask of numbers as one of the units that give them."""
        return np.any(mask.reshape(-1, self.size), axis=0)

    def n_read(self, W: Any) -> int:
        """How many numbers it reads, given its weights."""
        if self.n_in is None:
            raise ValueError(f"{type(self).__name__} needs n_in, how many numbers it reads.")
        return self.n_in

    # The map and its adjoint

    def features(self, reads: Array) -> Array:
        """``F``: a row ``[1, f]`` for every place of every observation."""
        at = self.columns(reads.shape[1])
        padded = jnp.concatenate([jnp.zeros_like(reads[:, :1]), reads], axis=1)
        F = padded[:, 1 + at].reshape(-1, at.shape[1])
        return jnp.concatenate([jnp.ones_like(F[:, :1]), F], axis=1)

    def linear(self, W: Array, reads: Array) -> Array:
        """``z = F W'`` of every observation, flat."""
        return (self.features(reads) @ W.T).reshape(len(reads), -1)

    def back(self, W: Array, r: Array, n_in: int) -> Array:
        """The adjoint of ``linear`` in what is read."""
        zero, A = jnp.zeros((len(r), n_in), r.dtype), jnp.asarray(W).at[:, 0].set(0)
        return jax.linear_transpose(lambda a: self.linear(A, a), zero)(r)[0]

    def bound(self, W: Array, n_in: int) -> Array:
        """A diagonal above ``A'A``, ``A`` the map from what is read to ``z``: ``|A|'|A| 1``."""
        size = jnp.abs(jnp.asarray(W)).at[:, 0].set(0)
        return self.back(size, self.linear(size, jnp.ones((1, n_in), W.dtype)), n_in)[0]

    def facing(self, W: Array, target: Array, n_before: int, inputs: Array | None) -> Facing:
        """That of the activations that it reads, ``n_before`` numbers, and ``inputs`` beside them, if any."""
        n_in = n_before + (0 if inputs is None else inputs.shape[1])

        def down(a: Array) -> Array:
            reads = a if inputs is None else jnp.concatenate([a, inputs], axis=1)
            return self.back(W, target - self.linear(W, reads), n_in)[:, :n_before]

        return Facing(self.bound(W, n_in)[:n_before], down)

    # Its weights

    @property
    def free_bias(self) -> bool:
        """Whether a bias may be any number and costs nothing."""
        return self.bias and not self.penalize_bias

    @property
    def first(self) -> int:
        """The first column that the penalty is for: 0 if it is for biases too."""
        return int(not (self.bias and self.penalize_bias))

    @staticmethod
    def biases(W: Any) -> Any:
        """The biases of the units: on the host a view."""
        return W[..., 0]

    @staticmethod
    def slopes(W: Any) -> Any:
        """All other weights: on the host a view."""
        return W[..., 1:]

    def own(self, W: np.ndarray) -> np.ndarray:
        """The weights that there are."""
        return W if self.bias else self.slopes(W)

    def raised(self, W: Array, by: Array) -> Array:
        """The weights with other biases, in a program."""
        return W.at[:, 0].add(by)

    @staticmethod
    def reading(W: Any) -> np.ndarray:
        """Mask of the units that read something."""
        return (np.asarray(W)[:, 1:] != 0).any(1)

    @property
    def widens(self) -> bool:
        """Whether more numbers to read change nothing where they are zero, so that a solve may add some."""
        return False

    @property
    def screens(self) -> bool:
        """Whether most of what it reads may leave, number by number, as its prox says of each."""
        return False

    def fitted(self, W: Any, n_in: int) -> np.ndarray:
        """The weights for ``n_in`` numbers, of which some come or go at the end: zeros, or left out."""
        n_columns = self.shape(n_in)[1]
        out = np.asarray(W)[..., :n_columns]
        return np.pad(out, [(0, 0)] * (out.ndim - 1) + [(0, n_columns - out.shape[-1])])

    @property
    def shrinks(self) -> bool:
        """Whether it is the same with fewer units, so that a smaller problem may leave some out."""
        return False

    def grid(self, units: np.ndarray, numbers: np.ndarray, n_in: int) -> tuple[np.ndarray, ...]:
        """Where the weights of some units for some of the numbers read are, with their biases."""
        met = np.isin(self.columns(n_in), numbers).any(0)
        return np.ix_(units, np.concatenate([[0], 1 + np.flatnonzero(met)]))

    def norms(self, W: Any) -> np.ndarray:
        """The Euclidean norm of the weights for every number that is read."""
        return np.linalg.norm(self._for_each(W), axis=(1, 2))

    def readers(self, W: Any) -> np.ndarray:
        """How many units read every number."""
        return (self._for_each(W) != 0).any(2).sum(1)

    def _for_each(self, W: Any) -> np.ndarray:
        n_in = self.n_read(W)
        met = (self.columns(n_in) == np.arange(n_in)[:, None, None]).any(1)
        return met[:, None] * np.asarray(self.slopes(W))

    def used(self, W: Any) -> np.ndarray:
        """Mask of the numbers that are read through weights that are not zero."""
        n_in = self.n_read(W)
        at, out = self.columns(n_in), np.zeros(1 + n_in, bool)
        out[1 + at[:, (np.asarray(self.slopes(W)) != 0).any(0)]] = True
        return out[1:]

    def without(self, W: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The weights with zeros where nothing but those numbers, a mask, is read."""
        out = np.array(W)
        self.slopes(out)[:, self._met(out, numbers, True).all(0)] = 0
        return out

    def reading_of(self, W: Array, numbers: Any) -> Array:
        """The same with a mask in a program."""
        met = jnp.insert(numbers, 0, False)[1 + self.columns(self.n_read(W))].any(0)
        return jnp.where(jnp.insert(met, 0, True), W, 0.0)

    def large(self, W: Array, least: Array) -> Array:
        """Mask of the weights of at least this size; a free bias is among them where its unit reads some."""
        large = jnp.abs(W) >= least
        return large.at[:, 0].set(large[:, 1:].any(1)) if self.free_bias else large

    def charged(self, W: Any) -> Any:
        """What the penalty is for."""
        return W[:, self.first :]

    def absorbed(self, W: np.ndarray, level: np.ndarray) -> np.ndarray:
        """The weights with what is constant in the biases: ``level`` of the numbers, NaN where it varies.

        A column whose places read different levels, or nothing, stays.
        """
        out = np.array(W)
        at = self._met(out, level, np.nan)
        same = (at == at[:1]).all(0)
        slopes = self.slopes(out)
        self.biases(out)[:] += slopes[:, same] @ at[0, same]
        slopes[:, same] = 0
        return out

    def _met(self, W: np.ndarray, of_numbers: np.ndarray, nothing: Any) -> np.ndarray:
        """What is known of numbers, at every place of every column."""
        return np.insert(of_numbers, 0, nothing)[1 + self.columns(self.n_read(W))]

    def init(self, rng: np.random.Generator, n_in: int) -> np.ndarray:
        """Glorot's uniform start, biases included, times the link's gain."""
        n_out, n_columns = self.shape(n_in)
        uses = self.numbers(n_in) / n_out
        fan_out = n_out * max(uses * (n_columns - 1) / n_in, 1)
        bound = self.link.gain * math.sqrt(6 / (n_columns - 1 + fan_out))
        W = rng.uniform(-bound, bound, (n_out, n_columns))
        self.biases(W)[:] *= self.bias
        return W

    def value(self, W: Array) -> Array:
        """The penalty at ``W``, with or without its bias column; infinite with a bias that there is not."""
        W = as_taken(W, self.penalty)
        value = self.penalty.value(W[:, self.first :])
        return value if self.bias else namespace(W).where((W[:, 0] == 0).all(), value, math.inf)

    def prox(self, V: Array, step: Number) -> Array:
        """The prox of that penalty; a free bias stays where it is."""
        V = as_taken(V, self.penalty)
        xp = namespace(V)
        left = V[:, : self.first] if self.bias else xp.zeros_like(V[:, :1])
        return xp.concatenate([left, self.penalty.prox(V[:, self.first :], step)], axis=1)

    def derivatives(self, W: Any) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of that penalty, where no weight is zero; it is one ``by_formula``."""
        slope, bend = np.zeros_like(W), np.zeros_like(W)
        slope[:, self.first :], bend[:, self.first :] = self.penalty.derivatives(W[:, self.first :])
        return slope, bend

    # What its units do

    @property
    def rests(self) -> bool:
        """Whether a unit without weights is charged nothing for what it does."""
        charged = self.activity is not None and self.activity.on == "reads"
        return not charged or not self.link.elementwise or float(self.link(jnp.zeros(()))) == 0

    def acts(self, z: Array, activations: Array) -> Array:
        """What the activity is charged for.

        Its charge may have a kink at zero. What is exactly there has no slope if it can go either way: a
        silent unit stays silent. What is never negative has that of the right side.
        """
        assert self.activity is not None
        A, signed = (z, True) if self.activity.on == "z" else (activations, self._goes_both_ways())
        return jnp.where((A == 0) & signed, lax.stop_gradient(A), A)

    def _goes_both_ways(self) -> Array | bool:
        """Whether what is read of a unit may be negative."""
        return self.link.elementwise and self.link(-jnp.ones(())) < 0
