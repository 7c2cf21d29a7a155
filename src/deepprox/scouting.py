"""A few steps of every start along every route: which of them goes on."""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from deepprox.diary import Diary, Stages
from deepprox.joining import quasi_newton
from deepprox.joining.certificate import ravel, unravel
from deepprox.joining.kinks import no_slopes
from deepprox.joining.live import SMALL
from deepprox.joining.point import look
from deepprox.problem import Problem, Weights
from deepprox.struct import replace

SCOUT = 150  # quasi-Newton steps of every start, at most, before the best goes on alone
FORK = 2  # chunks after which a start chooses between two routes
LEAKY = 200  # steps with leaky links, or a third of those that are left
OVER = 5  # times as many weights of inputs as observations: with so many single observations can be learnt
BEHIND = 1.0  # a route that is above the lowest by more than this share of it is given up
APART = 1e-3  # share of its objective that a chunk must gain some start for the scouting to go on


def scout(
    problem: Problem, routes: list[list[Weights]], tol: float, most: int, diary: Diary, stages: Stages
) -> tuple[list[Weights], np.ndarray, np.ndarray]:
    """At most ``most`` quasi-Newton steps of every start: its weights, its objective, and its route.

    The split phase finds better minima of most problems, and on some loses what only the starting weights
    had: after the same few steps along every route, a start goes on along the lowest.
    """
    lanes, route = len(routes[0]) > 1, np.zeros(len(routes[0]), int)
    if not lanes and len(routes) == 1:
        return routes[0], np.zeros(1), route
    W, states = stack(routes[0]), [begin(problem, starts) for starts in routes]
    aim = np.asarray(10 * tol, W[0].dtype)  # the best is certified later
    most, state = min(SCOUT, most), states[0]
    if len(routes) > 1:
        told: list[list[tuple]] = [[] for _ in routes]
        racing = list(range(len(states)))
        for _ in range(FORK):
            for r in racing:
                states[r], notes = stages.run(first_steps, problem, W, states[r], aim)
                told[r] += notes
            each = np.array([np.nan_to_num(np.atleast_1d(one.objective), nan=np.inf) for one in states])
            lowest = each.min(axis=0)
            racing = [r for r in racing if (each[r] <= lowest + BEHIND * np.abs(lowest)).any()]
        route = np.argmax(each <= lowest + APART * np.abs(lowest), axis=0)  # of two that tie, the first
        for r, notes in enumerate(told):
            for info, taken in notes:
                diary.chunk("join", info, np.where(route == r, taken, 0))
        state, most = pick(states, route, lanes), most - FORK * quasi_newton.CHUNK
    if lanes:
        state = stages.run(steps, problem, W, state, aim, most, partial(diary.chunk, "join"), stages)
    found = ends(problem, state, routes[0][0])
    return found, np.atleast_1d(np.array(state.objective, float)), route


def leak(
    problem: Problem, starts: list[Weights], tol: float, most: int, diary: Diary, stages: Stages
) -> list[Weights]:
    """The starts after some steps with leaky links, where inputs have many weights for so few observations.

    An observation on the flat side of a ReLU has no gradient there: where each counts, a minimum may leave
    it there for good. A leaky link brings it over, before the link itself goes on.
    """
    network, n_weights = problem.network.leaky(), sum(w.size for w in starts[0])
    most = min(LEAKY, most // 3 // quasi_newton.CHUNK * quasi_newton.CHUNK)
    if network is problem.network or n_weights <= SMALL or not most:
        return starts
    if starts[0][0].size <= OVER * float(problem.allsum(np.count_nonzero(np.asarray(problem.weight)))):
        return starts
    easier = replace(problem, network=network)
    W, state = stack(starts), begin(easier, starts)
    aim, note = np.asarray(10 * tol, W[0].dtype), partial(diary.chunk, "leaky")
    state = stages.run(steps, easier, W, state, aim, most, note, stages)
    return ends(easier, state, starts[0])


def ends(problem: Problem, state: quasi_newton.State, W: Weights) -> list[Weights]:
    """The weights of every start; the prox gives them the structure of a penalty with kinks elsewhere."""
    found = [unravel(w, W) for w in np.atleast_2d(state.w)]
    if problem.network.smooth:
        return found
    lengths = np.atleast_1d(state.step)
    looks = [look(problem, V, no_slopes(problem), step) for V, step in zip(found, lengths)]
    return [unravel(at.moved, W) for at in looks]


def begin(problem: Problem, starts: list[Weights]) -> quasi_newton.State:
    """The states from which quasi-Newton steps begin, side by side."""
    looks = [look(problem, W, no_slopes(problem), 1.0) for W in starts]
    rows = [(ravel(W), at.objective, at.loss, at.gradient, at.certificate) for W, at in zip(starts, looks)]
    return quasi_newton.start(*stack(rows))


def first_steps(
    problem: Problem, W: Weights, state: quasi_newton.State, tol: np.ndarray
) -> tuple[quasi_newton.State, list[tuple]]:
    """A chunk of steps, after which routes are compared, and their rows."""
    notes: list[tuple] = []
    state = steps(problem, W, state, tol, quasi_newton.CHUNK, lambda *rows: notes.append(rows), Stages())
    return state, notes


def steps(
    problem: Problem,
    W: Weights,
    state: quasi_newton.State,
    tol: np.ndarray,
    most: int,
    note: Callable,
    stages: Stages,
) -> quasi_newton.State:
    """At most so many quasi-Newton steps, enough to tell local minima apart; ``W`` gives the shapes."""
    state, first = stages.resumed((state, 0))
    state = problem.allsum.resident(state)
    for k in range(first, -(-most // quasi_newton.CHUNK)):
        before = np.asarray(state.objective)
        limit = np.int32(min(quasi_newton.CHUNK, most - k * quasi_newton.CHUNK))
        state, info, taken = quasi_newton.chunk(problem, W, state, tol, limit, lanes=before.ndim > 0)
        note(info, np.atleast_1d(taken))
        if (before - np.asarray(state.objective) <= APART * np.abs(before)).all():
            break
        stages.reached(state, k + 1)
    return state


def pick(states: list[quasi_newton.State], route: np.ndarray, lanes: bool) -> quasi_newton.State:
    """The state of every start along its route."""
    if not lanes:
        return states[int(route[0])]
    every = np.arange(len(route))
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(a) for a in leaves])[route, every], *states)


def stack(rows: list[tuple]) -> tuple:
    """One tuple of arrays with a leading axis of starts; the tuple itself if there is one start."""
    if len(rows) == 1:
        return tuple(np.asarray(a) for a in rows[0])
    return tuple(np.stack(arrays) for arrays in zip(*rows, strict=True))


def unstack(W: Weights, lanes: bool) -> list[Weights]:
    """The weights of every start."""
    W = tuple(np.asarray(w) for w in W)
    return list(zip(*W, strict=True)) if lanes else [W]
