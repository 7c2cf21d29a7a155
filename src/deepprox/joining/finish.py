"""Newton steps on the live weights, through the kinks of piecewise links.

Where every link is smooth this is Newton's method on the non-zero weights. With kinks, the step
minimises the piecewise quadratic model

    G' dw + dw' H dw / 2 + sum_k c_k max(v_k + J_k dw, 0)

with ``v_k`` a pre-activation over its kink, ``J_k`` its derivative in the live weights, and ``c_k`` the jump
of the derivative of the loss across it. Its dual is a small quadratic program in slopes ``0 <= s_k <= 1``;
those strictly inside hold their pre-activation at the kink, and with them the point can be certified.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array
from scipy.linalg.lapack import dpotrf, dtrtrs

from deepprox.blocks import Dense
from deepprox.joining import kinks as kinks_
from deepprox.joining.certificate import bounded, certificate, flatten, ravel, unravel
from deepprox.joining.hessian import Hessian, hessian
from deepprox.joining.kinks import Kinks, Slopes, no_slopes
from deepprox.problem import Problem, Weights
from deepprox.spreading import program

MAX_STEPS = 100
CERTIFY_STEPS = 200
COST = 50  # quasi-Newton steps that take as long as a Newton step
SADDLE = 1e-7  # negative curvature that makes one, as a share of the largest curvature
LEAST = 1e-10  # damping after none, as a share of the largest curvature
TRIALS = 12  # dampings, each ten times the one before
WELL_WITHIN = 1e-2
NEAR = 2.0  # times a step length, up to which it serves as well
SITS = 1e-8  # of a pre-activation that is at its kink


class Point(NamedTuple):
    """A point of the Newton iteration with everything its next step needs.

    ``moved`` is the prox-gradient point, ``kinked`` the weights whose penalty has a kink at zero; ``Z`` ends
    with ``eta``.
    """

    objective: Array
    loss: Array
    gradient: Array
    penalty_gradient: Array
    moved: Array
    kinked: Array
    certificate: Array
    Z: tuple[Array, ...]
    upstream: tuple[Array, ...]


class Step(NamedTuple):
    """One row of the history of the Newton steps."""

    objective: float
    loss: float
    certificate: float
    n_nonzero: int
    n_held: int


class Finish(NamedTuple):
    """Where the Newton steps ended: the weights, the slopes that certify them, and the way there."""

    W: Weights
    slopes: Slopes
    certificate: float
    step: float
    strict: bool | None
    n_held: int
    steps: list[Step]


@program()
def _look(problem: Problem, W: Weights, slopes: Slopes, step: Array, ride: Array) -> Point:
    w, flat = flatten(problem, W)
    riding = jnp.broadcast_to(ride, (problem.X.shape[0], 1))

    def mean_loss(w: Array, nudge: tuple[Array, ...]) -> tuple[Array, tuple]:
        at = kinks_.forward(problem, flat.unravel(w), slopes, riding, on_reads=nudge)
        loss = problem.data_loss(at.Z[-1])
        return loss + problem.network.activity(at.Z, at.reads[1:], problem.weight), (loss, at.Z)

    hidden = problem.network.blocks[:-1]
    nudge = tuple(jnp.zeros((len(problem.X), block.link.width(block.size)), w.dtype) for block in hidden)
    (smooth, (loss, Z)), (gradient, upstream) = jax.value_and_grad(mean_loss, (0, 1), has_aux=True)(w, nudge)
    smooth, loss, gradient = problem.allsum((smooth, loss, gradient))
    residual = flat.residual(w, gradient, step)
    return Point(
        objective=smooth + flat.penalty(w),
        loss=loss,
        gradient=gradient,
        penalty_gradient=flat.penalty_gradient(w),
        moved=w - step * residual,
        kinked=flat.kinked(w),
        certificate=certificate(residual),
        Z=Z,
        upstream=upstream,
    )


def look(problem: Problem, W: Weights, slopes: Slopes, step: float, ride: bool = False) -> Point:
    """Objective, gradients with the chosen slopes, and the certificate they give."""
    point = _look(problem, W, slopes, np.asarray(step, W[0].dtype), np.asarray(ride))
    return point._replace(Z=problem.allsum.rows(point.Z), upstream=problem.allsum.rows(point.upstream))


def cholesky(H: np.ndarray) -> np.ndarray | None:
    """Cholesky's lower factor, or None where ``H`` is not positive definite."""
    lower, info = dpotrf(H, lower=1)
    return lower if info == 0 else None


def solve_lower(lower: np.ndarray, sides: np.ndarray, trans: int = 0) -> np.ndarray:
    """``L^-1 sides`` or ``L^-T sides``; LAPACK itself, since small systems spend their time on checks."""
    return dtrtrs(lower, sides, lower=1, trans=trans)[0]


class Model(NamedTuple):
    """The piecewise quadratic model of the objective at a point, on its free weights.

    Free are the weights that are not zero, and those at zero that the prox would release; ``side`` is the
    sign that each keeps. One without a kink at zero may have either: its ``side`` is 0.
    """

    w: np.ndarray
    side: np.ndarray
    H: Hessian
    G: np.ndarray
    J: np.ndarray
    kinks: Kinks

    def at(self, keep: np.ndarray) -> "Model":
        """The model of some of its weights, while the others stay where they are."""
        return Model(
            self.w[keep], self.side[keep], self.H.at(keep), self.G[keep], self.J[:, keep], self.kinks
        )

    def slight_damping(self, least: float, damping: float = 0.0) -> float | None:
        """``damping``, or ``least`` if that is none and too little; None where the model still bends down."""
        one = np.eye(self.w.size)
        if not damping and cholesky(self.H.full - least * one) is not None:
            return 0.0
        damping = max(damping, least)
        return damping if cholesky(self.H.majorised + damping * one) is not None else None

    def least_damping(self, least: float, damping: float = 0.0) -> float:
        """About the least with which the model is convex: slight, or by its lowest curvature."""
        slight = self.slight_damping(least, damping)
        if slight is not None:
            return slight
        majorised = self.H.majorised
        lowest = scipy.linalg.eigh(majorised, eigvals_only=True, subset_by_index=(0, 0), check_finite=False)
        return max(damping, least + 2 * abs(float(lowest[0])))

    def minimise(self, damping: float, least: float) -> tuple[np.ndarray, np.ndarray, float] | None:
        """The step of the free weights, the slopes of the candidates, and the damping that it needed.

        Where the model bends down, a weight at zero moves only if it still would when the others have moved:
        most would not, and what they bend down is not to be damped for nothing.
        """
        slight = self.slight_damping(least, damping)
        if slight is not None:
            solved = self.solve(slight)
            return None if solved is None else (*solved, slight)
        live = self.w != 0
        moving = live if live.any() else ~live
        while True:
            some = self.at(moving)
            damping = some.least_damping(least, damping)
            solved = some.solve(damping)
            if solved is None:
                return None
            dw, s = np.zeros(self.w.size), solved[1]
            dw[moving] = solved[0]
            pull = self.G + self.H.full @ dw + self.J.T @ (self.kinks.jump * s)
            leaves = ~moving & (pull * self.side < 0)
            if not leaves.any():
                return dw, s, damping
            moving = moving | leaves

    def solve(self, damping: float) -> tuple[np.ndarray, np.ndarray] | None:
        """The step of all weights and the slopes of the candidates, if the model is convex.

        Undamped it is Newton's; damped, what is concave in the penalty is replaced by its tangent. A weight
        that would cross a kink of its penalty stops at zero, and the others are solved for again: with the
        curvature ``L L'`` and ``Q`` the range of ``L^-1`` on the weights that stop, ``L' dw`` is given on
        ``Q`` and free across.
        """
        curvature = self.H.majorised + damping * np.eye(self.w.size) if damping else self.H.full
        lower = cholesky(curvature)
        if lower is None:
            return None
        jump, stops = self.kinks.jump, np.zeros(self.w.size, bool)
        LG, LC = solve_lower(lower, self.G), solve_lower(lower, self.J.T * jump)
        M, q = LC.T @ LC, LC.T @ LG - jump * self.kinks.offset
        s, Q, given = (self.kinks.offset > 0).astype(float), np.zeros((self.w.size, 0)), np.zeros(0)
        while True:
            K = Q.T @ LC
            s = kinks_.best_slopes(M - K.T @ K, q - K.T @ (Q.T @ LG - given), s)
            r = LG + LC @ s
            dw = -solve_lower(lower, r - Q @ (Q.T @ r - given), trans=1)
            dw[stops] = -self.w[stops]
            crossing = ~stops & ((self.w + dw) * self.side < 0)
            if not crossing.any():
                return dw, s
            stops |= crossing
            Q, R = np.linalg.qr(solve_lower(lower, np.eye(self.w.size)[:, stops]))
            given = np.linalg.solve(R.T, self.w[stops])


def finish(
    problem: Problem, W: Weights, slopes: Slopes, step: float, rate: float, tol: float, budget: int
) -> Finish:
    """Damped Newton steps from ``W`` until the certificate is well within ``tol`` or they stop helping.

    Well within, so that the zeros are those of the solution. Near a saddle the steps stop when ``rate``, what
    a quasi-Newton step has gained of late, promises more.
    """
    steps: list[Step] = []
    damping, fresh, slow, together, free = 0.0, True, False, False, np.zeros(0, int)
    charged = any(block.activity is not None for block in problem.network.blocks)
    on_live, redundant, H = None, False, Hessian(np.zeros((0, 0)), np.zeros((0, 0)))
    aim = min(tol, max(WELL_WITHIN * tol, 50 * float(np.finfo(W[0].dtype).eps)))
    # kinks that nothing holds allow no more
    aim, nothing = (aim, 1e-12) if problem.allsum.in_memory else (tol, 1e-9)
    slopes, point = certify(problem, W, slopes, look(problem, W, slopes, step), step, aim)
    n_held, nearest = 0, (float(point.certificate), W, slopes, 0, float(point.objective))
    while float(point.certificate) > aim and len(steps) < min(MAX_STEPS, budget):
        w, was = ravel(W), free
        # along a bias that changes nothing the model bends down, and would have to be damped
        idle = kinks_.redundant_biases(problem, W, point.Z, slopes)
        free = np.flatnonzero(((w != 0) | (np.abs(np.asarray(point.moved)) > step * aim / 2)) & ~idle)
        if fresh or not np.isin(free, was).all():
            H, fresh = hessian(problem, W, slopes, free), True
            length = bounded(1 / np.abs(H.full).sum(1).max(initial=1.0), w.dtype)
            if not step / NEAR <= length <= NEAR * step:
                step, point = length, look(problem, W, slopes, length)
            on_live, redundant = H.at(w[free] != 0).full, idle[w != 0].any()
            if slow and cholesky(on_live + SADDLE / step * np.eye(len(on_live))) is None:
                break  # near a saddle, which quasi-Newton steps leave faster
        else:
            H = H.at(np.isin(was, free))
        found, damping = advance(problem, W, slopes, point, free, H, step, together, damping)
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
        if row[2] < nearest[0]:
            nearest = row[2], W, slopes, n_held, row[0]
    end = float(point.certificate), W, slopes, n_held, float(point.objective)
    # where the steps found their way out of a flat saddle, they are to go on
    back = nearest[0] <= tol < end[0] and nearest[-1] <= end[-1] + 1e-9 * abs(end[-1])
    certificate, W, slopes, n_held, _ = nearest if back else end
    # an activity is here with its majoriser, which says nothing about a minimum
    strict = None if charged or on_live is None else not redundant and cholesky(on_live) is not None
    return Finish(W, slopes, certificate, float(step), strict, n_held, steps)


def advance(
    problem: Problem,
    W: Weights,
    slopes: Slopes,
    now: Point,
    free: np.ndarray,
    H: Hessian,
    step: float,
    together: bool,
    damping: float,
) -> tuple[tuple | None, float]:
    """A step that lowers the objective, and its damping: without kinks where it is at none and meets none."""
    kinks = problem.allsum.in_memory and any(block.link.kinks for block in problem.network.blocks[:-1])
    if not kinks or not sits(problem, W, now.Z):
        smooth = model_at(problem, W, slopes, now, free, H, step, None)
        found, after = search(problem, W, now, smooth, free, step, damping, 1 if kinks else TRIALS)
        if not kinks or (found is not None and not crosses(problem, now.Z, found[2].Z)):
            return found, after
    model = model_at(problem, W, slopes, now, free, H, step, together)
    return search(problem, W, now, model, free, step, damping)


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


def certify(
    problem: Problem, W: Weights, slopes: Slopes, point: Point, step: float, tol: float
) -> tuple[Slopes, Point]:
    """The point with those slopes of its idle entries that certify it best, chosen from the top down."""
    zeros = ravel(W) == 0
    off = lambda at: np.abs(np.asarray(at.moved))[zeros].max(initial=0.0)  # noqa: E731
    if off(point) <= step * tol or not problem.allsum.in_memory:
        return slopes, point  # its zeros are good as they are, or no row can have a slope of its own
    trial, at = list(slopes), point
    for l, idle in reversed(list(enumerate(kinks_.find_idle(problem, point.Z, slopes)))):
        if not problem.allsum(idle.mask.sum()):
            continue
        jump = np.where(idle.mask, np.asarray(at.upstream[l]) * (idle.right - idle.left), 0)
        if problem.allsum(np.count_nonzero(jump)):
            held, slope = slopes[l]
            trial[l] = held | idle.mask, np.where(idle.mask, idle.left, slope)
            at = look(problem, W, tuple(trial), step)
            share = _idle_shares(problem, W, l, jump, at, step, tol)
            trial[l] = held | idle.mask, np.where(idle.mask, idle.slope(share), slope).astype(slope.dtype)
            at = look(problem, W, tuple(trial), step)
    return (tuple(trial), at) if off(at) < off(point) else (slopes, point)


def _idle_shares(
    problem: Problem, W: Weights, l: int, jump: np.ndarray, at: Point, step: float, tol: float
) -> np.ndarray:
    """Shares of the way from left to right that make the residual of block ``l`` small.

    Accelerated projected gradient steps on ``|residual|^2 / 2``, whose derivative in the gradient is the
    residual itself. ``at`` has the left slopes, ``jump`` what the right ones would add.
    """
    rows = np.flatnonzero((jump != 0).any(1))
    units = np.flatnonzero(problem.allsum(np.count_nonzero(jump, axis=0)))
    block, W_l, G = problem.network.blocks[l], np.asarray(W[l]), unravel(at.gradient, W)[l].copy()
    F = np.asarray(block.features(reads_of(problem, at)[l]))[rows]
    c, from_left = jump[np.ix_(rows, units)], G[units]
    grams = problem.allsum(np.einsum("nu,na,nb->uab", c**2, F, F, optimize=True))
    pace = c / np.maximum(np.linalg.eigvalsh(grams)[:, -1], np.finfo(float).tiny)
    length = np.asarray(step, W_l.dtype)
    s = ahead = np.zeros(c.shape)
    for k in range(CERTIFY_STEPS):
        G[units] = from_left + problem.allsum((c * ahead).T @ F)
        residual = np.asarray(_block_residual(block, W_l, G, length))[units]
        if np.abs(residual).max() <= tol / 2:
            s = ahead
            break
        s, last = np.clip(ahead - pace * (F @ residual.T), 0, 1), s
        ahead = np.clip(s + k / (k + 3) * (s - last), 0, 1)
    out = np.zeros(jump.shape)
    out[np.ix_(rows, units)] = s
    return out


@jax.jit
def _block_residual(block: Dense, W: Array, gradient: Array, step: Array) -> Array:
    return (W - block.prox(W - step * gradient, step)) / step


def reads_of(problem: Problem, point: Point) -> list[Array]:
    """What every hidden block reads."""
    links = [block.link for block in problem.network.blocks]
    return [problem.X, *(link(z) for link, z in zip(links, point.Z[:-1]))][: len(links) - 1]


def model_at(
    problem: Problem,
    W: Weights,
    slopes: Slopes,
    now: Point,
    free: np.ndarray,
    H: Hessian,
    step: float,
    together: bool | None,
) -> Model:
    """The model of the objective around ``W``, starting from the left slopes of all candidates.

    ``together`` says whether entries that read the same share a kink; None leaves kinks out.
    """
    at, kinks = now, kinks_.none()
    if together is not None:
        # nothing rides on the only hidden block
        riding = now if len(slopes) == 1 else look(problem, W, slopes, step, True)
        kinks = kinks_.find(problem, W, riding.Z, riding.upstream, together)
        resting = kinks_.resting(problem, now.Z, slopes)
        left = np.zeros(kinks.offset.size)
        at = look(problem, W, kinks.slopes(resting, left, left == 0), step)
    w, moved, gradient, slope = (
        np.asarray(a, float)[free] for a in (ravel(W), now.moved, now.gradient, now.penalty_gradient)
    )
    # at zero the penalty pulls back with what the prox leaves of the gradient
    pull = np.where(w == 0, (w - moved) / step - gradient, slope)
    side = np.where(np.asarray(now.kinked)[free], np.sign(np.where(w == 0, moved, w)), 0.0)
    J = kinks_.jacobian(problem, W, slopes, kinks)[:, free]
    G = np.asarray(at.gradient, float)[free] + pull
    reach = (J**2).sum(1)
    sits = (np.abs(kinks.offset) < SITS) & (reach > SITS)
    if sits.any() and cholesky(H.full) is None:
        # what is held cannot move: squares of how far it would make the model convex and change nothing else
        rows = J[sits]
        square = 1 / (step * reach[sits])
        H = Hessian(H.loss + (rows.T * square) @ rows, H.penalty)
        G += rows.T @ (square * kinks.offset[sits])
    return Model(w, side, H, G, J, kinks)


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
            W_next = unravel(trial.astype(w.dtype), W)
            after = look(problem, W_next, slopes, step)
            if float(after.objective) <= level:
                found = W_next, slopes, after, int(held.sum())
                if damping > least:
                    found = further(problem, w, found, model.side, free, step)
                # what made this model convex the next will say for itself, unless its trials are journeys
                kept = refused or not problem.allsum.in_memory
                return found, damping / 100 if kept and damping > 100 * least else 0.0
        damping = max(10 * damping, least)
    return None, damping


def further(
    problem: Problem, w: np.ndarray, found: tuple, side: np.ndarray, free: np.ndarray, step: float
) -> tuple:
    """A damped step, doubled while the objective falls: where a unit dies it is a long way down.

    A weight that would leave its side stops at zero.
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
