"""What moves with the pre-activation of a unit: the derivatives that a Hessian is made of.

With ``s`` and ``c`` the first and the second derivative of a link at its own pre-activations, ``A`` the
weights of the block after it and ``g`` the derivative of the loss in pre-activations, for every observation

    g_l = s A' g_{l+1},   dg_m / dz_l = s A' dg_m / dz_{l+1}   (m > l),
    dg_l / dz_l = (dg_l / dz_{l+1})' A s + c A' g_{l+1},

from the second derivatives of the loss in the outputs down to the first block: small products, and programs
have but one number to find for each unit and observation. Links of several units have more than one, and
blocks that read more than the one before have more than one way down: they take a pass through the network
for each unit.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox import traces
from deepprox.blocks import Block
from deepprox.joining import kinks as kinks_
from deepprox.joining.kinks import Slopes
from deepprox.joining.live import width
from deepprox.network import Network, Pass, Weights
from deepprox.problem import Problem


class Bends(NamedTuple):
    """``g`` and ``F``, and what moves with the pre-activation of a unit; observations come last.

    Units are some of the hidden ones and all outputs. ``dg`` and ``dF`` have a matrix for each of the hidden
    ones; that of ``dg`` has a row for each unit, which says something for its own block and for later ones.
    ``dg_out`` has a matrix for each output, with rows for outputs: no other unit comes after. What the first
    block reads does not move: it has no rows in ``dF``.
    """

    g: Any
    F: Any
    dg: Any
    dF: Any
    dg_out: Any


def bends(
    problem: Problem, W: Weights, slopes: Slopes, hidden: np.ndarray, pull: np.ndarray, blurred: bool
) -> Bends:
    """The derivatives of the ``hidden`` units, counted through all blocks, and of the outputs.

    ``g`` is without what comes from a ``pull`` on the mean of every output.
    """
    network = problem.network
    if network.is_chain and all(block.link.elementwise for block in network.blocks[:-1]):
        local = jax.tree.map(np.asarray, _local_derivatives(problem, W, slopes, blurred))
        return chained(local, W, hidden, pull[:, None] * np.asarray(problem.weight))
    n_hidden, n_out = sum(len(w) for w in W[:-1]), len(W[-1])
    padded = np.full(width(hidden.size, n_hidden), np.iinfo(np.int32).max, np.int32)
    padded[: hidden.size] = hidden
    found = Bends(*map(np.asarray, _unit_derivatives(problem, W, slopes, padded, pull, blurred)))
    units = np.concatenate([hidden, n_hidden + np.arange(n_out)])
    some = slice(hidden.size)
    return found._replace(g=found.g[units], dg=found.dg[some][:, units], dF=found.dF[some])


class Local(NamedTuple):
    """What needs no other unit: what all blocks read, and the derivatives of the loss in the outputs.

    Then, of every hidden block and with a row for each unit, the first and the second derivative of what is
    read of it, and of what its activity is charged.
    """

    F: Any
    g: Any
    V: Any
    blocks: tuple[tuple[Any, ...], ...]


@partial(traces.jit, static_argnames=("blurred",))
def _local_derivatives(problem: Problem, W: Weights, slopes: Slopes, blurred: bool = False) -> Local:
    blocks = problem.network.blocks
    still = [jnp.zeros((len(problem.X), block.size), problem.X.dtype) for block in blocks]
    nobody = jnp.zeros((len(problem.X), 1), bool)

    def shifted(l: int, shift: Array) -> Pass:
        shifts = [*still[:l], shift, *still[l + 1 :]]
        return kinks_.forward(problem, W, slopes, nobody, on_z=shifts, blurred=blurred)

    def reads(l: int, shift: Array) -> Array:
        return shifted(l, shift).activations[l]

    def charged(l: int, shift: Array) -> Array:
        at, alone = shifted(l, shift), Network((blocks[l], blocks[-1]))
        # the majoriser: an activity may tie observations together
        return alone.activity([at.Z[l]], [at.activations[l]], problem.weight, majorised=True)

    def with_derivative(f: Callable[[Array], Array], at: Array) -> tuple[Array, Array]:
        return jax.jvp(f, (at,), (jnp.ones_like(at),))

    def of_block(l: int) -> tuple[Array, ...]:
        slope = lambda shift: with_derivative(partial(reads, l), shift)[1]  # noqa: E731
        charge = jax.grad(partial(charged, l)) if blocks[l].activity is not None else jnp.zeros_like
        return tuple(a.T for f in (slope, charge) for a in with_derivative(f, still[l]))

    at = kinks_.forward(problem, W, slopes, nobody)
    g, V = _output_derivatives(problem, at.Z[-1])
    F = jnp.concatenate([block.features(r) for block, r in zip(blocks, at.reads)], 1)
    return Local(F.T, g.T, V, tuple(map(of_block, range(len(blocks) - 1))))


def _output_derivatives(problem: Problem, eta: Array) -> tuple[Array, Array]:
    """The gradient of the loss in the outputs, and a matrix of second derivatives for each of them."""
    g, push = jax.linearize(jax.grad(problem.data_loss), eta)
    of_output = jax.vmap(lambda unit: push(jnp.zeros_like(eta).at[:, unit].set(1.0)).T)
    return g, of_output(jnp.arange(eta.shape[1]))


class Layout(NamedTuple):
    """Which units of every block are in question, where they stand among all of these, and the features.

    ``features`` are where those of every block but the first begin.
    """

    units: list[np.ndarray]
    parts: list[slice]
    features: np.ndarray

    @classmethod
    def of(cls, W: Weights, hidden: np.ndarray) -> "Layout":
        """That of some ``hidden`` units, counted through all blocks, and of all outputs."""
        ends = np.cumsum([0, *(len(w) for w in W)])
        cuts = [*np.searchsorted(hidden, ends[:-1]), hidden.size + len(W[-1])]
        parts = [slice(*cut) for cut in pairwise(cuts)]
        units = [hidden[part] - end for part, end in zip(parts[:-1], ends)]
        return cls([*units, np.arange(len(W[-1]))], parts, np.cumsum([0, *(w.shape[1] for w in W[1:])]))

    def empty(self, at: Local) -> Bends:
        """Room for their derivatives."""
        n, count, n_hidden = at.g.shape[1], self.parts[-1].stop, self.parts[-1].start
        return Bends(
            g=np.empty((count, n), at.V.dtype),
            F=at.F,
            dg=np.empty((n_hidden, count, n), at.V.dtype),
            dF=np.zeros((n_hidden, self.features[-1], n), at.V.dtype),
            dg_out=at.V,
        )


def chained(at: Local, W: Weights, hidden: np.ndarray, pulled: np.ndarray) -> Bends:
    """The derivatives of some ``hidden`` units and the outputs, by the chain rule from the last block down.

    All units that read something are to be among them: the others pass nothing on.
    """
    where = Layout.of(W, hidden)
    out, parts = where.empty(at), where.parts
    told = out.g[parts[-1]] = at.g - pulled
    g, below = at.g, {len(W) - 1: at.V}
    for l in reversed(range(len(W) - 1)):
        here, units = parts[l], where.units[l]
        A = Block.slopes(np.asarray(W[l + 1]))[where.units[l + 1]][:, units].T
        (slope, bend, charge, stiffness), up = (a[units] for a in at.blocks[l]), A @ g
        g, told = slope * up + charge, slope * (A @ told) + charge
        out.g[here] = told
        for m, D in below.items():
            _times(A, D, slope[:, None], out.dg[here, parts[m]])
        own, each = out.dg[here, here], np.arange(units.size)
        np.matmul(A, out.dg[here, parts[l + 1]], out=own)
        own *= slope
        own[each, each] += bend * up + stiffness
        _move(out.dF, where, l, A, slope)
        below = {m: out.dg[here, parts[m]] for m in (l, *below)}
    return out


def _times(A: np.ndarray, D: np.ndarray, slope: np.ndarray, out: np.ndarray) -> None:
    """``slope A D``, a matrix for each observation."""
    product = A @ D.reshape(len(D), D.shape[1] * D.shape[2])
    np.multiply(product.reshape(out.shape), slope, out=out)


def _move(dF: np.ndarray, where: Layout, l: int, A: np.ndarray, slope: np.ndarray) -> None:
    """How what is read moves with units of block ``l``: what they send, and what later ones send by that."""
    moved, units, first = dF[where.parts[l]], where.units[l], where.features[l : l + 2]
    moved[np.arange(units.size), first[0] + 1 + units] = slope
    if l + 2 < len(where.parts):
        moved[:, first[1] :] = np.tensordot(A, dF[where.parts[l + 1], first[1] :], 1)
        moved[:, first[1] :] *= slope[:, None]


@partial(traces.jit, static_argnames=("blurred",))
def _unit_derivatives(
    problem: Problem, W: Weights, slopes: Slopes, units: Array, pull: Array, blurred: bool = False
) -> Bends:
    """The same by a pass through the network for each of the hidden ``units``, with rows for all units."""
    sizes = [block.size for block in problem.network.blocks]
    nobody = jnp.zeros((problem.X.shape[0], 1), bool)

    def mean_loss(shift: Array) -> tuple[Array, tuple[Array, Array]]:
        shifts = jnp.split(shift.T, np.cumsum(sizes)[:-1], axis=1)
        at = kinks_.forward(problem, W, slopes, nobody, on_z=shifts, blurred=blurred)
        features = [block.features(r).T for block, r in zip(problem.network.blocks[1:], at.reads[1:])]
        # the majoriser: an activity may tie observations together
        acts = problem.network.activity(at.Z, at.activations, problem.weight, majorised=True)
        return problem.data_loss(at.Z[-1]) + acts, (jnp.concatenate([still[:0], *features]), at.Z[-1])

    def pulled(shift: Array) -> Array:
        return pull @ (problem.weight @ mean_loss(shift)[1][1])

    still = jnp.zeros((sum(sizes), problem.X.shape[0]), problem.X.dtype)
    (g, (F, eta)), push = jax.linearize(jax.grad(mean_loss, has_aux=True), still)
    dg, (dF, _) = jax.vmap(lambda unit: push(still.at[unit].set(1.0, mode="drop")))(units)
    return Bends(
        g - jax.grad(pulled)(still),
        jnp.concatenate([problem.network.blocks[0].features(problem.X).T, F]),
        dg,
        dF,
        _output_derivatives(problem, eta)[1],
    )
