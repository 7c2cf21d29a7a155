"""The join phase of one start: quasi-Newton until the support settles, then Newton, until certified."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from deepprox.diary import Stages
from deepprox.joining import one_block, working_set
from deepprox.joining.certificate import bounded, ravel, unravel
from deepprox.joining.descent import Descent, begin, descend, points
from deepprox.joining.finish import finish
from deepprox.joining.holding import held_within
from deepprox.joining.kinks import Slopes, any_held, no_slopes
from deepprox.joining.live import Live, Part, canonical, live_part, shrinks, whole
from deepprox.joining.point import Point, certify, look
from deepprox.joining.pruning import prune
from deepprox.joining.quasi_newton import CHUNK, Memory
from deepprox.problem import Problem, Weights

FEW = 1500  # live weights up to which a dense Hessian is formed
FAR = 100  # times the tolerance: a point that is no solution yet
LOOSE = 1e-3  # certificates from here on are reached sooner without Newton
PATIENCE = 400  # quasi-Newton steps after which Newton is tried all the same
WARM = 12  # Newton steps from a warm start: what needs more is no small change
IDLE = 3  # rounds in a row that come no nearer to a solution, after which there is no other
SETTLED = 0.4  # share of a chunk's steps that may still change the support before Newton is tried

Note = Callable[[str, list[dict[str, Any]]], None]


class Joined(NamedTuple):
    """A stationary point in canonical form, or as near to one as the budget allowed.

    ``lasts`` is how many times as strong the penalty may be until one of its units no longer pays, if one was
    tried. ``slopes`` and ``step`` are those that the certificate was found with.
    """

    W: tuple[np.ndarray, ...]
    live: Live
    objective: float
    loss: float
    certificate: float
    n_held: int
    held_within: float
    strict: bool | None
    status: str
    n_iter: int
    memory: Any = None
    lasts: float | None = None
    slopes: Any = None
    step: float = 1.0


class Task(NamedTuple):
    """What stays the same on the way to a solution."""

    problem: Problem
    tol: float
    max_iter: int
    note: Note
    stages: Stages
    widths: tuple[int, ...]


class Known(NamedTuple):
    """What is known on the way: a point on a part of the problem, how it was reached, and what is to come.

    Newton steps come first where it is ``warm``, or ``direct`` with one block; else quasi-Newton steps, at
    least ``chunks``, that begin with the ``memory`` of all before. ``origin`` is where the last that were
    ``stepped`` ended, on the whole problem. Whatever Newton steps need is known where they are ``ready`` to
    begin. ``idle`` counts rounds in a row that came no nearer to a solution than the ``best`` objective and
    ``nearest`` certificate before.
    """

    W: Weights
    part: Part
    slopes: Slopes
    memory: Memory | None
    tries: int
    warm: bool
    direct: bool
    chunks: int = 2
    n_iter: int = 0
    stepped: bool = False
    origin: Weights | None = None
    step: float = 1.0
    ready: bool = False
    given_up: int = 0
    n_held: int = 0
    strict: bool | None = None
    lasts: float | None = None
    best: float = np.inf
    nearest: float = np.inf
    idle: int = 0
    joined: Joined | None = None

    def moved(self, task: Task, W: Weights) -> "Known":
        """The same at other weights of the part, from which Newton steps may begin.

        They cost by the unit, and many may have died on the way: the part becomes what is live.
        """
        if all((a == b).all() for a, b in zip(self.W, W)):
            return self._replace(W=W)
        part = self.part
        if self.ready and self.n_iter < task.max_iter:
            W, live = canonical(task.problem.network, part.put(W))
            part = live_part(task.problem, live, task.widths)
            W = part.take(W)
        return self._replace(W=W, part=part, slopes=no_slopes(part.problem))


def join(
    problem: Problem,
    W: Weights,
    tol: float,
    max_iter: int,
    note: Note,
    warm: bool = False,
    widths: tuple[int, ...] = (),
    memory: Memory | None = None,
    stages: Stages | None = None,
    tries: int = 0,
) -> Joined:
    """From ``W`` to a certified stationary point of the objective; ``note`` gets every row.

    ``warm`` says that ``W`` is near one, so that Newton steps come first; no hidden block is cut below
    ``widths``. ``memory`` is what an earlier run on these data knew of the curvature. ``stages`` are those of
    this run that are done. Before Newton steps so many ``tries`` to leave out a unit may be in vain.
    """
    task = Task(problem, tol, max_iter, note, stages or Stages(), widths)
    if working_set.takes(problem):
        return by_columns(task, W)
    W, live = canonical(problem.network, W)
    # without a budget there is only to look, and no smaller program is worth its compilation
    part = live_part(problem, live, widths, max_iter) if max_iter else whole(problem)
    direct = max_iter > 0 and one_block.suits(problem)
    at = Known(part.take(W), part, no_slopes(part.problem), memory, tries, warm, direct)
    while at.joined is None:
        W, at = approach(task, at)
        W, at = leave_out(task, W, at)
        at = newton(task, at.moved(task, W))
        at = at if at.given_up else judge(task, at)
    return at.joined


def by_columns(task: Task, W: Weights) -> Joined:
    """One block, column by column where there are many, with no program to compile."""
    end = task.stages.run(one_threaded(working_set.descend), task.problem, W, task.tol, task.max_iter)
    task.note("newton", [row._asdict() for row in end.steps])
    W, live = canonical(task.problem.network, tuple(w.astype(v.dtype) for w, v in zip(end.W, W)))
    n_iter = len(end.steps)
    status = verdict(end.objective, end.certificate, task.tol, n_iter, task.max_iter)
    return Joined(W, live, end.objective, end.loss, end.certificate, 0, 0.0, end.strict, status, n_iter)


def approach(task: Task, at: Known) -> tuple[Weights, Known]:
    """Quasi-Newton steps, unless Newton's come first or there is only to look."""
    part, left = at.part, task.max_iter - at.n_iter
    if not left:
        return at.W, at
    if at.direct or (at.warm and newton_can(part.problem, at.W, task.tol)):
        step = 1.0 if at.memory is None else float(at.memory.step)
        return at.W, at._replace(ready=True, step=step)
    told = task.note, at.memory and at.memory.moved(part.take_rows), task.stages, task.widths
    W, steps = task.stages.run(settle, part.problem, at.W, task.tol, at.chunks, left, *told)
    return W, at._replace(
        warm=False,
        given_up=0,
        ready=newton_can(part.problem, W, task.tol),
        n_iter=at.n_iter + steps.total,
        stepped=True,
        memory=steps.memory.moved(part.put_rows),
        origin=part.put(W) if steps.total else at.origin,
        step=bounded(float(steps.state.step), W[0].dtype),
    )


def leave_out(task: Task, W: Weights, at: Known) -> tuple[Weights, Known]:
    """Those units that do not pay, once.

    From a solution on these data, or from where steps have led: elsewhere units may yet come to pay.
    """
    part, left = at.part, task.max_iter - at.n_iter
    can = at.ready and not at.direct and task.problem.allsum.in_memory
    if at.memory is None or not (at.tries and left and can):
        return W, at
    met = at.memory.moved(part.take_rows) if at.stepped else None
    less = task.stages.run(prune, part.problem, W, task.tol, left, at.tries, task.note, met)
    at = at._replace(tries=0, lasts=less.lasts, n_iter=at.n_iter + len(less.rows))
    if less.memory is None:
        return W, at
    memory = less.memory.moved(part.put_rows)
    step = bounded(float(less.memory.step), W[0].dtype)
    return less.W, at._replace(memory=memory, step=step, origin=part.put(less.W))


def newton(task: Task, at: Known) -> Known:
    """Newton steps, where they can begin."""
    part, left = at.part, task.max_iter - at.n_iter
    at = at._replace(n_held=0, strict=None)
    if not (at.ready and left):
        return at
    work = one_block.descend if at.direct else one_threaded(finish)
    most = min(left, WARM) if at.warm and not at.direct else left
    end = task.stages.run(work, part.problem, at.W, at.slopes, at.step, task.tol, most)
    if end.given_up and at.origin is not None:
        return go_back(task, at, at.origin, end.given_up)
    task.note("newton", [row._asdict() for row in end.steps])
    return at._replace(
        W=end.W,
        slopes=end.slopes,
        n_iter=at.n_iter + len(end.steps),
        memory=at.memory and at.memory._replace(step=np.asarray(end.step, end.W[0].dtype)),
        step=end.step,
        chunks=2 if end.strict else 4,
        n_held=end.n_held,
        strict=end.strict,
    )


def go_back(task: Task, at: Known, W: Weights, price: int) -> Known:
    """To before Newton steps that were given up: at the kinks that they hold quasi-Newton steps are stuck."""
    live = canonical(task.problem.network, W)[1]
    part = live_part(task.problem, live, task.widths, task.max_iter - at.n_iter)
    at = at._replace(W=part.take(W), part=part, slopes=no_slopes(part.problem), warm=False)
    return at._replace(origin=None, given_up=price, chunks=-(-price // CHUNK))


def judge(task: Task, at: Known) -> Known:
    """The point on the whole problem: a solution, or where the next round begins, and on which part."""
    problem, left = task.problem, task.max_iter - at.n_iter
    W, live = canonical(problem.network, at.part.put(at.W))
    slopes = no_slopes(problem)
    if any_held(at.slopes):
        slopes = Slopes(*map(at.part.put_columns, (at.slopes.held, at.slopes.slope)))
    point = look(problem, W, slopes, at.step)
    if live_residual(point, W, at.step) <= FAR * task.tol:  # else no choice of slopes can certify it
        slopes, point = certify(problem, W, slopes, point, at.step, task.tol)
    objective, certificate = float(point.objective), float(point.certificate)
    useful = objective < at.best - 1e-12 * abs(at.best) or certificate < at.nearest / 2
    idle = 0 if useful or at.best == np.inf else at.idle + 1
    status = verdict(objective, certificate, task.tol, at.n_iter, task.max_iter, idle)
    if status:
        within = held_within(problem, W, slopes, point)
        numbers = objective, float(point.loss), certificate, at.n_held, within, at.strict
        at_end = Joined(W, live, *numbers, status, at.n_iter, at.memory, at.lasts)
        return at._replace(joined=at_end._replace(slopes=slopes, step=at.step))
    # certified on its part and not on the whole: something outside wants to come alive
    wakes = float(look(at.part.problem, at.W, at.slopes, at.step).certificate) <= task.tol
    part = whole(problem) if wakes else live_part(problem, live, task.widths, left)
    held = no_slopes(part.problem)
    if any_held(slopes):
        held = Slopes(*map(part.take_columns, (slopes.held, slopes.slope)))
    best, nearest = min(at.best, objective), min(at.nearest, certificate)
    at = at._replace(W=part.take(W), part=part, slopes=held, warm=False, direct=False)
    return at._replace(best=best, nearest=nearest, idle=idle, stepped=False, step=1.0, ready=False)


def live_residual(point: Point, W: Weights, step: float) -> float:
    """The largest residual of a weight that is not zero, which slopes of idle entries hardly move."""
    w = ravel(W)
    return float(np.abs(w - np.asarray(point.moved))[w != 0].max(initial=0.0)) / step


def one_threaded(work: Callable) -> Callable:
    """The same work without threads in BLAS: its matrices are too small for them."""

    def alone(*args: Any, **kwargs: Any) -> Any:
        with _threads().limit(limits=1, user_api="blas"):
            return work(*args, **kwargs)

    return alone


@cache
def _threads() -> ThreadpoolController:
    """The thread pools of this process: looking for them takes as long as a Newton step."""
    return ThreadpoolController()


def verdict(
    objective: float, certificate: float, tol: float, n_iter: int, max_iter: int, idle: int = IDLE
) -> str:
    """Why to stop here, or the empty string."""
    if not np.isfinite(objective):
        return "diverged"
    if certificate <= tol:
        return "converged"
    if n_iter >= max_iter:
        return "max_iter"
    return "stalled" if idle >= IDLE else ""


def settle(
    problem: Problem,
    W: Weights,
    tol: float,
    chunks: int,
    budget: int,
    note: Note,
    memory: Memory | None,
    stages: Stages,
    widths: tuple[int, ...] = (),
) -> tuple[Weights, Descent]:
    """Quasi-Newton steps until the support has settled and Newton can take over, or many units have died."""
    smooth = problem.network.smooth

    def settled(at: Descent) -> bool:
        rows = at.rows
        quiet = np.mean([row["support_changed"] for row in rows]) < SETTLED or at.total >= PATIENCE
        if at.total >= chunks * CHUNK and smooth and quiet and rows[-1]["n_nonzero"] <= FEW:
            return True
        return shrinks(problem, unravel(np.asarray(at.state.w), W), widths, budget - at.total)

    state, aim = begin(problem, [W], memory), tol if smooth else tol / 2
    at = descend(problem, W, state, aim, budget, settled, lambda at: note("join", at.rows), stages)
    return points(problem, at.state, W)[0], at


def newton_can(problem: Problem, W: Weights, tol: float) -> bool:
    """Whether Newton's method can and should take over: few live weights, kinks at zero, a sharp ``tol``."""
    few = sum(int(np.count_nonzero(w)) for w in W) <= FEW
    return tol < LOOSE and problem.network.smooth and few
