"""Kinks of piecewise links: where pre-activations sit on them, and with which slopes.

A ReLU network is at its best with some pre-activations exactly at a kink. There the loss has no
gradient, and any slope between those of the two sides gives one of its subgradients. An entry (a unit of
a hidden block at one observation) is *held* when it is kept at its kink by a slope strictly between.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import or_
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.links import Link
from deepprox.network import Pass
from deepprox.problem import Problem, Weights
from deepprox.spreading import same
from deepprox.struct import rows, struct

EDGE = 1e-6
SITS = 1e-8  # of a pre-activation that is at its kink
BLUR = 0.2  # half of the window in which a pre-activation sees a kink, as a share of its standard deviation


@struct
class Slopes:
    """Slopes of their own at held entries: for every hidden block a mask of these, and their slopes."""

    held: tuple[Any, ...] = rows()
    slope: tuple[Any, ...] = rows()

    def of(self, some: Any) -> "Slopes":
        """Those of some observations."""
        return jax.tree.map(lambda array: array[some], self)


class Entries(NamedTuple):
    """Entries of hidden blocks that this process has.

    ``place`` is that of each in a flat array of its block, ``offset`` how far it is from the nearest kink of
    its link; ``left`` and ``right`` are the slopes there.
    """

    block: np.ndarray
    place: np.ndarray
    offset: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, problem: Problem, Z: Sequence[Any], masks: Sequence[Any]) -> "Entries":
        """Those in the masks of the hidden blocks."""
        found = [np.zeros((5, 0))]
        for l, (block, z, mask) in enumerate(zip(problem.network.blocks, Z, masks)):
            place = np.flatnonzero(mask)
            if place.size:
                z, kinks = np.asarray(z), block.link.kinks
                at = z.ravel()[place, None] - np.asarray(kinks, z.dtype)
                nearest = np.abs(at).argmin(1)
                ends = np.array([sides(block.link, kink, z.dtype) for kink in kinks])[nearest]
                found.append(
                    np.stack([np.full(place.size, l), place, at[np.arange(place.size), nearest], *ends.T])
                )
        block, place, *numbers = np.concatenate(found, axis=1)
        return cls(block.astype(int), place.astype(int), *numbers)

    def take(self, some: np.ndarray) -> "Entries":
        """Some of them, or all in another order."""
        return Entries(*(column[some] for column in self))

    def pick(self, arrays: Sequence[Any]) -> np.ndarray:
        """The entries of arrays over the observations and the units of every hidden block."""
        out = np.zeros(self.place.size)
        for l in np.unique(self.block):
            here = self.block == l
            out[here] = np.asarray(arrays[l]).ravel()[self.place[here]]
        return out

    def put(self, slopes: Slopes, values: np.ndarray, mask: Any = True) -> Slopes:
        """The same slopes but for these entries: held with other ones, or not where not in the ``mask``."""
        held, slope = ([np.array(array) for array in arrays] for arrays in (slopes.held, slopes.slope))
        mask = np.broadcast_to(mask, self.place.shape)
        for l in np.unique(self.block):
            here = self.block == l
            held[l].flat[self.place[here]] = mask[here]
            slope[l].flat[self.place[here]] = np.where(mask, values, 0)[here]
        return Slopes(tuple(held), tuple(slope))

    def between(self, shares: np.ndarray) -> np.ndarray:
        """The slopes at shares of the way from left to right."""
        return self.left + shares * (self.right - self.left)

    def where(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Their observations, and their units, counted through all blocks."""
        sizes = np.array(problem.network.numbers(problem.X.shape[1]))
        row, unit = np.divmod(self.place, sizes[self.block])
        return row, unit + np.cumsum([0, *sizes])[self.block]


def no_slopes(problem: Problem) -> Slopes:
    """Every link with its own derivative everywhere."""
    n, n_in = problem.X.shape
    shapes = [(n, numbers) for numbers in problem.network.numbers(n_in)[:-1]]
    # zeros cost nothing on the host, and where programs run elsewhere the way there does
    zeros: Any = np.zeros if problem.allsum != same or jax.default_backend() == "cpu" else jnp.zeros
    return Slopes(tuple(zeros(s, bool) for s in shapes), tuple(zeros(s, problem.X.dtype) for s in shapes))


def any_held(slopes: Slopes) -> bool:
    """Whether any entry has a slope of its own."""
    return any(bool(held.any()) for held in slopes.held)


def forward(
    problem: Problem,
    W: Weights,
    slopes: Slopes,
    ride: Array,
    on_z: Sequence[Array] | None = None,
    on_reads: Sequence[Array] | None = None,
    blurred: bool = False,
) -> Pass:
    """A forward pass with chosen slopes at held entries, every ``z`` or what follows it shifted.

    In a deep ReLU network an entry above a held one is at its own kink too, because all that it reads
    is zero there. It follows the one below: in rows that ``ride``, and in rows with a held entry, entries
    exactly at a kink take the slope of its right side. Blurred, a kink bends whatever is near it, as it does
    on the average over many observations.
    """
    rides = [*accumulate((held.any(1, keepdims=True) for held in slopes.held), or_, initial=ride)]

    def shifted(l: int, z: Array) -> Array:
        return z if on_z is None else z + on_z[l]

    def linked(l: int, z: Array) -> Array:
        link = problem.network.blocks[l].link
        read = follow(link, z, slopes.held[l], slopes.slope[l], rides[l])
        if blurred:
            off = z - lax.stop_gradient(z)
            read += lax.stop_gradient(bend(link, z, problem.weight)) * off**2 / 2
        return read if on_reads is None else read + on_reads[l]

    return problem.network.run(W, problem.X, shifted, linked)


def follow(link: Link, z: Array, held: Any, slope: Any, ride: Array) -> Array:
    """``link(z)``, with the chosen slopes as its derivative at held entries."""
    if not link.kinks:
        return link(z)
    one = jnp.ones_like(z)
    own, right = (jax.jvp(link, (at,), (one,))[1] for at in (z, z + EDGE))
    at_kink = jnp.isin(z, jnp.asarray(link.kinks, z.dtype))
    wanted = jnp.where(held, slope, jnp.where(at_kink & ride, right, own))
    # adds zero, with a derivative that replaces the link's own
    return link(z) + lax.stop_gradient(wanted - own) * (z - lax.stop_gradient(z))


def bend(link: Link, z: Array, weight: Array) -> Array:
    """The jump of the derivative at a kink, spread over a window: a second derivative of the blurred link."""
    total, share = jnp.zeros_like(z), weight / jnp.maximum(weight.sum(), jnp.finfo(z.dtype).tiny)
    half = BLUR * jnp.sqrt(share @ (z - share @ z) ** 2)
    for kink in link.kinks:
        at = jnp.asarray([kink - EDGE, kink + EDGE], z.dtype)
        left, right = jax.jvp(link, (at,), (jnp.ones_like(at),))[1]
        total += jnp.where(jnp.abs(z - kink) < half, (right - left) / jnp.where(half > 0, 2 * half, 1.0), 0.0)
    return total


def derivative(link: Link, z: Array) -> Array:
    """That of a link of single units."""
    return jax.jvp(link, (z,), (jnp.ones_like(z),))[1]


_derivative = jax.jit(derivative)


def sides(link: Link, kink: float, dtype: Any) -> np.ndarray:
    """The derivatives of a link on the left and on the right of a kink."""
    return np.asarray(_derivative(link, np.asarray([kink - EDGE, kink + EDGE], dtype)))


def find_idle(problem: Problem, Z: Sequence[Any], slopes: Slopes) -> Entries:
    """Entries exactly at a kink that nothing holds there.

    All that such an entry reads is zero, or reaches it through zero weights: its slope moves only the
    derivatives in those zero weights, and any slope between the two sides is as good as another.
    """
    counts, blocks = np.asarray(problem.weight)[:, None] > 0, problem.network.blocks
    at_kink = [np.isin(np.asarray(z), np.asarray(b.link.kinks, z.dtype)) for b, z in zip(blocks[:-1], Z)]
    return Entries.of(
        problem, Z, [here & ~np.asarray(held) & counts for here, held in zip(at_kink, slopes.held)]
    )


def redundant_biases(problem: Problem, W: Weights, own: tuple, slopes: Slopes) -> np.ndarray:
    """Which weights are biases that change nothing, because others can do the same.

    So is the bias of a unit whose link has one slope at all observations, its ``own`` or a chosen one: moving
    it moves all that is read of the unit by one number, which the next block's biases can do. So is one bias
    of the outputs, if the loss sees their differences alone.
    """
    masks = [np.zeros(np.shape(w), bool) for w in W]
    counts = np.asarray(problem.weight) > 0
    for l, (block, after) in enumerate(pairwise(problem.network.blocks)):
        free = block.free_bias and after.free_bias and block.by_unit and after.by_unit
        if (
            free
            and not block.activity
            and block.link.kinks
            and block.link.elementwise
            and problem.allsum.in_memory
        ):
            slope = np.where(slopes.held[l], slopes.slope[l], np.asarray(own[l]))[counts]
            ends = slope.min(0, initial=np.inf), -slope.max(0, initial=-np.inf)
            lowest, highest = problem.allsum.gather(np.stack(ends)).min(0)
            block.biases(masks[l])[:] = lowest == -highest
    if problem.loss.differences and problem.network.blocks[-1].free_bias:
        problem.network.blocks[-1].biases(masks[-1])[0] = True
    return np.concatenate([mask.ravel() for mask in masks])
