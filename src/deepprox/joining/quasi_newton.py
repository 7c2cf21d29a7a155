"""Proximal quasi-Newton steps on ``mean loss(w) + penalty(w)``, for any penalty with a prox.

At ``w`` with gradient ``g`` of the loss, the descent residual ``r`` is

    r_j = g_j + d penalty / d w_j            where w_j is not zero: the penalty is smooth there
    r_j = (w - prox(w - step g, step))_j / step   where it is zero: what the prox would release

A limited-memory BFGS direction is taken from ``r``; an entry that would change its sign stops at
zero, exactly, where its penalty has a kink. For the lasso this is the orthant-wise method of Andrew
and Gao (2007). When ``r`` vanishes and the prox still wants to move (a non-convex penalty can hold a
weight that is better dropped), the step is the prox-gradient step itself. A penalty with kinks elsewhere
(the nuclear norm, a box) is left to :mod:`deepprox.joining.envelope`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.joining import envelope
from deepprox.joining.certificate import Flat, certificate, flatten
from deepprox.problem import Problem, Weights
from deepprox.spreading import program

CHUNK = 25  # steps of one call of the compiled program
MEMORY = 10
LEAST_CUT = 0.25  # share of a refused trial that the next one has at least
SHORTEST = 2.0**-24  # share of a direction below which it is given up


class State(NamedTuple):
    """The point, its loss gradient, and the newest displacement and gradient pairs first.

    ``share`` is how much of its direction the next trial takes.
    """

    w: Array
    objective: Array
    loss: Array
    gradient: Array
    S: Array
    Y: Array
    n_pairs: Array
    step: Array
    share: Array
    certificate: Array
    stalled: Array


class Memory(NamedTuple):
    """What is known of the curvature of the loss: it serves again for another penalty."""

    S: Any
    Y: Any
    n_pairs: Any
    step: Any

    def moved(self, rows: Callable[[Any], Any]) -> "Memory":
        """The same in other coordinates."""
        return self._replace(S=rows(self.S), Y=rows(self.Y))


class Info(NamedTuple):
    """One row of the history of the join phase."""

    objective: Array
    loss: Array
    certificate: Array
    n_nonzero: Array
    support_changed: Array


def rows(info: Info, taken: Any) -> list[dict[str, Any]]:
    """The history of the steps of one call, one row each."""
    columns = {name: np.asarray(column)[: int(taken)].tolist() for name, column in info._asdict().items()}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def start(
    w: Any, objective: Any, loss: Any, gradient: Any, certificate: Any, memory: Memory | None = None
) -> State:
    """No curvature known: unit step. With a leading axis, many starts side by side."""
    lead, n_weights = w.shape[:-1], w.shape[-1]
    one: Any = np.ones(lead, w.dtype)
    stalled: Any = np.zeros(lead, bool)
    if memory is None:
        pairs: Any = np.zeros((*lead, MEMORY, n_weights), w.dtype)
        count: Any = np.zeros(lead, np.int32)
        memory = Memory(pairs, pairs, count, one)
    return State(
        w=w,
        objective=objective,
        loss=loss,
        gradient=gradient,
        **memory._asdict(),
        share=one,
        certificate=certificate,
        stalled=stalled,
    )


def first(flat: Flat, w: Array) -> State:
    """The state at ``w``, inside a program."""
    loss, gradient = flat.loss_and_gradient(w)
    residual = certificate(flat.residual(w, gradient, jnp.ones((), w.dtype)))
    return start(w, loss + flat.penalty(w), loss, gradient, residual)


def inverse_hessian_times(state: State, r: Array, scale: Array) -> Array:
    """``H r`` by the two-loop recursion over the stored pairs."""
    known = jnp.arange(MEMORY) < state.n_pairs
    sy = jnp.where(known, (state.S * state.Y).sum(1), 1.0)

    def newest_to_oldest(q: Array, pair: tuple) -> tuple[Array, Array]:
        s, y, sy, known = pair
        a = jnp.where(known, s @ q / sy, 0.0)
        return q - a * y, a

    def oldest_to_newest(q: Array, pair: tuple) -> tuple[Array, None]:
        s, y, sy, known, a = pair
        return q + jnp.where(known, a - y @ q / sy, 0.0) * s, None

    q, a = lax.scan(newest_to_oldest, r, (state.S, state.Y, sy, known))
    q, _ = lax.scan(oldest_to_newest, q * scale, (state.S, state.Y, sy, known, a), reverse=True)
    return q


def advance(flat: Flat, state: State) -> tuple[State, Array]:
    """One trial along the direction, and whether it was a step; if not, the next trial is shorter.

    One trial and not a whole search, so that starts side by side do not wait for each other. The next is
    where the parabola through both values and the first slope is lowest, and at most half as long.
    """
    w, g, step, t = state.w, state.gradient, state.step, state.share
    moved = flat.residual(w, g, step)
    r = jnp.where(w == 0, moved, g + flat.penalty_gradient(w))
    by_prox = certificate(r) < 0.1 * certificate(moved)

    newest = (state.S[0] * state.Y[0]).sum() / jnp.maximum((state.Y[0] ** 2).sum(), jnp.finfo(w.dtype).tiny)
    cautious = jnp.minimum(1.0, 1 / jnp.maximum(jnp.abs(r).sum(), 1e-30))
    scale = jnp.where(state.n_pairs > 0, newest, cautious)
    d = -inverse_hessian_times(state, r, scale)
    d = jnp.where((w == 0) & (d * r >= 0), 0.0, d)  # a released weight moves to the side the prox says
    d = jnp.where(d @ r < 0, d, -scale * r)
    along = w + t * d
    side = jnp.where(w == 0, -r, w)
    along = jnp.where(flat.kinked(w) & (along * side <= 0), 0.0, along)
    trial = jnp.where(by_prox, flat.prox(w - t * step * g, t * step), along)

    loss, gradient = flat.loss_and_gradient(trial)
    objective = loss + flat.penalty(trial)
    gain = jnp.where(by_prox, ((trial - w) ** 2).sum() / (2 * t * step), -r @ (trial - w))
    noise = 4 * jnp.finfo(w.dtype).eps * jnp.abs(state.objective)
    ok = objective <= state.objective - 1e-4 * jnp.maximum(gain, 0.0) + noise
    lowest = gain / (2 * (objective - state.objective + gain))
    cut = jnp.where(lowest > LEAST_CUT, jnp.minimum(lowest, 0.5), LEAST_CUT)
    return remember(flat, state, ok, trial, objective, loss, gradient, jnp.where(by_prox, 0.5, cut)), ok


def remember(
    flat: Flat, state: State, ok: Array, w: Array, objective: Array, loss: Array, gradient: Array, cut: Array
) -> State:
    """The state after a trial; where the last and shortest was refused, the same point without its memory."""
    s = w - state.w
    bend = flat.penalty_gradient(w) - flat.penalty_gradient(state.w)
    # a concave penalty is majorised by its tangent: only what bends upwards is curvature to rely on
    y = gradient - state.gradient + jnp.where((w * state.w > 0) & (bend * s > 0), bend, 0.0)
    curved = ok & (s @ y > 1e-10 * (s @ s))
    S = jnp.where(curved, jnp.roll(state.S, 1, 0).at[0].set(s), state.S)
    Y = jnp.where(curved, jnp.roll(state.Y, 1, 0).at[0].set(y), state.Y)
    given_up = ~ok & (state.share <= SHORTEST)
    n_pairs = jnp.where(given_up, 0, jnp.minimum(state.n_pairs + curved, MEMORY))
    # one over the largest curvature met: small enough for the prox-gradient map to descend
    met = (S * Y).sum(1) / jnp.maximum((Y**2).sum(1), jnp.finfo(w.dtype).tiny)
    # and never above 1: with a longer one the prox would hide what a large weight still wants
    met = jnp.where(jnp.arange(MEMORY) < n_pairs, jnp.minimum(met, 1.0), 1.0).min()
    step = jnp.where(n_pairs > 0, met, state.step)
    keep = lambda new, old: jnp.where(ok, new, old)  # noqa: E731
    w, gradient = keep(w, state.w), keep(gradient, state.gradient)
    return State(
        w=w,
        objective=keep(objective, state.objective),
        loss=keep(loss, state.loss),
        gradient=gradient,
        S=S,
        Y=Y,
        n_pairs=n_pairs,
        step=step,
        share=jnp.where(ok | given_up, 1.0, state.share * cut),
        certificate=certificate(flat.residual(w, gradient, step)),
        stalled=given_up & (state.n_pairs == 0),
    )


def advance_envelope(flat: Flat, state: State) -> tuple[State, Array]:
    """One trial on the envelope, and whether it was a step.

    Where even the prox-gradient step is not, or the envelope is no upper bound there, ``step`` was too long
    and halves.
    """
    w, step = state.w, state.step
    began, R = envelope.envelope(flat, w, state.loss, state.gradient, step)
    newest = (state.S[0] * state.Y[0]).sum() / jnp.maximum((state.Y[0] ** 2).sum(), jnp.finfo(w.dtype).tiny)
    d = -inverse_hessian_times(state, R, jnp.where(state.n_pairs > 0, newest, step))
    trial = envelope.trial_point(w, R, step, d, state.share)
    loss, gradient = flat.loss_and_gradient(trial)
    ended, R_ended = envelope.envelope(flat, trial, loss, gradient, step)
    bounds = envelope.is_bound(flat, trial, loss, gradient, R_ended, step)
    ok = bounds & envelope.is_lower(ended, began, R, step)
    too_long = ~bounds | (~ok & (state.share <= envelope.SHORTEST))

    s, y = trial - w, R_ended - R
    curved = ok & (s @ y > 1e-10 * (s @ s))
    keep = lambda new, old: jnp.where(ok, new, old)  # noqa: E731
    R_kept = keep(R_ended, R)
    return State(
        w=keep(trial, w),
        objective=keep(ended, began),
        loss=keep(loss, state.loss),
        gradient=keep(gradient, state.gradient),
        S=jnp.where(curved, jnp.roll(state.S, 1, 0).at[0].set(s), state.S),
        Y=jnp.where(curved, jnp.roll(state.Y, 1, 0).at[0].set(y), state.Y),
        n_pairs=jnp.where(too_long, 0, jnp.minimum(state.n_pairs + curved, MEMORY)),
        step=jnp.where(too_long, step / 2, step),
        share=jnp.where(ok | too_long, 1.0, state.share / 2),
        certificate=certificate(R_kept),
        stalled=too_long & (step < jnp.finfo(w.dtype).eps),
    ), ok


def tried(flat: Flat, state: State) -> tuple[State, Info, Array]:
    """The state after a trial, its row of the history, and whether it was a step."""
    after, ok = advance(flat, state) if flat.smooth else advance_envelope(flat, state)
    n_nonzero, changed = jnp.count_nonzero(after.w), jnp.any((after.w == 0) != (state.w == 0))
    return after, Info(after.objective, after.loss, after.certificate, n_nonzero, changed), ok


def run(flat: Flat, state: State, tol: Array, limit: Array) -> tuple[State, Info, Array]:
    """Up to ``limit`` steps, a chunk at most; the history of those taken, and their number."""

    def body(carry: tuple) -> tuple:
        state, history, k = carry
        after, info, ok = tried(flat, state)
        # a refused trial leaves its row to the next
        history = jax.tree.map(lambda rows, value: rows.at[k].set(value), history, info)
        return after, history, k + ok

    zeros = jnp.zeros(CHUNK, state.w.dtype)
    history = Info(zeros, zeros, zeros, jnp.zeros(CHUNK, int), jnp.zeros(CHUNK, bool))
    going = lambda c: (c[0].certificate > tol) & ~c[0].stalled & (c[2] < limit)  # noqa: E731
    return lax.while_loop(going, body, (state, history, jnp.zeros((), jnp.int32)))


@program("lanes")
def chunk(
    problem: Problem, W: Weights, state: State, tol: Array, limit: Array, lanes: bool
) -> tuple[State, Info, Array]:
    """Up to ``limit`` steps, a chunk at most; ``W`` gives only the shapes."""

    def one(W: Weights, state: State) -> tuple[State, Info, Array]:
        return run(flatten(problem, W)[1], state, tol, limit)

    return jax.vmap(one)(W, state) if lanes else one(W, state)


@program()
def trial(problem: Problem, W: Weights, state: State) -> tuple[State, Info, Array]:
    """One trial, where rows are too many for more in one program."""
    return tried(flatten(problem, W)[1], state)
