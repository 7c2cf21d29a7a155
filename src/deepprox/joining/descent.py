"""Descent: quasi-Newton steps of one start or of many side by side, until a rule says that they are enough.

Programs take a chunk of steps at a time. After each the rule sees what the chunk did, and says whether to
stop; that a start took fewer steps than it might, since it has arrived or no step goes down, needs no rule.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from deepprox.diary import Stages
from deepprox.joining import quasi_newton
from deepprox.joining.certificate import ravel, unravel
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.joining.quasi_newton import CHUNK, Info, Memory, State
from deepprox.problem import Problem, Weights

APART = 1e-3  # share of its objective that a chunk gains a start from which more may tell minima apart
REFUSED = 6  # trials in a row that do not descend, after which a pass over the rows is not worth its time


class Descent(NamedTuple):
    """Where steps have led, how many there were, and what the last chunk of them did, of every start."""

    state: State
    total: int
    before: np.ndarray  # the objective
    info: Info | None = None
    taken: Any = 0
    limit: int = 1

    @property
    def objective(self) -> np.ndarray:
        """The objective where they are."""
        return np.asarray(self.state.objective)

    @property
    def rate(self) -> float:
        """How much each step of the last chunk lowered the objective of the one start."""
        return (float(self.before) - float(self.objective)) / max(int(self.taken), 1)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The history of the last chunk of the one start."""
        return [] if self.info is None else quasi_newton.rows(self.info, self.taken)

    @property
    def spent(self) -> bool:
        """Whether every start took fewer steps than it might have."""
        return bool((np.asarray(self.taken) < self.limit).all())

    @property
    def tied(self) -> bool:
        """Whether the last chunk gained no start much: enough to tell local minima apart."""
        return bool((self.before - self.objective <= APART * np.abs(self.before)).all())

    @property
    def memory(self) -> Memory:
        """What is known of the curvature."""
        return Memory(self.state.S, self.state.Y, self.state.n_pairs, self.state.step)


Rule = Callable[[Descent], bool]


def begin(problem: Problem, starts: list[Weights], memory: Memory | None = None) -> State:
    """The state from which steps begin, with an axis of starts where there are several."""
    looks = [look(problem, W, no_slopes(problem), 1.0) for W in starts]
    rows = [(ravel(W), at.objective, at.loss, at.gradient, at.certificate) for W, at in zip(starts, looks)]
    w, objective, loss, gradient, certificate = stack(rows)
    return quasi_newton.start(w, objective, loss, gradient, certificate, memory)


def descend(
    problem: Problem,
    W: Weights,
    state: State,
    tol: float,
    most: int,
    until: Rule,
    tell: Callable[[Descent], Any] | None = None,
    stages: Stages | None = None,
) -> Descent:
    """At most ``most`` steps of every start from ``state``, to within ``tol``; ``W`` gives the shapes.

    ``tell`` hears of every chunk. A stage that was interrupted goes on from its last chunk.
    """
    stages, aim = stages or Stages(), np.asarray(tol, state.w.dtype)
    state, total = stages.resumed((state, 0))
    at = Descent(problem.allsum.resident(state), total, np.asarray(state.objective))
    steps = a_chunk if problem.allsum.in_memory else by_trials
    while at.total < most:
        limit, before = min(CHUNK, most - at.total), at.objective
        state, info, taken = steps(problem, W, at.state, aim, limit, stages)
        taken = np.asarray(taken)
        at = Descent(state, at.total + int(taken.max()), before, info, taken, limit)
        if tell is not None:
            tell(at)
        if at.spent or until(at):
            break
        stages.reached(at.state, at.total)
    return at


def a_chunk(
    problem: Problem, W: Weights, state: State, aim: np.ndarray, limit: int, stages: Stages
) -> tuple[State, Info, Any]:
    """Up to ``limit`` steps in one program."""
    return quasi_newton.chunk(problem, W, state, aim, np.int32(limit), lanes=np.ndim(state.objective) > 0)


def by_trials(
    problem: Problem, W: Weights, state: State, aim: np.ndarray, limit: int, stages: Stages
) -> tuple[State, Info, Any]:
    """The same, a program for each trial: where it is a pass over the rows, no more than one has time for."""
    if np.ndim(state.objective):
        raise ValueError("Rows that are streamed are fitted from one start.")
    state, rows, refused = stages.resumed_within((state, [], 0))
    while float(state.certificate) > float(aim) and not bool(state.stalled) and len(rows) < limit:
        state, info, ok = quasi_newton.trial(problem, W, state)
        refused = 0 if bool(ok) else refused + 1
        if bool(ok):
            rows.append(jax.tree.map(np.asarray, info))
        if refused == REFUSED:
            state = state._replace(stalled=jnp.asarray(True))
        stages.reached_within(state, [*rows], refused)
    history: Any = [np.array([row[k] for row in rows]) for k in range(len(Info._fields))]
    return state, Info(*history), len(rows)


def points(problem: Problem, state: State, W: Weights) -> list[Weights]:
    """The weights of every start; the prox gives them the structure of a penalty with kinks elsewhere."""
    found = [unravel(w, W) for w in np.atleast_2d(state.w)]
    if problem.network.smooth:
        return found
    lengths = np.atleast_1d(state.step)
    looks = [look(problem, V, no_slopes(problem), step) for V, step in zip(found, lengths)]
    return [unravel(at.moved, W) for at in looks]


def stack(rows: list[tuple]) -> tuple:
    """One tuple of arrays with a leading axis of starts; the tuple itself if there is one start."""
    if len(rows) == 1:
        return tuple(np.asarray(a) for a in rows[0])
    return tuple(np.stack(arrays) for arrays in zip(*rows, strict=True))


def unstack(W: Weights, lanes: bool) -> list[Weights]:
    """The weights of every start."""
    W = tuple(np.asarray(w) for w in W)
    return list(zip(*W, strict=True)) if lanes else [W]
