"""From dense to sparse: one problem after another, each started from the solution of the last.

``W = 0`` is a stationary point of every deep network, so a path cannot begin there: it begins where the
penalty is weak, and follows that solution until nothing is left of it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from deepprox.estimators._base import Posed
from deepprox.runtime import precision
from deepprox.selection.strength import Strength
from deepprox.solve import Solution
from deepprox.struct import replace

WHOLE = 50_000  # weights up to which a network stays whole along a path: it compiles once
LOWEST = 1e-6  # share of its beginning to which a grid that begins empty is moved down
LONGER = 3  # a path that is not empty at its end goes on to this many times its length at most


class Walk:
    """The problem of one estimator and one data set at any strength."""

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
        self.model = model
        inputs, Y, weight = model._read(X, y, sample_weight)
        self.dtype = inputs.dtype
        with precision(self.dtype):
            self.strength = Strength.of(model, inputs.shape[1], Y.shape[1], self.dtype)
            self.base = model._pose(inputs, Y, weight)

    def posed(self, alpha: float, inputs: np.ndarray | None = None) -> Posed:
        """The problem at this strength, and on these inputs alone where they are given."""
        network = self.strength.apply(self.base.problem.network, alpha)
        problem = replace(self.base.problem, network=network)
        if inputs is not None:
            problem = replace(problem, X=problem.X * inputs.astype(self.dtype))
        return self.base._replace(problem=problem)

    def solve(
        self, alpha: float, last: Solution | None = None, inputs: np.ndarray | None = None, **changes: Any
    ) -> Solution:
        """The solution at this strength, from random starts or from the last, on all inputs or on some."""
        W, memory = (None, None) if last is None else (last.W, last.memory)
        if W is not None and inputs is not None:
            W = (W[0] * np.concatenate([[True], inputs]).astype(self.dtype), *W[1:])
        with precision(self.dtype):
            posed = self.posed(alpha, inputs)
            return self.model._solve(posed, W=W, memory=memory, uncut=WHOLE, **changes)

    def grid(self, count: int, eps: float) -> np.ndarray:
        """``count`` strengths, geometrically, from ``eps`` times that which empties a lasso up to it.

        A network may empty sooner or later than a lasso: a walk goes on until it does.
        """
        problem = self.base.problem
        X, y, weight = (np.asarray(a, float) for a in (problem.X, problem.y, problem.weight))
        covariance = np.abs(((X - weight @ X) * weight[:, None]).T @ (y - weight @ y)).max()
        end = covariance if covariance > 0 else 1.0
        return np.geomspace(eps * end, end, count)

    def ended(self, found: Solution, dense: Solution) -> bool:
        """Whether nothing is left, or, where no weight is ever zero, next to nothing."""
        if not found.live.inputs.any():
            return True
        if sum(found.n_nonzero) < sum(w.size for w in found.W):
            return False
        explained = self.null_loss - np.array([found.loss, dense.loss])
        return bool(explained[0] <= 0.01 * explained[1])

    @property
    def null_loss(self) -> float:
        """The mean loss of the best constant prediction."""
        problem = self.base.problem
        with precision(self.dtype):
            mean = np.asarray(problem.weight) @ np.asarray(problem.y)
            eta = np.broadcast_to(np.asarray(problem.loss.inverse_mean(mean)), problem.y.shape)
            return float(problem.data_loss(eta))


class Walked(NamedTuple):
    """A solution at every strength that was reached, and whether it is that of the weakest, relaxed."""

    alphas: np.ndarray
    solutions: list[Solution]
    interrupted: bool
    relaxed: bool


class Way(NamedTuple):
    """How to walk.

    ``until_empty`` lets a path stop early, or go on in the same steps, so that it ends with the first empty
    network. ``back`` then walks the way back as well, and keeps the lower objective at every strength.
    ``relax`` gives, in place of every network, that of the weakest strength on the inputs it has left.
    ``max_iter`` bounds the iterations at every strength after the first.
    """

    until_empty: bool = False
    back: bool = False
    relax: bool = False
    max_iter: int | None = None


Step = Callable[[int, int, float, Solution], None]


def walk(problem: Walk, alphas: Sequence[float], way: Way, told: Step | None = None) -> Walked:
    """Solutions at growing strengths, each from the last; interrupting keeps those that are done."""
    todo, done, interrupted = list(alphas), list[float](), False
    found, shown = list[Solution](), list[Solution]()
    ratio = todo[-1] / todo[-2] if len(todo) > 1 else 1.0
    changes: dict[str, Any] = {} if way.max_iter is None else {"max_iter": way.max_iter}
    try:
        while len(done) < len(todo):
            alpha = todo[len(done)]
            if not found:
                solution = here = problem.solve(alpha)
                if way.until_empty and not solution.live.inputs.any() and alpha > LOWEST * alphas[0]:
                    todo = [value / 10 for value in todo]  # begun too late: nothing is left
                    continue
            else:
                solution = problem.solve(alpha, found[-1], **changes)
                here = relaxed(problem, todo[0], solution, shown[-1], changes) if way.relax else solution
            done.append(alpha)
            found.append(solution)
            shown.append(here)
            if told:
                told(len(done), len(todo), alpha, here)
            if way.until_empty and not solution.live.inputs.any():
                break
            longer = way.until_empty and ratio > 1 and len(done) == len(todo) < LONGER * len(alphas)
            # within tol without a single step: more strength would change nothing
            if longer and solution.n_iter and not problem.ended(solution, found[0]):
                todo.append(alpha * ratio)
        if way.back and not way.relax:
            walk_back(problem, done, shown, told)
    except KeyboardInterrupt:
        if not found:
            raise
        interrupted = True
    return Walked(np.array(done[: len(shown)]), shown, interrupted, way.relax)


def relaxed(
    problem: Walk, weakest: float, selected: Solution, last: Solution, changes: dict[str, Any]
) -> Solution:
    """The network of the weakest strength on the inputs that are left, from the last of its kind."""
    inputs = selected.live.inputs
    if not inputs.any():
        return selected
    if (inputs == last.live.inputs).all():
        return last
    return problem.solve(weakest, last, inputs, **changes)


def walk_back(problem: Walk, alphas: list[float], found: list[Solution], told: Step | None) -> None:
    """From the last network that is not empty towards the dense one; the lower objective stays."""
    alive = [k for k, solution in enumerate(found) if solution.live.inputs.any()]
    for k in reversed(alive[:-1]):
        solution = problem.solve(alphas[k], found[k + 1])
        if solution.objective < found[k].objective and solution.status != "diverged":
            found[k] = solution
        if told:
            told(len(alive) - 1 - k, len(alive) - 1, alphas[k], found[k])
