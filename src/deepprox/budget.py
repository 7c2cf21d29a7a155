"""At most so many weights, or inputs: which of them stay while a network is fitted, and in the end.

With ``k`` weights to be left of ``m``, every step of the batch phase is followed by a projection: the

    k + (m - k) (1 - s)^3,   s = 0 up to a twentieth of the steps, 1 from half of them on,

largest weights stay, all others are zero until a later step makes one large enough to take another's place.
Inputs are taken by the norm of their weights. This is the schedule of gradual pruning (Zhu and Gupta 2018)
around iterative hard thresholding (Blumensath and Davies 2009), beside the penalty: what it leaves out on its
own need not be cut.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.network import Network, Weights
from deepprox.penalties import Mask
from deepprox.struct import replace, struct

BEGIN, END = 0.05, 0.5  # shares of the steps between which weights leave
NEARLY = 0.9  # of the weights that are allowed: with fewer the penalty alone has left the others out
HALVINGS = 32  # of the sizes in single precision, which are as ordered as whole numbers of 31 bits


@struct
class Budget:
    """How many ``weights``, biases included, and how many ``inputs`` a network may have; None is no limit."""

    weights: Any = None
    inputs: Any = None

    def kept(self, network: Network, W: Weights, share: Array) -> Weights:
        """The weights that stay when this share of the steps is done."""
        left = (1 - jnp.clip((share - BEGIN) / (END - BEGIN), 0, 1)) ** 3
        if self.inputs is not None:
            first = network.blocks[0]
            sizes = first.norms(W[0])
            most = self.inputs + left * (sizes.size - self.inputs)
            least = _least(lambda size: jnp.count_nonzero(sizes >= size), most)
            W = (first.reading_of(W[0], sizes >= least), *W[1:])
        if self.weights is not None:
            most = self.weights + left * (sum(w.size for w in W) - self.weights)
            least = _least(lambda size: sum(mask.sum() for mask in _large(network, W, size)), most)
            W = tuple(jnp.where(mask, w, 0.0) for mask, w in zip(_large(network, W, least), W))
        return W

    def binds(self, W: Weights) -> bool:
        """Whether weights that a penalty might have kept were probably left out."""
        return self.inputs is not None or sum(np.count_nonzero(w) for w in W) > NEARLY * self.weights

    def holds(self, network: Network, W: Weights) -> bool:
        """Whether a network is within it."""
        few = self.weights is None or sum(np.count_nonzero(w) for w in W) <= self.weights
        return few and (self.inputs is None or int(network.used(W)[0].sum()) <= self.inputs)

    def held(self, network: Network, W: Weights) -> Network:
        """The network in which what is zero at ``W`` stays zero."""
        first, *others = network.blocks
        if self.weights is None:
            read = first.without(np.ones_like(W[0]), ~first.used(W[0]))
            free = [read, *(np.ones_like(w) for w in W[1:])]
        else:
            free = [(w != 0).astype(w.dtype) for w in W]
        blocks = zip((first, *others), free, strict=True)
        return Network(
            tuple(replace(block, penalty=Mask(block.charged(mask), block.penalty)) for block, mask in blocks)
        )


def _large(network: Network, W: Weights, least: Array) -> list[Array]:
    """Masks of the weights of at least this size; free biases of the outputs are always among them."""
    masks = [block.large(w, least) for block, w in zip(network.blocks, W, strict=True)]
    last = network.blocks[-1]
    if last.free_bias:
        masks[-1] = last.raised(masks[-1].astype(jnp.int8), jnp.int8(1)) > 0
    return masks


def _least(count: Callable[[Array], Any], most: Array) -> Array:
    """The least positive size in single precision from which on there are at most so many."""

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = low + (high - low) // 2
        few = count(lax.bitcast_convert_type(middle, jnp.float32)) <= most
        return jnp.where(few, low, middle), jnp.where(few, middle, high)

    ends = jnp.int32(0), lax.bitcast_convert_type(jnp.float32(jnp.inf), jnp.int32)
    return lax.bitcast_convert_type(lax.fori_loop(0, HALVINGS, halve, ends)[1], jnp.float32)
