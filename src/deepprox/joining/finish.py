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
from jax import Array, lax

from deepprox.joining import kinks as kinks_
from deepprox.joining.certificate import certificate, flatten, ravel, unravel
from deepprox.joining.kinks import Kinks, Slopes, no_slopes
from deepprox.problem import Problem, Weights

MAX_STEPS = 20
CERTIFY_STEPS = 200
PAYS = 1e-5  # share of the objective, for each live weight, that a step must gain to be worth its Hessian
REUSE = 0.3  # a Hessian serves again while its step leaves at most this share of the certificate


class Point(NamedTuple):
    """A point of the Newton iteration with everything its next step needs.

    ``moved`` is the prox-gradient point; ``Z`` ends with ``eta``.
    """

    objective: Array
    loss: Array
    gradient: Array
    penalty_gradient: Array
    moved: Array
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
    strict: bool
    steps: list[Step]

    @property
    def n_held(self) -> int:
        """How many entries a slope holds at their kink."""
        return self.steps[-1].n_held if self.steps else 0


@jax.jit
def _look(problem: Problem, W: Weights, slopes: Slopes, step: Array, ride: Array) -> Point:
    w, flat = flatten(problem, W)
    riding = jnp.broadcast_to(ride, (problem.X.shape[0], 1))

    def mean_loss(w: Array, nudge: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        Z, eta = kinks_.forward(problem, flat.unravel(w), slopes, nudge, riding)
        return (problem.weight * problem.loss.value(eta, problem.y)).sum(), (*Z, eta)

    nudge = tuple(jnp.zeros_like(slope) for _, slope in slopes)
    (loss, Z), (gradient, upstream) = jax.value_and_grad(mean_loss, (0, 1), has_aux=True)(w, nudge)
    loss, gradient = problem.allsum((loss, gradient))
    residual = flat.residual(w, gradient, step)
    return Point(
        objective=loss + flat.penalty(w),
        loss=loss,
        gradient=gradient,
        penalty_gradient=flat.penalty_gradient(w),
        moved=w - step * residual,
        certificate=certificate(residual),
        Z=Z,
        upstream=upstream,
    )


def look(problem: Problem, W: Weights, slopes: Slopes, step: float, ride: bool = False) -> Point:
    """Objective, gradients with the chosen slopes, and the certificate they give."""
    return _look(problem, W, slopes, np.asarray(step, W[0].dtype), np.asarray(ride))


@jax.jit
def _hessian(problem: Problem, W: Weights, slopes: Slopes, index: Array) -> Array:
    w, flat = flatten(problem, W)
    nudge = tuple(jnp.zeros_like(slope) for _, slope in slopes)
    nobody = jnp.zeros((problem.X.shape[0], 1), bool)

    def mean_loss(w: Array) -> Array:
        _, eta = kinks_.forward(problem, flat.unravel(w), slopes, nudge, nobody)
        return (problem.weight * problem.loss.value(eta, problem.y)).sum()

    def gradient(w: Array) -> Array:
        return (problem.allsum(jax.grad(mean_loss)(w)) + flat.penalty_gradient(w))[index]

    def column(j: Array) -> Array:
        direction = jnp.zeros_like(w).at[j].set(1.0, mode="drop")
        return jax.jvp(gradient, (w,), (direction,))[1]

    return lax.map(column, index, batch_size=32)


def hessian(problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray) -> np.ndarray:
    """Second derivatives of the objective in the weights ``live``, in padded shapes so that few compile."""
    index = np.full(max(32, 1 << (live.size - 1).bit_length()), np.iinfo(np.int32).max, np.int32)
    index[: live.size] = live
    H = np.asarray(_hessian(problem, W, slopes, index), float)[: live.size, : live.size]
    return (H + H.T) / 2


def cholesky(H: np.ndarray) -> tuple | None:
    """Cholesky's factor, or None where ``H`` is not positive definite."""
    try:
        return scipy.linalg.cho_factor(H)
    except scipy.linalg.LinAlgError:
        return None


class Model(NamedTuple):
    """The piecewise quadratic model of the objective at a point, on its live weights."""

    live: np.ndarray
    H: np.ndarray
    G: np.ndarray
    J: np.ndarray
    kinks: Kinks

    def minimise(self, damping: float) -> tuple[np.ndarray, np.ndarray] | None:
        """The step of the live weights and the slopes of the candidates, if the model is convex."""
        lower, jump = cholesky(self.H + damping * np.eye(len(self.H))), self.kinks.jump
        if lower is None:
            return None
        C = self.J.T * jump
        HC = scipy.linalg.cho_solve(lower, C)
        side = (self.kinks.offset > 0).astype(float)
        s = kinks_.best_slopes(C.T @ HC, HC.T @ self.G - jump * self.kinks.offset, side)
        return -scipy.linalg.cho_solve(lower, self.G) - HC @ s, s


def finish(problem: Problem, W: Weights, step: float, tol: float, budget: int = MAX_STEPS) -> Finish:
    """Damped Newton steps from ``W`` until the certificate holds or they stop helping."""
    steps: list[Step] = []
    slopes, damping = no_slopes(problem), 0.0
    strict, fresh, slow, H, live = True, True, False, np.zeros((0, 0)), np.zeros(0, int)
    slopes, point = certify(problem, W, slopes, step, tol)
    while float(point.certificate) > tol and len(steps) < min(MAX_STEPS, budget):
        W, point = release(problem, W, slopes, point, step)
        was, live = live, np.flatnonzero(ravel(W))
        if fresh or not np.isin(live, was).all():
            H, fresh = hessian(problem, W, slopes, live), True
            step = 1 / np.abs(H).sum(1).max(initial=np.finfo(float).tiny)
            strict = cholesky(H) is not None
            if not strict and slow:
                break  # near a saddle, which quasi-Newton steps leave faster
        else:
            keep = np.isin(was, live)
            H = H[np.ix_(keep, keep)]
        model = model_at(problem, W, slopes, live, H, step)
        found, damping = search(problem, W, point, model, step, damping)
        if found is None:
            if fresh:
                break
            fresh = True
            continue
        before, level = float(point.certificate), float(point.objective)
        W, slopes, point, n_held = found
        slopes, point = certify(problem, W, slopes, step, tol)
        slow = level - float(point.objective) < PAYS * live.size * abs(level)
        fresh = float(point.certificate) > REUSE * before
        row = (float(point.objective), float(point.loss), float(point.certificate))
        steps.append(Step(*row, int(np.count_nonzero(ravel(W))), n_held))
        if row[2] > 0.9 * before and len(steps) > 1 and row[0] >= steps[-2].objective * (1 - 1e-12):
            break
    return Finish(W, slopes, float(point.certificate), float(step), strict, steps)


def certify(problem: Problem, W: Weights, slopes: Slopes, step: float, tol: float) -> tuple[Slopes, Point]:
    """The point with those slopes of its idle entries that certify it best.

    Projected gradient steps on ``|residual|^2 / 2`` over slopes between the two sides of each kink.
    """
    point = look(problem, W, slopes, step)
    w = ravel(W)
    off = np.abs(w - np.asarray(point.moved))[w != 0].max(initial=0.0) / step
    if float(point.certificate) <= tol or off > tol:
        return slopes, point  # good as it is, or not for its zeros alone
    idle = kinks_.find_idle(problem, point.Z, slopes)
    if not any(block.mask.any() for block in idle):
        return slopes, point
    riding = look(problem, W, slopes, step, True)
    F = [np.asarray(b.features(reads)) for b, reads in zip(problem.network.blocks, reads_of(problem, point))]
    jumps = [np.asarray(up) * (i.right - i.left) for up, i in zip(riding.upstream, idle)]
    # one over the largest curvature of what a unit's slopes can do to its gradient
    pace = [_pace(np.where(i.mask, j, 0), f) for i, j, f in zip(idle, jumps, F)]
    share = [np.zeros(block.mask.shape) for block in idle]
    best = slopes, point
    for _ in range(CERTIFY_STEPS):
        residual = unravel((w - np.asarray(best[1].moved)) / step, W)
        for l, block in enumerate(idle):
            push = jumps[l] * (F[l] @ residual[l].T)
            share[l] = np.where(block.mask, np.clip(share[l] - pace[l] * push, 0, 1), 0)
        trial = tuple(
            (held | i.mask, np.where(i.mask, i.slope(s), slope).astype(slope.dtype))
            for (held, slope), i, s in zip(slopes, idle, share)
        )
        at = look(problem, W, trial, step)
        best = trial, at
        if float(at.certificate) <= tol:
            break
    return best if float(best[1].certificate) < float(point.certificate) else (slopes, point)


def _pace(jumps: np.ndarray, F: np.ndarray) -> np.ndarray:
    grams = np.einsum("nu,na,nb->uab", jumps**2, F, F, optimize=True)
    return 1 / np.maximum(np.linalg.eigvalsh(grams)[:, -1], np.finfo(float).tiny)


def reads_of(problem: Problem, point: Point) -> list[Array]:
    """What every hidden block reads."""
    links = [block.link for block in problem.network.blocks]
    return [problem.X, *(link(z) for link, z in zip(links, point.Z[:-1]))][: len(links) - 1]


def model_at(
    problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray, H: np.ndarray, step: float
) -> Model:
    """The model of the objective around ``W``, starting from the left slopes of all candidates."""
    kinks = kinks_.none()
    if any(block.link.kinks for block in problem.network.blocks[:-1]):
        riding = look(problem, W, slopes, step, True)
        kinks = kinks_.find(problem, W, riding.Z, riding.upstream)
    from_left = kinks.slopes(problem, np.zeros(kinks.entry.size), np.ones(kinks.entry.size, bool))
    at = look(problem, W, from_left, step)
    G = np.asarray(at.gradient, float)[live] + np.asarray(at.penalty_gradient, float)[live]
    return Model(live, H, G, kinks_.jacobian(problem, W, slopes, kinks)[:, live], kinks)


def search(
    problem: Problem, W: Weights, point: Point, model: Model, step: float, damping: float
) -> tuple[tuple | None, float]:
    """The least damped step of the model that does not raise the objective, and its damping."""
    w = ravel(W)
    slack = 1 + 8 * float(np.finfo(w.dtype).eps)
    least = 1e-5 / step
    for _ in range(10):
        solved = model.minimise(damping)
        if solved is not None:
            trial = w.astype(float)
            trial[model.live] += solved[0]
            trial[trial * w < 0] = 0.0
            held = (solved[1] > 0) & (solved[1] < 1)
            slopes = model.kinks.slopes(problem, solved[1], held)
            W_next = unravel(trial.astype(w.dtype), W)
            after = look(problem, W_next, slopes, step)
            if float(after.objective) <= float(point.objective) * slack:
                return (W_next, slopes, after, int(held.sum())), damping / 25 if damping > least else 0.0
        damping = max(5 * damping, least)
    return None, damping


def release(problem: Problem, W: Weights, slopes: Slopes, point: Point, step: float) -> tuple[Weights, Point]:
    """A prox-gradient step on the zeros alone, shortened until it pays."""
    w, at = ravel(W), point
    for t in 0.25 ** np.arange(8):
        if t < 1:
            at = look(problem, W, slopes, t * step)
        freed = np.where(w == 0, np.asarray(at.moved), w)
        if (freed == w).all():
            break
        W_freed = unravel(freed, W)
        after = look(problem, W_freed, slopes, step)
        if float(after.objective) <= float(point.objective):
            return W_freed, after
    return W, point
