"""Newton steps of one block, all of them in one program.

Without hidden blocks the loss is ``sum_i weight_i loss(W f_i, y_i)``, and with ``h_i`` the second derivatives
of ``loss`` in ``eta_i`` those in the weights are

    H[aj, bk] = sum_i weight_i h_i[a, b] F_ij F_ik,

so that a step needs no more than a product and a factorisation. A few weights take less time for all steps
together than the host takes to ask for one. It serves what :mod:`deepprox.joining.working_set` does not:
penalties and losses without formulas for NumPy, and rows on many devices.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.linalg import cho_solve

from deepprox.joining import ladder
from deepprox.joining.certificate import Flat, certificate, flatten
from deepprox.joining.finish import Finish, Step
from deepprox.joining.kinks import Slopes
from deepprox.problem import Problem, Weights
from deepprox.spreading import program

FEW = 100  # weights up to which all their second derivatives cost less than quasi-Newton steps
NUMBERS = 2**24  # observations times weights: what forming them holds
STEPS = 50


class State(NamedTuple):
    """A point, its derivatives, how much the next step is damped, and how many were refused in a row."""

    w: Array
    objective: Array
    loss: Array
    gradient: Array
    certificate: Array
    damping: Array
    refused: Array


class Rows(NamedTuple):
    """The history of the steps."""

    objective: Array
    loss: Array
    certificate: Array
    n_nonzero: Array


def suits(problem: Problem) -> bool:
    """Whether a problem is convex and has one block with few weights, and its rows can be held."""
    network = problem.network
    size = network.blocks[0].size * (1 + problem.X.shape[1])
    few = size <= FEW and problem.n_rows * size <= NUMBERS
    return problem.convex and network.smooth and few and problem.allsum.in_memory


def second_derivatives(flat: Flat, w: Array) -> Array:
    """Those of the objective; a weight at zero has none of its penalty, whose kink is there."""
    problem, block = flat.problem, flat.problem.network.blocks[0]
    one = lambda eta, y: problem.loss.value(eta[None], y[None])[0]  # noqa: E731
    h = jax.vmap(jax.hessian(one))(block.linear(flat.unravel(w)[0], problem.X), problem.y)
    F = block.features(problem.X)
    rows = lambda of_unit: jnp.einsum("nj,nb,nk->jbk", F, problem.weight[:, None] * of_unit, F)  # noqa: E731
    of_loss = flat.problem.allsum(lax.map(rows, jnp.moveaxis(h, 1, 0)).reshape(w.size, w.size))
    live = w != 0
    return of_loss + jnp.where(live[:, None] & live, jax.hessian(flat.penalty)(w), 0.0)


def step_length(H: Array) -> Array:
    """One over a bound of the largest curvature, as :func:`~deepprox.joining.certificate.bounded` has it."""
    return jnp.clip(1 / jnp.abs(H).sum(1).max(), float(jnp.finfo(H.dtype).eps) ** (1 / 3), 1.0)


def factor(H: Array, among: Array) -> Array:
    """Cholesky's factor on the weights ``among``, the identity on the others."""
    return jnp.linalg.cholesky(jnp.where(among[:, None] & among, H, jnp.eye(len(H), dtype=H.dtype)))


def minimise(H: Array, G: Array, w: Array, side: Array, free: Array) -> Array:
    """``argmin_d G'd + d'Hd/2`` on the free weights; one that would leave its side stops at zero."""

    def solve(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        free, _, _ = carry
        stopped = jnp.where(free, 0.0, -w)
        d = cho_solve((factor(H, free), True), jnp.where(free, -G - H @ stopped, stopped))
        crossing = free & ((w + d) * side < 0)
        return free & ~crossing, d, crossing.any()

    return lax.while_loop(lambda c: c[2], solve, (free, jnp.zeros_like(w), jnp.asarray(True)))[1]


def advance(flat: Flat, state: State, aim: Array) -> tuple[State, Array]:
    """One trial, and whether it was a step; if not, the next is damped more."""
    w, g = state.w, state.gradient
    H = second_derivatives(flat, w)
    step = step_length(H)
    residual = flat.residual(w, g, step)
    moved = w - step * residual
    free = (w != 0) | (jnp.abs(moved) > step * aim / 2)
    G, side = ladder.pull(w, moved, g, flat.penalty_gradient(w), flat.kinked(w), step)
    least, one = ladder.LEAST / step, jnp.eye(w.size, dtype=w.dtype)
    # none where the model bends enough: a share of the step that is left out would be left at a zero too
    bends = jnp.isfinite(factor(H - least * one, free)).all()
    damping = jnp.maximum(state.damping, jnp.where(bends, 0.0, least))
    trial = w + minimise(H + damping * one, G, w, side, free)
    loss, gradient = flat.loss_and_gradient(trial)
    objective = loss + flat.penalty(trial)
    ok = objective <= ladder.level(state.objective, w.dtype)
    after = State(
        trial,
        objective,
        loss,
        gradient,
        certificate(flat.residual(trial, gradient, step)),
        ladder.lowered(damping, least),
        jnp.zeros((), jnp.int32),
    )
    again = state._replace(damping=ladder.raised(damping, least), refused=state.refused + 1)
    return jax.tree.map(lambda yes, no: jnp.where(ok, yes, no), after, again), ok


@program()
def _descend(problem: Problem, W: Weights, aim: Array, limit: Array) -> tuple:
    w, flat = flatten(problem, W)

    def body(carry: tuple) -> tuple:
        state, rows, k = carry
        after, ok = advance(flat, state, aim)
        told = Rows(after.objective, after.loss, after.certificate, jnp.count_nonzero(after.w))
        rows = jax.tree.map(lambda column, value: column.at[k].set(value), rows, told)
        return after, rows, k + ok

    loss, gradient = flat.loss_and_gradient(w)
    far, none = jnp.asarray(jnp.inf, w.dtype), jnp.zeros((), jnp.int32)
    start = State(w, loss + flat.penalty(w), loss, gradient, far, jnp.zeros((), w.dtype), none)
    empty = jnp.zeros(STEPS, w.dtype)
    rows = Rows(empty, empty, empty, jnp.zeros(STEPS, int))
    going = lambda c: (c[0].certificate > aim) & (c[0].refused <= ladder.TRIALS) & (c[2] < limit)  # noqa: E731
    state, rows, taken = lax.while_loop(going, body, (start, rows, none))
    H = second_derivatives(flat, state.w)
    strict = jnp.isfinite(factor(H, state.w != 0)).all()
    return flat.unravel(state.w), state.certificate, step_length(H), strict, rows, taken


def descend(problem: Problem, W: Weights, slopes: Slopes, step: float, tol: float, budget: int) -> Finish:
    """The Newton steps of :func:`~deepprox.joining.finish.finish`, for what :func:`suits` them."""
    dtype = W[0].dtype
    found = _descend(problem, W, np.asarray(ladder.aim(tol, dtype), dtype), np.int32(min(STEPS, budget)))
    W, reached, step, strict, rows, taken = jax.tree.map(np.asarray, found)
    lists = (column[:taken].tolist() for column in rows)
    steps = [Step._make((*row, 0)) for row in zip(*lists)]
    return Finish(W, Slopes((), ()), float(reached), float(step), bool(strict), 0, steps)
