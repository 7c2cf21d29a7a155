"""The network that is left: the same function on the live inputs and units alone, no unit a constant."""

from typing import Any, NamedTuple

import jax
import numpy as np

from deepprox.arrays import as_taken
from deepprox.blocks import Block
from deepprox.joining.live import absorbed
from deepprox.links import Link
from deepprox.network import Network, Weights
from deepprox.penalties import Zero
from deepprox.struct import replace


class Pruned(NamedTuple):
    """A small network, without penalties since it is not fitted, its weights, and where its units were.

    ``places`` holds the live inputs, the live units of every hidden block, and all outputs. Of a network that
    ignores its inputs only the last bias is left. Blocks of several places stay as they are.
    """

    network: Network
    W: tuple[np.ndarray, ...]
    places: tuple[np.ndarray, ...]


def prune(network: Network, W: Weights) -> Pruned:
    """The live part of a network, from the outputs back to the inputs."""
    whole, n_in = absorbed(network, W), network.n_inputs(W)
    blocks, wiring = [_bare(block) for block in network.blocks], network.wiring(n_in)
    if not all(block.by_unit for block in blocks):
        return Pruned(Network(tuple(blocks)), whole, tuple(map(np.arange, (n_in, *network.numbers(n_in)))))
    # what is left of the numbers that every block reads, of the units of every block, and of the inputs
    read, units = [np.arange(0)] * len(blocks), [np.arange(block.size) for block in blocks]
    inputs = np.zeros(n_in, bool)
    for l in reversed(range(len(blocks))):
        used = blocks[l].used(whole[l][units[l]])
        if l:
            read[l], units[l - 1] = _reached(blocks[l - 1], used[wiring[l].before])
        if used[wiring[l].inputs].size:
            inputs |= used[wiring[l].inputs]
    if not inputs.any():
        nothing = as_taken(np.zeros((1, n_in), whole[0].dtype), *(block.link for block in blocks))
        level = np.asarray(network.forward(whole, nothing)[-1])
        return Pruned(Network((_first(blocks[-1]),)), (level.T,), (np.arange(0), units[-1]))
    begin = max((l for l in range(1, len(blocks)) if not len(units[l - 1])), default=0)
    small, left = [], []
    for l in range(begin, len(blocks)):
        every = np.arange(wiring[l].n_reads)[wiring[l].inputs]
        numbers = np.concatenate([read[l], every[inputs] if every.size else every])
        small.append(whole[l][blocks[l].grid(units[l], numbers, wiring[l].n_reads)])
        left.append(replace(blocks[l], size=len(units[l]), link=_at(blocks[l], units[l])))
    left[0] = _first(left[0])
    if not wiring[begin].inputs.stop > wiring[begin].before.stop:  # a constant that no bias could take over
        small[0] = np.pad(small[0], ((0, 0), (0, inputs.sum())))
    return Pruned(Network(tuple(left)), tuple(small), (np.flatnonzero(inputs), *units[begin:]))


def _bare(block: Block) -> Block:
    return replace(block, penalty=Zero(), activity=None)


def _first(block: Block) -> Block:
    return replace(block, reads=("before",))


def _at(block: Block, units: np.ndarray) -> Link:
    """The link of some units of a block: a number of its own for each unit stays with its unit."""
    if not block.link.elementwise:
        return block.link

    def of_units(leaf: Any) -> Any:
        return np.asarray(leaf)[..., units] if np.shape(leaf)[-1:] == (block.size,) else leaf

    return jax.tree.map(of_units, block.link)


def _reached(block: Block, read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What stays of the activations of a block, and the units that these come from."""
    if block.link.elementwise:
        return np.flatnonzero(read), np.flatnonzero(read)
    # a group of units stays as a whole
    groups = block.link.n_groups(block.size)  # type: ignore[attr-defined]
    alive = read.reshape(groups, -1).any(1)
    stays = [np.flatnonzero(np.repeat(alive, width // groups)) for width in (read.size, block.size)]
    return stays[0], stays[1]
