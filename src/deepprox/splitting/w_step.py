"""W-step: ``W_l <- argmin_W penalty_l(W) + 1/2 sum_i weight_i rho_i |z_i + u_i - W f_i|^2``.

All that the observations say is in ``S = F' diag(weight rho) F`` and
``C = (Z + U)' diag(weight rho) F``. On these, proximal gradient steps with Nesterov's momentum,
restarted whenever the value would rise: any penalty with a prox, never an ascent.
"""

import jax.numpy as jnp
from jax import Array, lax

from deepprox.blocks import Dense
from deepprox.problem import Problem


def gram(problem: Problem, F: Array, target: Array, rho: Array) -> tuple[Array, Array]:
    """``S`` and ``C``: all that the observations say about a block's weights."""
    weighted = F * (problem.weight[:, None] * rho)
    return weighted.T @ F, target.T @ weighted


def w_step(block: Dense, W: Array, S: Array, C: Array, L: Array, inner: int) -> tuple[Array, Array]:
    """New weights of one block after ``inner`` steps, and the curvature they met.

    ``L`` is the curvature of the last call. A step is kept when ``<D, D S> <= L |D|^2`` for its
    displacement ``D``, a test in difference form that rounding does not disturb; else ``L`` grows.
    """
    eps = float(jnp.finfo(S.dtype).eps)
    L = jnp.maximum(0.7 * L, jnp.trace(S) / S.shape[0])

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
        keep = bounded & (now <= best + rounding)
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
