"""Units that do not pay: without one of them the objective is lower, though no descent leads there.

A unit costs what the penalty charges for its weights. Where the others could do its work for less, the way to
the network without it first leads up. So the unit that would be missed least is left out, the others take
some steps, and the lower of both networks goes on.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deepprox.joining.descent import Descent, begin, descend, points
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.joining.quasi_newton import Memory
from deepprox.problem import Problem, Weights


class Less(NamedTuple):
    """Where quasi-Newton steps led, their history, and what they met.

    ``lasts`` is how many times as strong the penalty may be, about, until another unit does not pay, if one
    was tried.
    """

    W: Weights
    objective: float
    loss: float
    rows: list[dict[str, Any]]
    memory: Memory | None
    lasts: float | None = None


def prune(
    problem: Problem,
    W: Weights,
    tol: float,
    most: int,
    tries: int,
    note: Callable[[str, list[dict[str, Any]]], None],
    known: Memory | None = None,
) -> Less:
    """``W`` without the units that do not pay, in at most ``most`` steps; no memory where all of them do.

    What is ``known`` of the curvature takes ``W`` itself to where it leads first; without, it is near a
    minimum. So many ``tries`` may be in vain before all units that are left are kept.
    """
    found = to_the_end(problem, W, np.inf, tol, 0 if known is None else most, known)
    note("join", found.rows)
    most -= len(found.rows)
    if known is None:
        found = found._replace(W=W, memory=None)
    while most > 0:
        until = np.inf
        for trial in missed_least(problem, found.W)[:tries]:
            less = to_the_end(problem, trial, found.objective, tol, most)
            most -= len(less.rows)
            if less.objective < found.objective:
                note("prune", less.rows)
                found = less._replace(rows=found.rows + less.rows)
                break
            until = min(until, lasts(found, less))
        else:
            return found._replace(lasts=until)
    return found


def lasts(found: Less, less: Less) -> float:
    """How many times as strong the penalty may be until what it charges makes the other network lower."""
    saved = (found.objective - found.loss) - (less.objective - less.loss)
    return 1 + (less.objective - found.objective) / saved if saved > 0 else np.inf


def missed_least(problem: Problem, W: Weights) -> list[Weights]:
    """The network without each of its live units in turn, that first of which the objective is lowest."""
    trials = []
    for l, (block, used) in enumerate(zip(problem.network.blocks, problem.network.used(W)[1:])):
        if block.link.elementwise:  # else what is read is not one unit's
            units = np.flatnonzero(block.by_owner(used))
            trials += [problem.network.without(W, l, int(unit)) for unit in units]
    levels = [float(look(problem, trial, no_slopes(problem), 1.0).objective) for trial in trials]
    return [trials[k] for k in np.argsort(levels)]


def to_the_end(
    problem: Problem, W: Weights, level: float, tol: float, most: int, known: Memory | None = None
) -> Less:
    """Steps from ``W`` until it is clear where they lead, or that it is not below ``level``.

    What is left to gain is taken to fall like one over the square of the number of steps.
    """
    rows: list[dict[str, Any]] = []

    def clear(at: Descent) -> bool:
        now = float(at.objective)
        return at.tied or now - at.rate * at.total / 2 > level

    state = begin(problem, [W], known)
    at = descend(problem, W, state, tol, most, clear, lambda at: rows.extend(at.rows))
    numbers = float(at.objective), float(at.state.loss)
    return Less(points(problem, at.state, W)[0], *numbers, rows, at.memory)
