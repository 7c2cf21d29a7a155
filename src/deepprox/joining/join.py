"""The join phase of one start: quasi-Newton until the support settles, then Newton, until certified."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from deepprox.diary import Stages
from deepprox.joining import one_block, quasi_newton
from deepprox.joining.certificate import bounded, ravel, unravel
from deepprox.joining.descent import Descent, begin, descend, points
from deepprox.joining.finish import finish
from deepprox.joining.holding import held_within
from deepprox.joining.kinks import Slopes, any_held, no_slopes
from deepprox.joining.live import Live, canonical, live_part, shrinks, whole
from deepprox.joining.point import Point, certify, look
from deepprox.joining.pruning import prune
from deepprox.joining.quasi_newton import CHUNK
from deepprox.problem import Network, Problem, Weights

FEW = 1500  # live weights up to which a dense Hessian is formed
FAR = 100  # times the tolerance: a point that is no solution yet
LOOSE = 1e-3  # certificates from here on are reached sooner without Newton
PATIENCE = 400  # quasi-Newton steps after which Newton is tried all the same
WARM = 12  # Newton steps from a warm start: what needs more is no small change
SETTLED = 0.4  # share of a chunk's steps that may still change the support before Newton is tried

Note = Callable[[str, list[dict[str, Any]]], None]


class Joined(NamedTuple):
    """A stationary point in canonical form, or as near to one as the budget allowed.

    ``lasts`` is how many times as strong the penalty may be until one of its units no longer pays, if one was
    tried; ``tangent`` how it moves with the penalty, if that was asked for and it ended with Newton steps.
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
    tangent: Weights | None = None


def join(
    problem: Problem,
    W: Weights,
    tol: float,
    max_iter: int,
    note: Note,
    warm: bool = False,
    widths: tuple[int, ...] = (),
    memory: quasi_newton.Memory | None = None,
    stages: Stages | None = None,
    tries: int = 0,
    toward: Network | None = None,
) -> Joined:
    """From ``W`` to a certified stationary point of the objective; ``note`` gets every row.

    ``warm`` says that ``W`` is near one, so that Newton steps come first; no hidden block is cut below
    ``widths``. ``memory`` is what an earlier run on these data knew of the curvature. ``stages`` are those of
    this run that are done. Before Newton steps so many ``tries`` to leave out a unit may be in vain.
    ``toward`` is a network with the penalty of a problem nearby, for which a tangent is to be known.
    """
    stages = stages or Stages()
    W, live = canonical(problem.network, W)
    # without a budget there is only to look, and no smaller program is worth its compilation
    part = live_part(problem, live, widths, max_iter) if max_iter else whole(problem)
    whole_slopes = no_slopes(problem)
    n_iter, chunks, idle, best, nearest = 0, 2, 0, np.inf, np.inf
    known = memory  # what quasi-Newton steps begin with
    origin = None  # where they ended, and what they knew
    direct, lasts, met = max_iter > 0 and one_block.suits(problem), None, None
    while True:
        here = part.take(W)
        most = max_iter - n_iter
        if not max_iter:  # there is only to look: what is known of the curvature stays where it is
            small, step, rate, ready = here, 1.0, 0.0, False
        elif direct or (warm and newton_can(part.problem, here, tol)):
            small, rate, ready, most = here, 0.0, True, most if direct else min(most, WARM)
            step = 1.0 if memory is None else float(memory.step)
        else:
            left = max_iter - n_iter
            known = None if known is None else known.moved(part.take_rows)
            small, at = stages.run(settle, part.problem, here, tol, chunks, left, note, known, stages, widths)
            step, rate, met = bounded(float(at.state.step), small[0].dtype), at.rate, at.memory
            ready = newton_can(part.problem, small, tol)
            n_iter, memory = n_iter + at.total, met.moved(part.put_rows)
            origin = (part.put(small), memory) if at.total else origin
        met, left = None if small is here else met, max_iter - n_iter
        # from a solution on these data, or from where steps have led: elsewhere units may yet come to pay
        if tries and ready and left and not direct and problem.allsum.in_memory and (met or memory):
            less = stages.run(prune, part.problem, small, tol, left, tries, note, met)
            tries, lasts, n_iter = 0, less.lasts, n_iter + len(less.rows)
            if less.memory is not None:
                small, rate, memory = less.W, less.rate, less.memory.moved(part.put_rows)
                step, origin = bounded(float(less.memory.step), small[0].dtype), (part.put(small), memory)
        known = memory if not ready and shrinks(part.problem, small, widths, max_iter - n_iter) else None
        warm, ready = False, ready and n_iter < max_iter  # certifying is done below in any case
        stays = all((a == b).all() for a, b in zip(here, small))
        if ready and not stays:  # Newton steps cost by the unit, and many may have died on the way
            W, live = canonical(problem.network, part.put(small))
            part = live_part(problem, live, widths)
            small = part.take(W)
        strict, n_held, slopes = None, 0, no_slopes(part.problem)
        if stays and any_held(whole_slopes):
            slopes = Slopes(*map(part.take_columns, (whole_slopes.held, whole_slopes.slope)))
        moves = None
        if ready:
            newton = one_block.descend if direct else partial(one_threaded(finish), toward=part.cut(toward))
            left = min(max_iter - n_iter, most)
            end = stages.run(newton, part.problem, small, slopes, step, rate, tol, left)
            if end.given_up and origin is not None:
                # back to before them: at the kinks that they hold quasi-Newton steps are stuck
                (W, known), origin, chunks = origin, None, -(-end.given_up // CHUNK)
                part = live_part(problem, canonical(problem.network, W)[1], widths, max_iter - n_iter)
                continue
            note("newton", [row._asdict() for row in end.steps])
            n_iter += len(end.steps)
            small, slopes, step, strict, n_held = end.W, end.slopes, end.step, end.strict, end.n_held
            moves = None if end.tangent is None else part.put(end.tangent)
            memory = memory and memory._replace(step=np.asarray(step, small[0].dtype))
            chunks = 2 if strict else 4
        direct = False
        W, live = canonical(problem.network, part.put(small))
        whole_slopes = no_slopes(problem)
        if any_held(slopes):
            whole_slopes = Slopes(*map(part.put_columns, (slopes.held, slopes.slope)))
        point = look(problem, W, whole_slopes, step)
        if live_residual(point, W, step) <= FAR * tol:  # else no choice of slopes can certify it
            whole_slopes, point = certify(problem, W, whole_slopes, point, step, tol)
        useful = float(point.objective) < best - 1e-12 * abs(best) or float(point.certificate) < nearest / 2
        idle = 0 if useful or best == np.inf else idle + 1
        best, nearest = min(best, float(point.objective)), min(nearest, float(point.certificate))
        status = verdict(point, tol, n_iter, max_iter, idle)
        if status:
            numbers = float(point.objective), float(point.loss), float(point.certificate)
            within = held_within(problem, W, whole_slopes, point)
            return Joined(W, live, *numbers, n_held, within, strict, status, n_iter, memory, lasts, moves)
        on_part = look(part.problem, small, slopes, step)
        # certified on its part and not on the whole: something outside wants to come alive
        wakes = float(on_part.certificate) <= tol
        part = whole(problem) if wakes else live_part(problem, live, widths, max_iter - n_iter)


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


def verdict(point: Point, tol: float, n_iter: int, max_iter: int, idle: int) -> str:
    """Why to stop here, or the empty string."""
    if not np.isfinite(float(point.objective)):
        return "diverged"
    if float(point.certificate) <= tol:
        return "converged"
    if n_iter >= max_iter:
        return "max_iter"
    return "stalled" if idle >= 3 else ""


def settle(
    problem: Problem,
    W: Weights,
    tol: float,
    chunks: int,
    budget: int,
    note: Note,
    memory: quasi_newton.Memory | None,
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
