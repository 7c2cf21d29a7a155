"""The network that is left: the same function on the live inputs and units alone, no unit a constant."""

from typing import Any, NamedTuple

import jax
import numpy as np

from deepprox.blocks import Dense
from deepprox.joining.live import absorbed
from deepprox.links import Identity, Link
from deepprox.problem import Network, Weights


class Pruned(NamedTuple):
    """Small weights ``[bias, reads]`` of every block, its link, and where its units sit in the whole network.

    ``places`` holds the live inputs, the live units of every hidden block, and all outputs. Of a network
    that ignores its inputs only the last bias is left.
    """

    W: tuple[np.ndarray, ...]
    links: tuple[Link, ...]
    places: tuple[np.ndarray, ...]

    @property
    def network(self) -> Network:
        """The network of the small weights: without penalties, since it is not fitted."""
        return Network(tuple(Dense(len(w), link) for w, link in zip(self.W, (*self.links, Identity()))))


def prune(network: Network, W: Weights) -> Pruned:
    """The live part of a network, from the outputs back to the inputs."""
    whole = absorbed(network, W)
    rows = np.arange(network.blocks[-1].size)
    small: list[np.ndarray] = []
    places = [rows]
    for l in reversed(range(len(whole))):
        here = whole[l][rows]
        reads, rows = _reached(network, l, (here[:, 1:] != 0).any(0))
        small.insert(0, here[:, np.concatenate([[0], 1 + reads])])
        places.insert(0, rows)
    links = tuple(_at(block, units) for block, units in zip(network.blocks[:-1], places[1:]))
    if not all(len(place) for place in places):
        return Pruned((small[-1][:, :1],), (), (np.arange(0), places[-1]))
    return Pruned(tuple(small), links, tuple(places))


def _at(block: Dense, units: np.ndarray) -> Link:
    """The link of some units of a block: a number of its own for each unit stays with its unit."""
    if not block.link.elementwise:
        return block.link

    def of_units(leaf: Any) -> Any:
        return np.asarray(leaf)[..., units] if np.shape(leaf)[-1:] == (block.size,) else leaf

    return jax.tree.map(of_units, block.link)


def _reached(network: Network, l: int, read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What of the reads of block ``l`` stays, and the inputs or units before it that these come from."""
    link = network.blocks[l - 1].link
    if l == 0 or link.elementwise:
        return np.flatnonzero(read), np.flatnonzero(read)
    # a group of units stays as a whole
    size = network.blocks[l - 1].size
    groups = link.n_groups(size)  # type: ignore[attr-defined]
    alive = read.reshape(groups, -1).any(1)
    return np.flatnonzero(np.repeat(alive, read.size // groups)), np.flatnonzero(
        np.repeat(alive, size // groups)
    )
