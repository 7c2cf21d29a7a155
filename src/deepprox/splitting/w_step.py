"""W-step: ``W_l <- argmin_W penalty_l(W) + 1/2 sum_i weight_i rho_i |z_i + u_i - W f_i|^2``.

All that the observations say is in ``S = F' diag(weight rho) F`` and
``C = (Z + U)' diag(weight rho) F``. On these, proximal gradient steps with Nesterov's momentum,
restarted whenever the value would rise: any penalty with a prox, never an ascent. Values that tie to rounding
are compared by a difference that rounding does not disturb, so that all who have the same rows decide alike.

In a segment the forward pass ``g(W; f_i)`` stands for ``W f_i``. It is not linear in ``W``, so the same steps
go through the observations.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from deepprox.blocks import Block
from deepprox.problem import Problem, Weights
from deepprox.splitting.segments import Segment, pieces_of
from deepprox.splitting.state import State


def w_steps(
    problem: Problem, state: State, F: list[Array], Z: list[Array], inner: int
) -> tuple[Weights, tuple[Array, ...]]:
    """New weights of all pieces, each on its own, and the curvatures they met."""
    pieces, targets = pieces_of(problem), [z + u for z, u in zip(Z, state.U, strict=True)]
    said = [
        None if isinstance(piece, Segment) else gram(problem, f, target, rho)
        for piece, f, target, rho in zip(pieces, F, targets, state.rho, strict=True)
    ]
    grams = problem.allsum(said)
    steps: list[tuple[Any, Array]] = []
    for l, (piece, w, L) in enumerate(zip(pieces, state.W, state.curvature, strict=True)):
        if isinstance(piece, Segment):
            given = Given(F[l], targets[l], state.rho[l])
            steps.append(segment_step(problem, piece, w, given, L, inner))
        else:
            S, C = grams[l]
            steps.append(w_step(piece, w, S, C, L, inner))
    return tuple(w for w, _ in steps), tuple(L for _, L in steps)


class Given(NamedTuple):
    """What a segment reads, what it should give, and how much that weighs."""

    reads: Array
    target: Array
    rho: Array


def gram(problem: Problem, F: Array, target: Array, rho: Array) -> tuple[Array, Array]:
    """``S`` and ``C``: all that the observations say about a block's weights.

    Every place of an observation weighs what the observation does. One ``rho`` for all observations comes
    last: what the first block reads never changes, and the compiler then takes its product out of the loop
    over sweeps.
    """
    places, target = len(F) // len(target), target.reshape(len(F), -1)
    weight = problem.weight[:, None] if rho.ndim == 0 else problem.weight[:, None] * rho
    weighted = F * (weight if places == 1 else jnp.repeat(weight, places, axis=0))
    if rho.ndim == 0:
        return rho * (weighted.T @ F), rho * (target.T @ weighted)
    return weighted.T @ F, target.T @ weighted


def w_step(block: Block, W: Array, S: Array, C: Array, L: Array, inner: int) -> tuple[Array, Array]:
    """New weights of one block after ``inner`` steps, and the curvature they met.

    ``L`` is the curvature of the last call. A step is kept when ``<D, D S> <= L |D|^2`` for its
    displacement ``D``, a test in difference form that rounding does not disturb; else ``L`` grows.
    """
    eps = float(jnp.finfo(S.dtype).eps)
    # what is always zero bends nothing, however much of it there is
    L = jnp.maximum(0.7 * L, jnp.trace(S) / jnp.maximum(jnp.count_nonzero(jnp.diag(S)), 1))

    def value(W: Array, WS: Array) -> Array:
        return ((WS / 2 - C) * W).sum() + block.value(W)

    def step(_: int, carry: tuple) -> tuple:
        W, WS, best, V, VS, t, L = carry
        P = block.prox(V - (VS - C) / L, 1 / L)
        PS = P @ S
        length = ((P - V) ** 2).sum()
        bounded = ((P - V) * (PS - VS)).sum() <= L * length * (1 + 1e-6)
        bounded |= length <= (1e3 * eps) ** 2 * (P**2).sum()  # too short for the test to see
        now = value(P, PS)
        # value(P) - value(W): L (V - P) - (VS - C) is a slope of the penalty at P
        rise = ((P - W) * ((PS + WS) / 2 - VS + L * (V - P))).sum()
        keep = bounded & (now <= best + rounding) & ((now < best - rounding) | (rise <= 0))
        t_next = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
        beta = (t - 1) / t_next
        pick = lambda yes, no: jnp.where(keep, yes, no)  # noqa: E731
        # refused: back to plain steps from the best point
        V, VS = pick(P + beta * (P - W), W), pick(PS + beta * (PS - WS), WS)
        L = jnp.where(bounded, L, 1.5 * L)
        return pick(P, W), pick(PS, WS), pick(now, best), V, VS, pick(t_next, 1.0), L

    WS = W @ S
    rounding = 4 * eps * (jnp.abs(WS * W).sum() + jnp.abs(C * W).sum() + block.value(W))
    one = jnp.ones((), W.dtype)
    out = lax.fori_loop(0, inner, step, (W, WS, value(W, WS), W, WS, one, L))
    return out[0], out[-1]


def segment_step(
    problem: Problem, segment: Segment, W: Weights, given: Given, L: Array, inner: int
) -> tuple[Weights, Array]:
    """New weights of a segment after ``inner`` steps, and the curvature they met.

    ``L`` is the curvature of the last call. A step ``d`` is kept when the smooth part rises by at most
    ``<slope, d> + L/2 |d|^2``, up to rounding; else ``L`` grows.
    """
    start, unravel = ravel_pytree(W)
    eps = float(jnp.finfo(start.dtype).eps)
    weight = problem.weight[:, None] * given.rho

    def smooth(w: Array) -> Array:
        W = unravel(w)
        charge: Any = sum(act.value(A, problem.weight) for act, A in segment.acts_inside(W, given.reads))
        return (weight * (given.target - segment.linear(W, given.reads)) ** 2).sum() / 2 + charge

    def sloped(w: Array) -> tuple[Array, Array]:
        return problem.allsum(jax.value_and_grad(smooth)(w))

    def step(_: int, carry: tuple) -> tuple:
        w, best, v, t, L = carry
        at_v, slope = sloped(v)
        p = ravel_pytree(segment.prox(unravel(v - slope / L), 1 / L))[0]
        at_p, d = problem.allsum(smooth(p)), p - v
        bounded = at_p - at_v - slope @ d <= L / 2 * (d @ d) + 8 * eps * at_v
        now = at_p + segment.value(unravel(p))
        keep = bounded & (now <= best)
        t_next = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
        v = jnp.where(keep, p + (t - 1) / t_next * (p - w), w)
        L = jnp.where(bounded, L, 2 * L)
        return jnp.where(keep, p, w), jnp.where(keep, now, best), v, jnp.where(keep, t_next, 1.0), L

    at, slope = sloped(start)
    _, bent = jax.jvp(lambda w: segment.linear(unravel(w), given.reads), (start,), (slope,))
    # the curvature of the square along its gradient
    along = problem.allsum((weight * bent**2).sum()) / jnp.maximum(slope @ slope, jnp.finfo(L.dtype).tiny)
    L = jnp.maximum(jnp.maximum(0.7 * L, along), eps)
    one = jnp.ones((), start.dtype)
    out = lax.fori_loop(0, inner, step, (start, at + segment.value(W), start, one, L))
    return unravel(out[0]), out[-1]
