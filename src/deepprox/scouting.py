"""A few steps of every start along every route: which of them goes on."""

from collections.abc import Callable
from operator import attrgetter

import jax
import numpy as np

from deepprox.diary import Diary, Stages
from deepprox.joining.descent import APART, Descent, begin, descend, points, stack
from deepprox.joining.live import SMALL
from deepprox.joining.quasi_newton import CHUNK, State
from deepprox.problem import Problem, Weights
from deepprox.struct import replace

SCOUT = 150  # quasi-Newton steps of every start, at most, before the best goes on alone
FORK = 2  # chunks after which a start chooses between two routes
LEAKY = 200  # steps with leaky links, or a third of those that are left
OVER = 5  # times as many weights of inputs as observations: with so many single observations can be learnt


TIED = attrgetter("tied")


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
    aim = 10 * tol  # the best is certified later
    most, state = min(SCOUT, most), states[0]
    if len(routes) > 1:
        told: list[list[Descent]] = [[] for _ in routes]
        for chunks, state in zip(told, states, strict=True):
            for _ in range(FORK):
                chunks.append(stages.run(descend, problem, W, state, aim, CHUNK, TIED))
                state = chunks[-1].state
        each = np.nan_to_num([np.atleast_1d(chunks[-1].objective) for chunks in told], nan=np.inf)
        lowest = each.min(axis=0)
        route = np.argmax(each <= lowest + APART * np.abs(lowest), axis=0)  # of two that tie, the first
        for r, chunks in enumerate(told):
            for at in chunks:
                diary.chunk("join", at.info, np.where(route == r, at.taken, 0))
        state, most = pick([chunks[-1].state for chunks in told], route, lanes), most - FORK * CHUNK
    if lanes:
        state = stages.run(descend, problem, W, state, aim, most, TIED, writer(diary, "join"), stages).state
    found = points(problem, state, routes[0][0])
    return found, np.atleast_1d(np.array(state.objective, float)), route


def leak(
    problem: Problem, starts: list[Weights], tol: float, most: int, diary: Diary, stages: Stages
) -> list[Weights]:
    """The starts after some steps with leaky links, where inputs have many weights for so few observations.

    An observation on the flat side of a ReLU has no gradient there: where each counts, a minimum may leave
    it there for good. A leaky link brings it over, before the link itself goes on.
    """
    network = problem.network.leaky()
    most = min(LEAKY, most // 3 // CHUNK * CHUNK)
    if network is problem.network or problem.n_weights <= SMALL or not most:
        return starts
    n_out, n_columns = problem.network.shapes(problem.n_inputs)[0]
    if n_out * n_columns <= OVER * float(problem.allsum(np.count_nonzero(np.asarray(problem.weight)))):
        return starts
    easier = replace(problem, network=network)
    steps = easier, stack(starts), begin(easier, starts), 10 * tol, most, TIED, writer(diary, "leaky"), stages
    return points(easier, stages.run(descend, *steps).state, starts[0])


def writer(diary: Diary, phase: str) -> Callable[[Descent], None]:
    """What writes every chunk of steps down."""
    return lambda at: diary.chunk(phase, at.info, at.taken)


def pick(states: list[State], route: np.ndarray, lanes: bool) -> State:
    """The state of every start along its route."""
    if not lanes:
        return states[int(route[0])]
    every = np.arange(len(route))
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(a) for a in leaves])[route, every], *states)
