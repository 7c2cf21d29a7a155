"""Newton steps on the live weights, through the kinks of piecewise links.

Where every link is smooth this is Newton's method on the non-zero weights. With kinks, the step minimises a
piecewise quadratic model, and with the slopes that hold pre-activations at kinks the point can be certified.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jax import Array

from deepprox.joining import candidates, ladder
from deepprox.joining import kinks as kinks_
from deepprox.joining.certificate import bounded, ravel, unravel
from deepprox.joining.hessian import Hessian, hessian
from deepprox.joining.holding import put_on_kinks
from deepprox.joining.kinks import SITS, Slopes, any_held, no_slopes
from deepprox.joining.model import Model, Survey, cholesky, model_at, no_kinks, survey
from deepprox.joining.point import Point, certify, leap, look
from deepprox.problem import Problem, Weights
from deepprox.runtime import beside
from deepprox.spreading import same

MAX_STEPS = 100
COST = 50  # quasi-Newton steps that take as long as a Newton step of few weights
FULL = 0.8  # share of the candidates that may be held before there are too few
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
    time, and 0 elsewhere.
    """

    W: Weights
    slopes: Slopes
    certificate: float
    step: float
    strict: bool | None
    n_held: int
    steps: list[Step]
    given_up: int = 0


class At(NamedTuple):
    """A point of the Newton steps, and what the next one needs to know.

    ``H`` are second derivatives in the weights ``free``, those of an earlier point until they are to be
    ``fresh``; ``measured`` are those that were, in weights of which some were ``live``, and ``idle`` says
    whether biases of them change nothing.
    """

    W: Weights
    slopes: Slopes
    point: Point
    step: float
    n_held: int = 0
    free: np.ndarray = np.zeros(0, int)
    H: Hessian = Hessian(np.zeros((0, 0)), np.zeros((0, 0)))
    measured: Hessian | None = None
    live: Any = None
    idle: bool = False
    damping: float = 0.0
    fresh: bool = True
    together: bool = False
    given_up: int = 0
    over: bool = False

    @property
    def objective(self) -> float:
        """The objective there."""
        return float(self.point.objective)

    @property
    def certificate(self) -> float:
        """The certificate there."""
        return float(self.point.certificate)

    @property
    def row(self) -> Step:
        """The row of the history."""
        n_nonzero = int(np.count_nonzero(ravel(self.W)))
        return Step(self.objective, float(self.point.loss), self.certificate, n_nonzero, self.n_held)


def finish(
    problem: Problem,
    W: Weights,
    slopes: Slopes,
    step: float,
    tol: float,
    budget: int,
) -> Finish:
    """Damped Newton steps from ``W`` until the certificate is well within ``tol`` or they stop helping.

    Well within, so that the zeros are those of the solution, unless it is clear before that no step will
    change them. They are given up where they are expensive and more is held at kinks than the model has
    room for.
    """
    steps: list[Step] = []
    # kinks that nothing holds allow no more than tol
    aim = ladder.aim(tol, W[0].dtype) if problem.allsum.in_memory else tol
    slopes, point = certify(problem, W, slopes, look(problem, W, slopes, step), step, aim)
    at = nearest = At(W, slopes, point, step)
    while at.certificate > aim and len(steps) < min(MAX_STEPS, budget) and not at.over:
        at, at_kink, around = measure(problem, at, aim)
        after, ok = advance(problem, at, at_kink, around)
        if not ok:
            # apart, kinks leave more freedom to certify zeros; hundreds that coincide fill the model
            at = after._replace(fresh=True, together=at.fresh, over=at.fresh and at.together)
            continue
        at = weigh(problem, at, after, steps, tol, aim)
        steps.append(at.row)
        nearest = at if at.certificate < nearest.certificate else nearest
    lower = nearest.objective <= at.objective + 1e-9 * abs(at.objective)
    if nearest.certificate <= tol < at.certificate and lower:
        # else the steps found their way out of a flat saddle, and are to go on
        at = at._replace(W=nearest.W, slopes=nearest.slopes, point=nearest.point, n_held=nearest.n_held)
    return ended(problem, at, steps, tol)


def measure(problem: Problem, at: At, aim: float) -> tuple[At, bool, Callable[[], Survey]]:
    """Second derivatives at a point, whether it is at kinks, and what tells of the kinks around.

    Those of an earlier point serve where they are not to be fresh and no other weight is free.
    """
    w, was = ravel(at.W), at.free
    # along a bias that changes nothing the model bends down, and would have to be damped
    idle = kinks_.redundant_biases(problem, at.W, at.point.slope, at.slopes)
    released = np.abs(np.asarray(at.point.moved)) > at.step * aim / 2
    free = np.flatnonzero(((w != 0) | released) & ~idle)
    at_kink = piecewise(problem) and sits(problem, at.W, at.point.Z)
    around: Callable[[], Survey] = partial(survey, problem, at.W, at.slopes, at.point, at.step, at.together)
    if at_kink and problem.allsum == same:
        around = beside(around, len(problem.weight) * free.size**2, w.dtype)
    if not at.fresh and np.isin(free, was).all():
        return at._replace(free=free, H=at.H.at(np.isin(was, free))), at_kink, around
    H, live = hessian(problem, at.W, at.slopes, free, at.point.gradient), w[free] != 0
    length = bounded(1 / np.abs(H.full).sum(1).max(initial=1.0), w.dtype)
    if not at.step / NEAR <= length <= NEAR * at.step:
        at = at._replace(step=length, point=look(problem, at.W, at.slopes, length))
    at = at._replace(free=free, H=H, fresh=True, measured=H, live=live, idle=bool(idle[w != 0].any()))
    return at, at_kink, around


def weigh(problem: Problem, before: At, at: At, steps: list[Step], tol: float, aim: float) -> At:
    """Where a step led, certified as well as it can be, and whether it was the last."""
    slopes, point = certify(problem, at.W, at.slopes, at.point, at.step, aim)
    at = at._replace(slopes=slopes, point=point)
    falls = 1e-12 if problem.allsum.in_memory else 1e-9
    over = at.certificate > 0.9 * before.certificate and len(steps) > 0
    over = over and at.objective >= steps[-1].objective * (1 - falls)
    price = cost(problem, at.free)
    given_up = not over and price > COST and at.n_held > FULL * candidates.N_CANDIDATES
    shorter = min(1.0, SAFE * at.certificate / before.certificate)
    stays = zeros_stay(ravel(before.W), ravel(at.W), point, shorter, at.step * aim / 2)
    return at._replace(
        # a Hessian of one step earlier leaves the share of the certificate that its own step left
        fresh=at.certificate**2 > aim * before.certificate,
        given_up=int(price) if given_up else 0,
        over=over or given_up or (at.certificate <= tol and stays),
    )


def ended(problem: Problem, at: At, steps: list[Step], tol: float) -> Finish:
    """What is held put exactly at its kinks, and what the second derivatives say of the point."""
    if steps and problem.allsum(int(any_held(at.slopes))):
        placed = put_on_kinks(problem, at.W, at.slopes, at.H, at.free, at.step, tol)
        at = at._replace(**placed._asdict())
    strict = None
    # an activity is here with its majoriser, which says nothing about a minimum
    if at.measured is not None and all(block.activity is None for block in problem.network.blocks):
        strict = not at.idle and cholesky(at.measured.at(at.live).full) is not None
    end = at.W, at.slopes, at.certificate, float(at.step)
    return Finish(*end, strict, at.n_held, steps, at.given_up)


def zeros_stay(before: np.ndarray, w: np.ndarray, point: Point, shorter: float, least: float) -> bool:
    """Whether a step of this share of the last, or less, would neither make a zero nor release one.

    After one that is as long as the last, as many zeros may come and go as they did.
    """
    live, released = w != 0, np.abs(np.asarray(point.moved)) > least
    made = np.asarray(point.kinked) & (shorter * np.abs(w - before) >= np.abs(w))
    settled = shorter < 1 or (live == (before != 0)).all()
    return bool(settled and not np.where(live, made, released).any())


def cost(problem: Problem, free: np.ndarray) -> float:
    """How many quasi-Newton steps take as long as a Newton step on so many weights.

    A Newton step multiplies about ``7 m^3 + n m^2`` numbers, since it factorises some twenty times; a
    quasi-Newton step multiplies two for every observation and weight.
    """
    if not problem.allsum.in_memory:
        return COST  # both are passes over the rows
    n, m = problem.n_rows, free.size
    return max(COST, (7 * m**3 + n * m**2) / (2 * n * problem.n_weights))


def advance(problem: Problem, at: At, at_kink: bool, around: Callable[[], Survey]) -> tuple[At, bool]:
    """A step that lowers the objective, if there is one: without the kinks ``around`` if it meets none."""
    if not at_kink:
        smooth = model_at(at.W, at.point, at.free, at.H, at.step, no_kinks(at.point))
        after, ok = search(problem, at, smooth, 1 if piecewise(problem) else ladder.TRIALS)
        if not piecewise(problem) or (ok and not crosses(problem, at.point.Z, after.point.Z)):
            return after, ok
    return search(problem, at, model_at(at.W, at.point, at.free, at.H, at.step, around()))


def piecewise(problem: Problem) -> bool:
    """Whether links have kinks, and observations slopes of their own there."""
    return problem.allsum.in_memory and any(block.link.kinks for block in problem.network.blocks[:-1])


def sits(problem: Problem, W: Weights, Z: tuple[Array, ...]) -> bool:
    """Whether a pre-activation of a live unit is at a kink, and counts."""
    counts = np.asarray(problem.weight)[:, None] > 0
    there = [
        (counts & (np.abs(np.asarray(z) - kink) < SITS) & block.by_place(w.any(1), z.shape[1])).sum()
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


def search(problem: Problem, at: At, model: Model, trials: int = ladder.TRIALS) -> tuple[At, bool]:
    """The least damped step of the model that does not raise the objective; else the damping of the next."""
    w, damping = ravel(at.W), at.damping
    level, least = ladder.level(at.objective, w.dtype), ladder.LEAST / at.step
    for refused in range(trials):
        solved = model.minimise(damping, least)
        if solved is not None:
            way, shares, damping = solved
            trial = w.astype(float)
            trial[at.free] += way
            held = (shares > 0) & (shares < 1)
            slopes = model.kinks.slopes(no_slopes(problem), shares, held)
            W, point = leap(problem, at.W, unravel(trial.astype(w.dtype), at.W), slopes, at.step)
            if float(point.objective) <= level:
                after = at._replace(W=W, slopes=slopes, point=point, n_held=int(held.sum()))
                slow = after.certificate > SLOW * at.certificate
                # what is held at a kink would leave it
                if not held.any() and (damping > least or (slow and problem.allsum.in_memory)):
                    after = further(problem, at, after, model.side)
                # what made this model convex the next will say for itself, unless its trials are journeys
                kept = refused or not problem.allsum.in_memory
                return after._replace(damping=ladder.lowered(damping, least) if kept else 0.0), True
        damping = ladder.raised(damping, least)
    return at._replace(damping=damping), False


def further(problem: Problem, before: At, at: At, side: np.ndarray) -> At:
    """A step, doubled while the objective falls: where a unit dies it is a long way down.

    So it is where a loss falls like ``exp(-t)``: there the step of Newton is 1, however far the minimum. A
    weight that would leave its side stops at zero.
    """
    w, free = ravel(before.W), before.free
    way = ravel(at.W)[free] - w[free]
    while True:
        way = 2 * way
        trial = w.copy()
        trial[free] += np.where((w[free] + way) * side < 0, -w[free], way)
        W, slopes = unravel(trial, at.W), no_slopes(problem)
        point = look(problem, W, slopes, at.step)
        if not float(point.objective) < at.objective:
            return at
        at = at._replace(W=W, slopes=slopes, point=point, n_held=0)
