"""Whether a posterior can be normalised: where neither the prior nor the data hold a weight, it cannot.

A prior ``exp(-scale penalty)`` falls like ``|w_j|^-e`` far out, ``e = scale d penalty / d log |w_j|``; it
can be normalised in ``w_j`` only if ``e > 1``. A penalty that levels off (none, l0, MCP, SCAD, capped l1)
has ``e = 0``. What it leaves flat the data must hold: in a model of one block no direction of the flat
weights may leave the loss of every observation bounded, as a direction that separates classes does. In a
deeper network weights without a prior are held by nothing: a unit can fade on one side while it grows on
the other.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from deepprox.blocks import Block
from deepprox.losses import Loss
from deepprox.problem import Network

NEAR, FAR = 1e6, 1e12  # the two weights between which the fall of a prior is measured
GROWS = 1e-9  # slope of a loss far out, of its own scale, that counts as growth
SEPARATES = 1e-9  # gain of the linear program that counts as one


def fixed_weights(network: Network, shapes: Any) -> np.ndarray:
    """Which weights their penalty allows no value but one, in the vector of all of them."""
    return ~np.isfinite(probe_penalties(network, shapes, 1e-6)).any(0)


def tail_exponents(network: Network, shapes: Any, scale: float) -> np.ndarray:
    """``e`` of every weight on the side where it is smaller; infinite where weights are bounded or fixed."""
    near, far = (probe_penalties(network, shapes, size) for size in (NEAR, FAR))
    with np.errstate(invalid="ignore"):
        rise = scale * (far - near) / math.log(FAR / NEAR)
    return np.where(np.isfinite(far), rise, np.inf).min(0)


def probe_penalties(network: Network, shapes: Any, size: float) -> np.ndarray:
    """The penalty where one weight is ``size`` (first row) or ``-size``, a column for each of all weights."""
    return np.concatenate([_probe(b, shape, size) for b, shape in zip(network.blocks, shapes)], axis=1)


def _probe(block: Block, shape: tuple[int, int], size: float) -> np.ndarray:
    """The same for the weights of one block."""
    n = shape[0] * shape[1]
    alike = block.penalty.any_shape and not any(np.ndim(leaf) for leaf in jax.tree.leaves(block.penalty))
    # where weights are not told apart one stands for all, and a bias for all biases
    which = np.array([0, n - 1]) if alike else np.arange(n)
    values = np.asarray(_values(block, jnp.asarray(which), jnp.asarray([size, -size]), shape))
    if not alike:
        return values
    bias = np.arange(n) % shape[1] == 0
    of_biases, of_others = values[:, [0]], values[:, [1]]
    return np.where(bias, of_biases, of_others)


@partial(jax.jit, static_argnames="shape")
def _values(block: Block, which: Any, sizes: Any, shape: tuple[int, int]) -> Any:
    def one(size: Any, j: Any) -> Any:
        return block.value(jnp.zeros(shape).ravel().at[j].set(size).reshape(shape))

    return jax.vmap(lambda size: jax.lax.map(lambda j: one(size, j), which))(sizes)


def need_proper(target: Any) -> None:
    """Say in one sentence why a posterior cannot be normalised, where it cannot."""
    network, shapes = target.problem.network, target.shapes
    exponents = tail_exponents(network, shapes, float(target.scale))
    flat = (exponents <= 1) & (target.ridge == 0)
    flat[np.setdiff1d(np.arange(flat.size), target.places)] = False
    last = flat.size - shapes[-1][0] * shapes[-1][1]
    by_row = flat[last:].reshape(shapes[-1])
    deep = len(shapes) > 1
    if flat[:last].any() or (deep and Block.slopes(by_row).any()):
        raise ValueError(
            f"The posterior is improper: {_names(network, flat, shapes)} too little for large weights, and "
            f"in a network the data do not hold them: use a penalty that grows, such as 'l1' or 'l2', or a "
            f"larger alpha."
        )
    columns = 1 if deep else shapes[-1][1]
    weight = np.asarray(target.problem.weight) > 0
    F = np.column_stack([np.ones(weight.sum()), np.asarray(target.problem.X)[weight]])[:, :columns]
    reason = _not_held(
        target.problem.loss, F, np.asarray(target.problem.y)[weight], by_row[:, :columns], target
    )
    if reason:
        raise ValueError(
            f"The posterior is improper: {reason}, and nothing else holds the weights: add a penalty that "
            f"grows, such as penalty='l2'."
        )


def _names(network: Network, flat: np.ndarray, shapes: Any) -> str:
    ends = np.cumsum([a * b for a, b in shapes])
    which = [np.flatnonzero(flat)[0] < end for end in ends].index(True)
    return f"the penalty {type(network.blocks[which].penalty).__name__} of block {which + 1} charges"


def _not_held(loss: Loss, F: np.ndarray, y: np.ndarray, flat: np.ndarray, target: Any) -> str:
    """Why the data do not hold the flat weights of the last block; nothing where they do."""
    if not flat.any():
        return ""
    if loss.simplex:
        falls = _simplex_rows(F, y, flat)
        pinned = np.asarray(target.anchor)[-flat.shape[0] * target.shapes[-1][1] :].reshape(target.shapes[-1])
        return _direction(falls, pinned[:, : flat.shape[1]][flat][None])
    for k in range(len(flat)):
        if flat[k].any():
            up, down = _growth(loss, y, k)
            rows = F[:, flat[k]]
            one_sided = np.concatenate([-rows[up & ~down], rows[down & ~up]])
            reason = _direction(one_sided, rows[up & down])
            if reason:
                return reason
    return ""


def _growth(loss: Loss, y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether the loss of every observation grows without end for large and for small ``eta_k``."""
    far = 1e8 * (1 + np.abs(y).max())
    value = lambda t: np.asarray(loss.value(jnp.zeros(y.shape).at[:, k].set(t), jnp.asarray(y)))  # noqa: E731
    slopes = [(value(side * far) - value(side * far / 2)) / (far / 2) for side in (1, -1)]
    return slopes[0] > GROWS, slopes[1] > GROWS


def _simplex_rows(F: np.ndarray, y: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """``eta_c - eta_k`` of every class ``c`` that was observed and every other ``k``, in the flat weights."""
    rows = []
    for c in range(y.shape[1]):
        seen = np.unique(F[y[:, c] > 0], axis=0)
        for k in set(range(y.shape[1])) - {c}:
            sides = np.zeros((len(seen), *flat.shape))
            sides[:, c], sides[:, k] = seen, -seen
            rows.append(sides[:, flat])
    return np.concatenate(rows)


def _direction(rows: np.ndarray, pinned: np.ndarray) -> str:
    """Why no loss grows along a direction ``d``, not 0, with ``rows d >= 0`` and ``pinned d = 0``, if any."""
    rows, pinned = np.unique(rows, axis=0), np.unique(pinned, axis=0)
    if np.linalg.matrix_rank(np.concatenate([rows, pinned])) < rows.shape[1]:
        return "some combination of the inputs is the same for all observations or classes"
    if not len(rows) or (len(pinned) and np.linalg.matrix_rank(pinned) == rows.shape[1]):
        return ""
    gain = rows.sum(0)
    found = scipy.optimize.linprog(
        -gain / max(np.abs(gain).max(), 1e-300),
        A_ub=-rows,
        b_ub=np.zeros(len(rows)),
        A_eq=pinned if len(pinned) else None,
        b_eq=np.zeros(len(pinned)) if len(pinned) else None,
        bounds=(-1, 1),
    )
    if found.status == 0 and -found.fun > SEPARATES:
        return "some combination of the inputs separates the responses, so that no loss grows along it"
    return ""
