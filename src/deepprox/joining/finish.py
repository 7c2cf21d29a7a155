"""Newton steps on the live weights, through the kinks of piecewise links.

Where every link is smooth this is Newton's method on the non-zero weights. With kinks, the step minimises a
piecewise quadratic model, and with the slopes that hold pre-activations at kinks the point can be certified.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from jax import Array

from deepprox.joining import kinks as kinks_
from deepprox.joining.certificate import bounded, ravel, unravel
from deepprox.joining.hessian import Hessian, hessian
from deepprox.joining.holding import put_on_kinks
from deepprox.joining.kinks import SITS, Slopes, any_held, no_slopes
from deepprox.joining.model import Model, Survey, cholesky, model_at, no_kinks, survey
from deepprox.joining.point import Point, certify, leap, look
from deepprox.joining.tangent import tangent
from deepprox.problem import Network, Problem, Weights
from deepprox.runtime import beside
from deepprox.spreading import same

MAX_STEPS = 100
COST = 50  # quasi-Newton steps that take as long as a Newton step of few weights
SADDLE = 1e-7  # negative curvature that makes one, as a share of the largest curvature
LEAST = 1e-10  # damping after none, as a share of the largest curvature
FULL = 0.8  # share of the candidates that may be held before there are too few
TRIALS = 12  # dampings, each ten times the one before
WELL_WITHIN = 1e-2  # share of tol
SAFE = 10  # times as long a step is expected, at most, as its share of the certificate says
SLOW = 0.5  # share of the certificate that a step leaves where a longer one may leave less
NEAR = 2.0  # times a step length, up to which it serves as well


class Step(NamedTuple):
    """One row of the history of the Newton steps."""

    objective: float
    loss: float
    certificate: float
    n_nonzero: int
    n_held: int


class Finish(NamedTuple):
    """Where the Newton steps ended: the weights, the slopes that certify them, and the way there.

    ``given_up`` is how many quasi-Newton steps take as long as each, where more of them would be a waste of
    time, and 0 elsewhere. ``tangent`` is how ``W`` moves with the penalty, if that was asked for.
    """

    W: Weights
    slopes: Slopes
    certificate: float
    step: float
    strict: bool | None
    n_held: int
    steps: list[Step]
    given_up: int = 0
    tangent: Weights | None = None


def finish(
    problem: Problem,
    W: Weights,
    slopes: Slopes,
    step: float,
    rate: float,
    tol: float,
    budget: int,
    toward: Network | None = None,
) -> Finish:
    """Damped Newton steps from ``W`` until the certificate is well within ``tol`` or they stop helping.

    Well within, so that the zeros are those of the solution, unless it is clear before that no step will
    change them. Near a saddle the steps stop when ``rate``, what a quasi-Newton step has gained of late,
    promises more. They are given up where they are expensive and more is held at kinks than the model has
    room for. At the end it is asked how the solution moves as the penalty becomes that of ``toward``.
    """
    steps: list[Step] = []
    given_up = 0
    damping, fresh, slow, together, free = 0.0, True, False, False, np.zeros(0, int)
    charged = any(block.activity is not None for block in problem.network.blocks)
    on_live, H = None, Hessian(np.zeros((0, 0)), np.zeros((0, 0)))
    aim = min(tol, max(WELL_WITHIN * tol, 50 * float(np.finfo(W[0].dtype).eps)))
    # kinks that nothing holds allow no more
    aim, nothing = (aim, 1e-12) if problem.allsum.in_memory else (tol, 1e-9)
    slopes, point = certify(problem, W, slopes, look(problem, W, slopes, step), step, aim)
    n_held, nearest = 0, (float(point.certificate), W, slopes, 0, float(point.objective))
    while float(point.certificate) > aim and len(steps) < min(MAX_STEPS, budget):
        w, was = ravel(W), free
        # along a bias that changes nothing the model bends down, and would have to be damped
        idle = kinks_.redundant_biases(problem, W, point.slope, slopes)
        free = np.flatnonzero(((w != 0) | (np.abs(np.asarray(point.moved)) > step * aim / 2)) & ~idle)
        at_kink = piecewise(problem) and sits(problem, W, point.Z)
        around: Callable[[], Survey] = partial(survey, problem, W, slopes, point, step, together)
        if at_kink and problem.allsum == same:
            around = beside(around, len(problem.weight) * free.size**2, w.dtype)
        if fresh or not np.isin(free, was).all():
            H, fresh = hessian(problem, W, slopes, free, point.gradient), True
            length = bounded(1 / np.abs(H.full).sum(1).max(initial=1.0), w.dtype)
            if not step / NEAR <= length <= NEAR * step:
                step, point = length, look(problem, W, slopes, length)
            on_live = H, w[free] != 0, idle[w != 0].any()
            if slow and not bends_up(H.at(w[free] != 0), SADDLE / step):
                break  # near a saddle, which quasi-Newton steps leave faster
        else:
            H = H.at(np.isin(was, free))
        found, damping = advance(problem, W, point, free, H, step, damping, at_kink, around)
        if found is None:
            if fresh and together:
                break
            # apart, kinks leave more freedom to certify zeros; hundreds that coincide fill the model
            fresh, together = True, fresh
            continue
        before, level = float(point.certificate), float(point.objective)
        W, slopes, point, n_held = found
        slopes, point = certify(problem, W, slopes, point, step, aim)
        slow = level - float(point.objective) < COST * rate
        # a Hessian of one step earlier leaves the share of the certificate that its own step left
        fresh = float(point.certificate) ** 2 > aim * before
        row = (float(point.objective), float(point.loss), float(point.certificate))
        steps.append(Step(*row, int(np.count_nonzero(ravel(W))), n_held))
        if row[2] > 0.9 * before and len(steps) > 1 and row[0] >= steps[-2].objective * (1 - nothing):
            break
        price = cost(problem, W, free)
        if price > COST and n_held > FULL * kinks_.N_CANDIDATES:
            given_up = int(price)
            break
        if row[2] < nearest[0]:
            nearest = row[2], W, slopes, n_held, row[0]
        shorter = min(1.0, SAFE * row[2] / before)
        if row[2] <= tol and zeros_stay(w, ravel(W), point, shorter, step * aim / 2):
            break
    end = float(point.certificate), W, slopes, n_held, float(point.objective)
    # where the steps found their way out of a flat saddle, they are to go on
    back = nearest[0] <= tol < end[0] and nearest[-1] <= end[-1] + 1e-9 * abs(end[-1])
    certificate, W, slopes, n_held, _ = nearest if back else end
    if steps and problem.allsum(int(any_held(slopes))):
        W, slopes, certificate, let_go = put_on_kinks(problem, W, slopes, H, free, step, tol)
        n_held -= let_go
    # an activity is here with its majoriser, which says nothing about a minimum
    strict = None if charged or on_live is None else not on_live[2] and bends_up(on_live[0].at(on_live[1]))
    moves = None if toward is None or not steps else tangent(problem, W, slopes, H, free, step, toward)
    return Finish(W, slopes, certificate, float(step), strict, n_held, steps, given_up, moves)


def zeros_stay(before: np.ndarray, w: np.ndarray, point: Point, shorter: float, least: float) -> bool:
    """Whether a step of this share of the last, or less, would neither make a zero nor release one.

    After one that is as long as the last, as many zeros may come and go as they did.
    """
    live, released = w != 0, np.abs(np.asarray(point.moved)) > least
    made = np.asarray(point.kinked) & (shorter * np.abs(w - before) >= np.abs(w))
    settled = shorter < 1 or (live == (before != 0)).all()
    return bool(settled and not np.where(live, made, released).any())


def cost(problem: Problem, W: Weights, free: np.ndarray) -> float:
    """How many quasi-Newton steps take as long as a Newton step on so many weights.

    A Newton step multiplies about ``7 m^3 + n m^2`` numbers, since it factorises some twenty times; a
    quasi-Newton step multiplies two for every observation and weight.
    """
    if not problem.allsum.in_memory:
        return COST  # both are passes over the rows
    n, m = problem.n_rows, free.size
    return max(COST, (7 * m**3 + n * m**2) / (2 * n * sum(w.size for w in W)))


def bends_up(H: Hessian, by: float = 0.0) -> bool:
    """Whether ``H`` is positive definite, with so much added to its diagonal."""
    return cholesky(H.full + by * np.eye(len(H.loss))) is not None


def advance(
    problem: Problem,
    W: Weights,
    now: Point,
    free: np.ndarray,
    H: Hessian,
    step: float,
    damping: float,
    at_kink: bool,
    around: Callable[[], Survey],
) -> tuple[tuple | None, float]:
    """A step that lowers the objective, and its damping: without the kinks ``around`` if it meets none."""
    if not at_kink:
        smooth = model_at(W, now, free, H, step, no_kinks(now))
        trials = 1 if piecewise(problem) else TRIALS
        found, after = search(problem, W, now, smooth, free, step, damping, trials)
        if not piecewise(problem) or (found is not None and not crosses(problem, now.Z, found[2].Z)):
            return found, after
    return search(problem, W, now, model_at(W, now, free, H, step, around()), free, step, damping)


def piecewise(problem: Problem) -> bool:
    """Whether links have kinks, and observations slopes of their own there."""
    return problem.allsum.in_memory and any(block.link.kinks for block in problem.network.blocks[:-1])


def sits(problem: Problem, W: Weights, Z: tuple[Array, ...]) -> bool:
    """Whether a pre-activation of a live unit is at a kink, and counts."""
    counts = np.asarray(problem.weight)[:, None] > 0
    there = [
        (counts & (np.abs(np.asarray(z) - kink) < SITS) & w.any(1)).sum()
        for block, w, z in zip(problem.network.blocks[:-1], W, Z)
        for kink in block.link.kinks
    ]
    return bool(problem.allsum(sum(there)))


def crosses(problem: Problem, before: tuple[Array, ...], after: tuple[Array, ...]) -> bool:
    """Whether a pre-activation that counts is on another side of a kink."""
    counts = np.asarray(problem.weight)[:, None] > 0
    crossed = [
        (counts & (np.sign(np.asarray(a) - kink) != np.sign(np.asarray(b) - kink))).sum()
        for block, a, b in zip(problem.network.blocks[:-1], before, after)
        for kink in block.link.kinks
    ]
    return bool(problem.allsum(sum(crossed)))


def search(
    problem: Problem,
    W: Weights,
    point: Point,
    model: Model,
    free: np.ndarray,
    step: float,
    damping: float,
    trials: int = TRIALS,
) -> tuple[tuple | None, float]:
    """The least damped step of the model that does not raise the objective, and its damping."""
    w = ravel(W)
    level = float(point.objective)
    level += 8 * float(np.finfo(w.dtype).eps) * abs(level)
    least = LEAST / step
    for refused in range(trials):
        solved = model.minimise(damping, least)
        if solved is not None:
            damping, trial = solved[2], w.astype(float)
            trial[free] += solved[0]
            held = (solved[1] > 0) & (solved[1] < 1)
            slopes = model.kinks.slopes(no_slopes(problem), solved[1], held)
            W_next, after = leap(problem, W, unravel(trial.astype(w.dtype), W), slopes, step)
            if float(after.objective) <= level:
                found = W_next, slopes, after, int(held.sum())
                slow = float(after.certificate) > SLOW * float(point.certificate)
                # what is held at a kink would leave it
                if not held.any() and (damping > least or (slow and problem.allsum.in_memory)):
                    found = further(problem, w, found, model.side, free, step)
                # what made this model convex the next will say for itself, unless its trials are journeys
                kept = refused or not problem.allsum.in_memory
                return found, damping / 100 if kept and damping > 100 * least else 0.0
        damping = max(10 * damping, least)
    return None, damping


def further(
    problem: Problem, w: np.ndarray, found: tuple, side: np.ndarray, free: np.ndarray, step: float
) -> tuple:
    """A step, doubled while the objective falls: where a unit dies it is a long way down.

    So it is where a loss falls like ``exp(-t)``: there the step of Newton is 1, however far the minimum. A
    weight that would leave its side stops at zero.
    """
    way = ravel(found[0])[free] - w[free]
    while True:
        way = 2 * way
        trial = w.copy()
        trial[free] += np.where((w[free] + way) * side < 0, -w[free], way)
        W, slopes = unravel(trial, found[0]), no_slopes(problem)
        after = look(problem, W, slopes, step)
        if not float(after.objective) < float(found[2].objective):
            return found
        found = W, slopes, after, 0
