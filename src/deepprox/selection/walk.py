"""From dense to sparse: one problem after another, each started from the solution of the last.

``W = 0`` is a stationary point of every deep network, so a path cannot begin there: it begins where the
penalty is weak, and follows that solution until nothing is left of it.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from deepprox.arrays import answers_numpy
from deepprox.blocks import Block
from deepprox.design import Design, Whole
from deepprox.diary import Stages
from deepprox.estimators._checkpoint import checkpointing
from deepprox.estimators._limits import need_none
from deepprox.estimators.session import Posed, Session
from deepprox.joining import working_set
from deepprox.joining.kinks import no_slopes
from deepprox.joining.live import live_part, live_widths
from deepprox.joining.point import Point, look
from deepprox.joining.working_set import takes
from deepprox.losses import Loss
from deepprox.network import Weights
from deepprox.runtime import precision
from deepprox.selection.strength import Strength
from deepprox.solution import Solution
from deepprox.solve import all_allowed, in_dtype, initial
from deepprox.struct import replace

AT_ONCE = 100  # times the tolerance, from where one Newton step reaches it
POINTS = 4  # solutions through which a path is continued
LOWEST = 1e-6  # share of its beginning to which a grid that begins empty is moved down
LONGER = 3  # a path that is not empty at its end goes on to this many times its length at most
DOUBLED = 2.0  # from one strength to the next, in search of the empty network
SURE = 2.0  # times as strong, up to which all units are taken to pay where it is not known
NEAR = 1.01  # neighbours that are not told apart any further


@jax.jit
def _pull(loss: Loss, eta: Array, y: Array) -> Array:
    pull: Array = jax.grad(lambda eta: loss.value(eta, y).sum())(eta)
    return pull


def pull_of(loss: Loss, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Derivatives of the loss of every observation, by a formula where there is one."""
    if loss.by_formula and answers_numpy(loss):
        return np.asarray(jax.tree.map(lambda leaf: np.asarray(leaf, float), loss).derivatives(eta, y)[0])
    return np.asarray(_pull(in_dtype(loss, np.float64), eta, y))


class Walk:
    """The problem of one estimator and one data set at any strength."""

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
        self.model, self.session, self.stages = model, Session(model), Stages()
        self.session.chooses = False  # a path has strengths of its own
        self.widths: tuple[int, ...] = ()
        self.due = 0.0  # the strength from which on a unit may not pay
        need_none(self.session.settings, "A path goes through all numbers of weights")
        rows = self.session.read(X, y, sample_weight)
        self.dtype = rows.X.dtype
        with precision(self.dtype):
            self.strength = Strength.of(model, rows.X.shape[1], rows.y.shape[1], self.dtype)
            self.base = self.session.pose(rows)
        if self.base.problem.allsum.world > 1:
            raise ValueError("A path needs all observations in one process: fit one strength at a time.")

    @property
    def n_weights(self) -> int:
        """How many weights its network has."""
        problem = self.base.problem
        return sum(a * b for a, b in problem.network.shapes(problem.X.shape[1]))

    def keeping(self, grid: np.ndarray, way: "Way") -> AbstractContextManager[Stages]:
        """The solutions of a walk in the folder of the estimator's checkpoints, if it has one."""
        model, told = self.model, np.array([float(value or 0) for value in way])
        problem, settings = self.base.problem, self.session.settings
        return checkpointing(model.checkpoint, model.resume, problem, settings, (grid, told))

    def posed(self, alpha: float, inputs: np.ndarray | None = None) -> Posed:
        """The problem at this strength, and on these inputs alone where they are given."""
        network = self.strength.apply(self.base.problem.network, alpha)
        problem = replace(self.base.problem, network=network)
        if inputs is not None:
            X = problem.X
            left = X.only(inputs) if isinstance(X, Design) else X * inputs.astype(self.dtype)
            problem = replace(problem, X=left)
        return self.base._replace(problem=problem)

    def solve(
        self,
        alpha: float,
        last: Solution | None = None,
        inputs: np.ndarray | None = None,
        W: Weights | None = None,
        **changes: Any,
    ) -> Solution:
        """The solution at this strength, from random starts or from the last, on all inputs or on some.

        ``W`` is where to start, if not from the weights of the last.
        """
        memory = None if last is None else last.memory
        W = last.W if W is None and last is not None else W
        if W is not None and inputs is not None:
            W = (self.base.problem.network.blocks[0].without(W[0], ~inputs), *W[1:])
        with precision(self.dtype):
            posed = self.posed(alpha, inputs)
            if last is not None:
                changes = {"tries": int(alpha >= self.due)} | changes
            solve = partial(self.session.run, posed, W=W, memory=memory, widths=self.widths, **changes)
            found: Solution = self.stages.run(solve)
        # what follows has the widths of the first, and runs the same programs
        self.widths = self.widths or live_widths(found.live)
        if found.lasts is not None:
            self.due = alpha * min(found.lasts, SURE)
        return found

    def ahead(self, alpha: float, before: "list[Stage]") -> tuple[Weights, float]:
        """Weights to start from, and about their objective.

        They are on a polynomial in ``log alpha`` through more and more of the last solutions with the same
        zeros, since a path is smooth only there, as long as that lowers the objective; or through as many as
        are kept, where the zeros have long been the same and a Newton step will do from there.
        """
        last = before[: -1 - POINTS : -1]
        near = last[0].found
        # the last weights as they are: what is penalised in proportion costs as much more
        W, level = near.W, near.objective + (alpha / last[0].alpha - 1) * near.penalty
        if isinstance(self.base.problem.X, Design) or takes(self.base.problem):
            return W, level
        zeros = [np.concatenate([w.ravel() == 0 for w in stage.found.W]) for stage in last]
        same = [*((one == zeros[0]).all() for one in zeros), False].index(False)
        with precision(self.dtype):
            part = live_part(self.posed(alpha).problem, near.live, self.widths)
            none = no_slopes(part.problem)

            def through(points: list[Stage]) -> tuple[Weights, Point]:
                trial = continued(alpha, points, near.W)
                return trial, look(part.problem, part.take(trial), none, 1.0)

            if same == POINTS:
                trial, at = through(last)
                if float(at.certificate) <= AT_ONCE * self.model.tol:
                    return trial, float(at.objective)
            for m in range(2, min(max(same, 2), len(last)) + 1):
                trial, at = through(last[:m])
                if not float(at.objective) < level:
                    break
                W, level = trial, float(at.objective)
        return W, level

    def grid(self, count: int, eps: float) -> np.ndarray:
        """``count`` strengths, geometrically, from ``eps`` times that which empties a lasso up to it.

        A network may empty sooner or later than a lasso: a walk goes on until it does.
        """
        problem: Any = self.base.problem
        blocks = problem.network.blocks
        y, weight = (np.asarray(a, float) for a in (problem.y, problem.weight))
        X = problem.X if isinstance(problem.X, Design) else Whole(np.asarray(problem.X)).doubled()
        # how the loss of an empty network falls, and what a bias leaves of the inputs
        with precision(np.float64):
            eta = np.broadcast_to(problem.level if blocks[-1].bias else 0.0, y.shape).astype(float)
            pull = pull_of(problem.loss, eta, y)
        pull = weight[:, None] * (pull - weight @ pull if blocks[0].bias else pull)
        covariance = np.abs(X.gradient(pull)).max()
        # a little more: whether the last weight is zero is not for rounding to say
        end = covariance * (1 + 100 * np.finfo(self.dtype).eps) if covariance > 0 else 1.0
        return np.geomspace(eps * end, end, count)

    def ended(self, found: Solution, dense: Solution) -> bool:
        """Whether nothing is left, or, where no weight is ever zero, next to nothing."""
        if not found.live.inputs.any():
            return True
        if sum(found.n_nonzero) < self.base.problem.network.n_weights(found.W):
            return False
        explained = self.null_loss - np.array([found.loss, dense.loss])
        return bool(explained[0] <= 0.01 * explained[1])

    @cached_property
    def null_loss(self) -> float:
        """The mean loss of the best constant prediction."""
        problem = self.base.problem
        with precision(self.dtype):
            W = tuple(np.zeros_like(w) for w in initial(problem, 0)[0])
            Block.biases(W[-1])[:] = problem.level
            W = all_allowed(problem.network, W)
            if takes(problem):
                return working_set.loss_at(problem, W)
            if isinstance(problem.X, Design):  # without weights, all rows are alike
                eta = np.broadcast_to(Block.biases(W[-1]), problem.y.shape)
                return float(problem.data_loss(jax.numpy.asarray(eta)))
            return float(look(problem, W, no_slopes(problem), 1.0).loss)


class Walked(NamedTuple):
    """A solution at every strength that was reached, and whether it is that of the weakest, relaxed."""

    alphas: np.ndarray
    solutions: list[Solution]
    interrupted: bool
    relaxed: bool


class Way(NamedTuple):
    """How to walk.

    ``until_empty`` lets a path stop early, or go on in the same steps, so that it ends with the first empty
    network. ``by_inputs`` puts the strengths where inputs leave. ``back`` then walks the way back as well,
    and keeps the lower objective at every strength. ``relax`` gives, in place of every network, that of the
    weakest strength on the inputs it has left. ``max_iter`` bounds the iterations at every strength after the
    first.
    """

    until_empty: bool = False
    by_inputs: bool = False
    back: bool = False
    relax: bool = False
    max_iter: int | None = None


Step = Callable[[int, int, float, Solution], None]


class Stage(NamedTuple):
    """A strength, the solution found there, and what stands for it in the path: the same, or relaxed."""

    alpha: float
    found: Solution
    shown: Solution

    @property
    def n_inputs(self) -> int:
        """How many inputs are left."""
        return int(self.found.live.inputs.sum())


def continued(alpha: float, stages: list[Stage], near: Weights) -> Weights:
    """``sum_j share_j W_j``, Lagrange's polynomial in ``log alpha`` through the solutions of some stages.

    A weight that is zero in ``near``, or has another sign there, is zero; biases are free.
    """
    x, out = np.log([stage.alpha / alpha for stage in stages]), []
    others = [np.delete(x, j) for j in range(len(x))]
    shares = [np.prod(rest / (rest - x_j)) for x_j, rest in zip(x, others)]
    for last, *through in zip(near, *(stage.found.W for stage in stages), strict=True):
        w = np.tensordot(shares, through, axes=1)
        gone = w * last <= 0
        Block.biases(gone)[:] = Block.biases(last) == 0
        out.append(np.where(gone, 0, w).astype(last.dtype))
    return tuple(out)


class Trail:
    """Stages in the order of their strengths, each from the one before it."""

    def __init__(self, problem: Walk, way: Way, told: Step | None) -> None:
        self.problem, self.way, self.told = problem, way, told
        self.stages: list[Stage] = []
        self.changes: dict[str, Any] = {} if way.max_iter is None else {"max_iter": way.max_iter}

    def begin(self, alpha: float, total: int) -> None:
        """The first stage; its strength goes down by tens where nothing would be left to follow."""
        lowest = LOWEST * alpha
        solution = self.problem.solve(alpha)
        while self.way.until_empty and not solution.live.inputs.any() and alpha > lowest:
            alpha /= 10
            solution = self.problem.solve(alpha)
        self._put(0, Stage(alpha, solution, solution), total)

    def go(self, alpha: float, total: int, last: int = -1) -> Stage:
        """The stage at a strength, from number ``last`` and put after it."""
        last %= len(self.stages)
        before = self.stages[last]
        W, changes = None, self.changes
        if not changes:
            W, level = self.problem.ahead(alpha, self.stages[: last + 1])
            # without the units that do not pay nothing would be left of a network that does not pay itself,
            # and without its only unit nothing of one that does
            lone = all(units.sum() <= 1 for units in before.found.live.reads[1:])
            changes = {"tries": 0} if lone or level > self.problem.null_loss else {}
        solution = here = self.problem.solve(alpha, before.found, W=W, **changes)
        if self.way.relax:
            here = relaxed(self.problem, self.stages[0].alpha, solution, before.shown, self.changes)
        return self._put(last + 1, Stage(alpha, solution, here), total)

    def _put(self, place: int, stage: Stage, total: int) -> Stage:
        self.stages.insert(place, stage)
        if self.told:
            self.told(len(self.stages), total, stage.alpha, stage.shown)
        return stage

    def ended(self) -> bool:
        """Whether the last stage is empty, or as good as empty."""
        return self.problem.ended(self.stages[-1].found, self.stages[0].found)


def walk(problem: Walk, alphas: Sequence[float], way: Way, told: Step | None = None) -> Walked:
    """Solutions at growing strengths, each from the last; interrupting keeps those that are done."""
    trail, interrupted = Trail(problem, way, told), False
    back: dict[int, Solution] = {}
    try:
        (by_inputs if way.by_inputs else one_after_another)(trail, alphas)
        if way.back and not way.relax:
            walk_back(trail, back)
    except KeyboardInterrupt:
        if not trail.stages:
            raise
        interrupted = True
    solutions = [back.get(k, stage.shown) for k, stage in enumerate(trail.stages)]
    return Walked(np.array([stage.alpha for stage in trail.stages]), solutions, interrupted, way.relax)


def one_after_another(trail: Trail, alphas: Sequence[float]) -> None:
    """All strengths in turn; with ``until_empty`` up to the first empty network, in the same steps."""
    until_empty, most = trail.way.until_empty, LONGER * len(alphas)
    ratio = alphas[-1] / alphas[-2] if len(alphas) > 1 else 1.0
    trail.begin(alphas[0], len(alphas))
    lower = trail.stages[0].alpha / alphas[0]
    todo = [lower * alpha for alpha in alphas]
    while len(trail.stages) < len(todo):
        stage = trail.go(todo[len(trail.stages)], len(todo))
        if until_empty and not stage.n_inputs:
            break
        longer = until_empty and ratio > 1 and len(trail.stages) == len(todo) < most
        # within tol without a single step: more strength would change nothing
        if longer and stage.found.n_iter and not trail.ended():
            todo.append(stage.alpha * ratio)


def by_inputs(trail: Trail, alphas: Sequence[float]) -> None:
    """As many strengths as given, from the weakest of them on, where inputs leave.

    Doubled until nothing is left; then between those two neighbours that differ most in their number of
    inputs, in proportion, from the denser one.
    """
    count = len(alphas)
    trail.begin(alphas[0], count)
    while len(trail.stages) < count and not trail.ended():
        trail.go(DOUBLED * trail.stages[-1].alpha, count)
    while len(trail.stages) < count:
        alpha, n = (np.array(column) for column in zip(*((s.alpha, s.n_inputs) for s in trail.stages)))
        ratio, left = alpha[1:] / alpha[:-1], np.maximum(n, 0.5)
        apart = np.where((n[:-1] - n[1:] > 1) & (ratio > NEAR), np.log(left[:-1] / left[1:]), 0.0)
        widest = int(np.argmax(apart))
        if apart[widest] <= 0:
            break
        trail.go(float(alpha[widest] * np.sqrt(ratio[widest])), count, widest)
    # one empty network, at the end, is enough
    trail.stages[:] = [*(stage for stage in trail.stages[:-1] if stage.n_inputs), trail.stages[-1]]


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


def walk_back(trail: Trail, better: dict[int, Solution]) -> None:
    """From the last network that is not empty towards the dense one; ``better`` takes lower objectives."""
    alive = [k for k, stage in enumerate(trail.stages) if stage.n_inputs]
    for k in reversed(alive[:-1]):
        stage, after = trail.stages[k], trail.stages[k + 1].found
        solution = trail.problem.solve(stage.alpha, better.get(k + 1, after))
        if solution.objective < stage.found.objective and solution.status != "diverged":
            better[k] = solution
        if trail.told:
            trail.told(len(alive) - 1 - k, len(alive) - 1, stage.alpha, better.get(k, stage.found))
