"""Moving sums: weights that follow a stream of observations, of which nothing but sums is kept.

What the rows of the past would lose at other weights ``V = W + D`` is known by their mean loss at ``W``, its
gradient and its curvature, in which blocks and units are told apart and rows are averaged:

    past(V) = value + sum_l <slope_l, D_l> + 1/2 <B_l D_l S_l, D_l>
    S_l = mean_i f_i f_i'      the Gram matrix of what block l reads, as in the W-step
    B_l = mean_i J_i' H_i J_i  the curvature in its pre-activations: H of the loss, J from there to the output

``slope_l`` is ``W S - C`` of the W-step, for forward-feasible ``Z`` and the duals at which these are
stationary. A batch of rows moves the weights to a lower value of

    (1 - share) past(V) + share loss(V; batch) + sum_l penalty_l(V_l)

by quasi-Newton steps, and joins the sums there. For one block and squared loss the sums are exact, whatever
the weights were on the way. Otherwise what early batches said was said of other weights, and is to be
forgotten. The factors ``S`` and ``B`` are those of Martens and Grosse (2015), *Optimizing neural networks
with Kronecker-factored approximate curvature*; ``docs/larger-than-memory.md`` has the measurements.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from deepprox.joining import quasi_newton
from deepprox.joining.certificate import Flat
from deepprox.joining.live import Live, canonical
from deepprox.problem import Network, Problem, Weights
from deepprox.splitting.state import features

STEPS = quasi_newton.CHUNK  # quasi-Newton steps for a batch, at most
FORGETTING = 0.5  # the t-th batch of a network counts t^-0.5, all before it the rest


class Past(NamedTuple):
    """What is known of the rows of the past at the present weights."""

    value: Any
    slope: Weights
    reads: tuple[Any, ...]
    bends: tuple[Any, ...]


def nothing(W: Weights) -> Past:
    """No rows yet."""
    zeros = lambda n, dtype: np.zeros((n, n), dtype)  # noqa: E731
    return Past(
        np.zeros((), W[0].dtype),
        tuple(np.zeros(w.shape, w.dtype) for w in W),
        tuple(zeros(w.shape[1], w.dtype) for w in W),
        tuple(zeros(w.shape[0], w.dtype) for w in W),
    )


def share_of(batch: float, before: float, n_blocks: int) -> float:
    """How much a batch counts, given its weight and that of all before it.

    Sums of one block need not forget: all rows count alike.
    """
    return (batch / (batch + before)) ** (1.0 if n_blocks == 1 else FORGETTING)


class Remembered(NamedTuple):
    """``(1 - share) past(V) + share loss(V; batch)``, in the place of a problem."""

    problem: Problem
    W: Weights
    past: Past
    share: Any

    @property
    def network(self) -> Network:
        """The network of the batch."""
        return self.problem.network

    def loss_and_gradient(self, V: Weights) -> tuple[Array, Weights]:
        """The smooth part and its gradient."""
        here = self.problem.loss_and_gradient(V)
        return jax.tree.map(lambda now, old: old + self.share * (now - old), here, at(self.past, self.W, V))


def at(past: Past, W: Weights, V: Weights) -> tuple[Array, Weights]:
    """``past(V)`` and its gradient, for sums that were made at ``W``."""
    D = [v - w for v, w in zip(V, W, strict=True)]
    bent = [b @ d @ s for b, d, s in zip(past.bends, D, past.reads, strict=True)]
    gained = [((g + h / 2) * d).sum() for g, h, d in zip(past.slope, bent, D, strict=True)]
    return past.value + sum(gained), tuple(g + h for g, h in zip(past.slope, bent, strict=True))


def moved(past: Past, W: Weights, V: Weights) -> Past:
    """The past at other weights."""
    value, slope = at(past, W, V)
    return past._replace(value=value, slope=slope)


@jax.jit
def step(problem: Problem, W: Weights, past: Past, share: Any, tol: Any) -> tuple[Weights, Past]:
    """New weights after a batch, and the past at them, without the batch."""
    w, unravel = ravel_pytree(W)
    flat = Flat(Remembered(problem, W, past, share), unravel)  # type: ignore[arg-type]
    state = quasi_newton.first(flat, w)
    if not flat.smooth:  # a longer step than the curvature allows would look lower than it is
        state = state._replace(step=1 / steepest(blend(past, summed(problem, W), share)))
    after, _, _ = quasi_newton.run(flat, state, tol, jnp.asarray(STEPS))
    V = after.w if flat.smooth else flat.prox(after.w - after.step * after.gradient, after.step)
    lower = flat.loss_and_gradient(V)[0] + flat.penalty(V) <= state.objective
    V = unravel(jnp.where(lower, V, w))
    return V, moved(past, W, V)


def steepest(past: Past) -> Array:
    """A bound on the curvature in all blocks together, and at least 1."""
    each = [
        jnp.linalg.norm(b, 2) * jnp.linalg.norm(s, 2) for b, s in zip(past.bends, past.reads, strict=True)
    ]
    return jnp.maximum(len(each) * jnp.stack(each).max(), 1.0)


def blend(past: Past, now: Past, share: Any) -> Past:
    """Moving averages."""
    return jax.tree.map(lambda old, new: old + share * (new - old), past, now)


@jax.jit
def joined(problem: Problem, W: Weights, past: Past, share: Any) -> Past:
    """The past with a batch."""
    return blend(past, summed(problem, W), share)


def learn(
    problem: Problem, W: Weights, past: Past, share: Any, tol: Any
) -> tuple[tuple[np.ndarray, ...], Live, Past]:
    """New weights after a batch in their canonical form, what lives of them, and the past with the batch."""
    need_dense(problem.network)
    V, past = jax.tree.map(np.asarray, step(problem, W, past, share, tol))
    V, live = canonical(problem.network, V)
    past = jax.tree.map(np.asarray, joined(problem, V, without_dead(past, V, live), share))
    return V, live, past


def without_dead(past: Past, W: Weights, live: Live) -> Past:
    """The past in the canonical form of its weights: the loss does not depend on a unit that nothing reads.

    What reads a constant unit loses nothing by the canonical form, since it moves along ``D`` with
    ``D f_i = 0`` for all rows.
    """
    pairs = zip(W, live.reads[1:], strict=False)
    feeds = [mask if len(mask) == len(w) else np.ones(len(w), bool) for w, mask in pairs]
    feeds.append(np.ones(len(W[-1]), bool))
    masks = [feed[:, None] for feed in feeds]
    slope = tuple(g * mask for g, mask in zip(past.slope, masks, strict=True))
    return past._replace(
        slope=slope, bends=tuple(b * m * m.T for b, m in zip(past.bends, masks, strict=True))
    )


def need_dense(network: Network) -> None:
    """A sentence where what a block gives are not units with weights of their own."""
    if not all(block.by_unit for block in network.blocks):
        raise ValueError("partial_fit follows networks of dense blocks only: fit this one to all rows.")


def summed(problem: Problem, W: Weights) -> Past:
    """What the rows of one problem say at ``W``."""
    need_dense(problem.network)
    value, slope = problem.loss_and_gradient(W)
    F = features(problem, problem.network.forward(W, problem.X))
    reads = tuple((f * problem.weight[:, None]).T @ f for f in F)
    return Past(value, slope, reads, bends(problem, W))


def bends(problem: Problem, W: Weights) -> tuple[Array, ...]:
    """``mean_i J_i' H_i J_i`` of every block, output by output; no direction bends downwards."""
    weight = problem.weight[:, None]

    def output(shifts: tuple[Array, ...]) -> Array:
        return problem.network.run(W, problem.X, lambda l, z: z + shifts[l]).Z[-1]

    none = tuple(jnp.zeros((len(problem.X), len(w)), w.dtype) for w in W)
    eta, back = jax.vjp(output, none)
    slope = jax.grad(lambda eta: problem.loss.value(eta, problem.y).sum())

    def add(total: tuple[Array, ...], one: Array) -> tuple[tuple[Array, ...], None]:
        direction = jnp.broadcast_to(one, eta.shape)
        (left,), (right,) = back(jax.jvp(slope, (eta,), (direction,))[1]), back(direction)
        return tuple(t + (weight * a).T @ b for t, a, b in zip(total, left, right, strict=True)), None

    start = tuple(jnp.zeros((len(w), len(w)), w.dtype) for w in W)
    total, _ = lax.scan(add, start, jnp.eye(eta.shape[1], dtype=eta.dtype))
    return tuple(upwards((b + b.T) / 2) for b in total)


def upwards(B: Array) -> Array:
    """The nearest matrix without negative eigenvalues: few losses are not convex, and rounding is not."""
    values, vectors = jnp.linalg.eigh(B)
    return (vectors * jnp.maximum(values, 0)) @ vectors.T


def rescaled(past: Past, change: np.ndarray) -> Past:
    """The past when the first block reads ``change @ f`` in place of ``f``."""
    first = past.slope[0] @ change.T, change @ past.reads[0] @ change.T
    return past._replace(slope=(first[0], *past.slope[1:]), reads=(first[1], *past.reads[1:]))
