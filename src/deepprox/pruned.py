"""The network that is left: the same function on the live inputs and units alone, no unit a constant."""

from typing import Any, NamedTuple

import jax
import numpy as np

from deepprox.arrays import as_taken
from deepprox.blocks import Dense
from deepprox.joining.live import absorbed
from deepprox.links import Identity, Link
from deepprox.problem import Network, Weights


class Pruned(NamedTuple):
    """Small weights ``[bias, reads]`` of every block, its link, and where its units sit in the whole network.

    ``places`` holds the live inputs, the live units of every hidden block, and all outputs; ``reads`` what
    every block reads. Of a network that ignores its inputs only the last bias is left.
    """

    W: tuple[np.ndarray, ...]
    links: tuple[Link, ...]
    places: tuple[np.ndarray, ...]
    reads: tuple[tuple[str, ...], ...]

    @property
    def network(self) -> Network:
        """The network of the small weights: without penalties, since it is not fitted."""
        each = zip(self.W, (*self.links, Identity()), self.reads)
        return Network(tuple(Dense(len(w), link, reads=reads) for w, link, reads in each))


def prune(network: Network, W: Weights) -> Pruned:
    """The live part of a network, from the outputs back to the inputs."""
    whole, blocks = absorbed(network, W), network.blocks
    columns = network.columns(network.n_inputs(W))
    # what is left of the activations that every block reads, of the units of every block, and of the inputs
    read, units = [np.arange(0)] * len(blocks), [np.arange(block.size) for block in blocks]
    inputs = np.zeros(network.n_inputs(W), bool)
    for l in reversed(range(len(blocks))):
        used = (whole[l][units[l]][:, 1:] != 0).any(0)
        if l:
            read[l], units[l - 1] = _reached(blocks[l - 1], used[columns[l].before])
        if used[columns[l].inputs].size:
            inputs |= used[columns[l].inputs]
    if not inputs.any():
        nothing = as_taken(np.zeros((1, inputs.size), whole[0].dtype), *(block.link for block in blocks))
        level = np.asarray(network.forward(whole, nothing)[-1])
        return Pruned((level.T,), (), (np.arange(0), units[-1]), (("before",),))
    first = max((l for l in range(1, len(blocks)) if not len(units[l - 1])), default=0)
    small = []
    for l in range(first, len(blocks)):
        slopes = whole[l][units[l]][:, 1:]
        parts = [whole[l][units[l]][:, :1], slopes[:, columns[l].before][:, read[l]]]
        if columns[l].inputs.stop > columns[l].before.stop:
            parts.append(slopes[:, columns[l].inputs][:, inputs])
        elif l == first:  # a constant that no bias could take over
            parts.append(np.zeros((len(slopes), inputs.sum())))
        small.append(np.concatenate(parts, axis=1))
    links = tuple(_at(blocks[l], units[l]) for l in range(first, len(blocks) - 1))
    reads = ("before",), *(block.reads for block in blocks[first + 1 :])
    return Pruned(tuple(small), links, (np.flatnonzero(inputs), *units[first:]), reads)


def _at(block: Dense, units: np.ndarray) -> Link:
    """The link of some units of a block: a number of its own for each unit stays with its unit."""
    if not block.link.elementwise:
        return block.link

    def of_units(leaf: Any) -> Any:
        return np.asarray(leaf)[..., units] if np.shape(leaf)[-1:] == (block.size,) else leaf

    return jax.tree.map(of_units, block.link)


def _reached(block: Dense, read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What stays of the activations of a block, and the units that these come from."""
    if block.link.elementwise:
        return np.flatnonzero(read), np.flatnonzero(read)
    # a group of units stays as a whole
    groups = block.link.n_groups(block.size)  # type: ignore[attr-defined]
    alive = read.reshape(groups, -1).any(1)
    stays = [np.flatnonzero(np.repeat(alive, width // groups)) for width in (read.size, block.size)]
    return stays[0], stays[1]
