"""Newton steps on the live weights, through the kinks of piecewise links.

Where every link is smooth this is Newton's method on the non-zero weights. A ReLU network is at its
best with some pre-activations exactly at a kink, where the loss has no gradient and any slope between
the two sides is as good as another. There, the step minimises the piecewise quadratic model

    G' dw + dw' H dw / 2 + sum_k c_k max(v_k + J_k dw, 0)

with ``v_k`` the pre-activation over its kink, ``J_k`` its derivative in the live weights, and ``c_k`` the
jump of the derivative. Its dual is a small quadratic program in the slopes ``0 <= s_k <= 1``. The slopes
strictly inside hold their pre-activation at the kink, and with them the point can be certified.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from deepprox.joining.certificate import certificate, flatten
from deepprox.joining.live import LADDER
from deepprox.problem import Problem, Weights

N_CANDIDATES = 256
EDGE = 1e-6

Slopes = tuple[tuple[Array, Array], ...]  # of every hidden block: mask of held entries, their slopes


class Point(NamedTuple):
    """A point of the Newton iteration with everything its next step needs."""

    objective: Array
    loss: Array
    gradient: Array
    total_gradient: Array
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


def _forward(problem: Problem, W: Weights, slopes: Slopes, nudge: tuple[Array, ...], ride: Array) -> tuple:
    """``Z`` and ``eta`` with chosen slopes at held entries, reads shifted by ``nudge``.

    In a deep ReLU network an entry above a held one is at its own kink too, because all that it reads
    is zero there. It follows the one below: in rows that ``ride``, and in rows with a held entry, entries
    exactly at a kink take the slope of its right side.
    """
    Z, reads = [], problem.X
    blocks = problem.network.blocks
    for block, w, (held, slope), shift in zip(blocks[:-1], W[:-1], slopes, nudge, strict=True):
        z = block.linear(w, reads)
        reads = block.link(z) + shift
        if block.link.kinks:
            one = jnp.ones_like(z)
            own, right = (jax.jvp(block.link, (at,), (one,))[1] for at in (z, z + EDGE))
            at_kink = jnp.isin(z, jnp.asarray(block.link.kinks, z.dtype))
            wanted = jnp.where(held, slope, jnp.where(at_kink & ride, right, own))
            # adds zero, with a derivative that replaces the link's own
            reads += lax.stop_gradient(wanted - own) * (z - lax.stop_gradient(z))
        ride = ride | held.any(1, keepdims=True)
        Z.append(z)
    return tuple(Z), blocks[-1].linear(W[-1], reads)


def _mean_loss(
    problem: Problem, W: Weights, slopes: Slopes, nudge: tuple[Array, ...], ride: Array
) -> tuple[Array, tuple[Array, ...]]:
    Z, eta = _forward(problem, W, slopes, nudge, ride)
    return (problem.weight * problem.loss.value(eta, problem.y)).sum(), Z


@jax.jit
def look(
    problem: Problem, W: Weights, slopes: Slopes, step: Array | float, ride: Array | bool = False
) -> Point:
    """Objective, gradients with the chosen slopes, and the certificate they give."""
    w, flat = flatten(problem, W)
    riding = jnp.broadcast_to(jnp.asarray(ride), (problem.X.shape[0], 1))
    nudge = tuple(jnp.zeros_like(slope) for _, slope in slopes)
    of = lambda w, nudge: _mean_loss(problem, flat.unravel(w), slopes, nudge, riding)  # noqa: E731
    (loss, Z), (gradient, upstream) = jax.value_and_grad(of, (0, 1), has_aux=True)(w, nudge)
    loss, gradient = problem.allsum((loss, gradient))
    return Point(
        objective=loss + flat.penalty(w),
        loss=loss,
        gradient=gradient,
        total_gradient=gradient + flat.penalty_gradient(w),
        certificate=certificate(flat.residual(w, gradient, jnp.asarray(step, w.dtype))),
        Z=Z,
        upstream=upstream,
    )


@jax.jit
def columns(
    problem: Problem, W: Weights, slopes: Slopes, index: Array, entries: tuple[Array, ...]
) -> tuple[Array, Array]:
    """Hessian on the weights ``index`` and derivatives of the pre-activations ``entries`` in them."""
    w, flat = flatten(problem, W)
    nudge = tuple(jnp.zeros_like(slope) for _, slope in slopes)

    riding = jnp.zeros((problem.X.shape[0], 1), bool)

    def gradient_and_z(w: Array) -> tuple[Array, Array]:
        of = lambda w: _mean_loss(problem, flat.unravel(w), slopes, nudge, riding)  # noqa: E731
        (_, Z), gradient = jax.value_and_grad(of, has_aux=True)(w)
        picked = [z.ravel()[e] for z, e in zip(Z, entries, strict=True)]
        gradient = problem.allsum(gradient) + flat.penalty_gradient(w)
        return gradient[index], jnp.concatenate([jnp.zeros(1, w.dtype), *picked])

    def column(j: Array) -> tuple[Array, Array]:
        direction = jnp.zeros_like(w).at[j].set(1.0, mode="drop")
        return jax.jvp(gradient_and_z, (w,), (direction,))[1]

    return lax.map(column, index, batch_size=32)


def no_slopes(problem: Problem) -> Slopes:
    """Every link with its own derivative everywhere."""
    shapes = [(problem.X.shape[0], block.size) for block in problem.network.blocks[:-1]]
    return tuple((jnp.zeros(s, bool), jnp.zeros(s, problem.X.dtype)) for s in shapes)


class Kinks(NamedTuple):
    """Pre-activations that may sit at a kink: where they are, how far off, and the two slopes."""

    block: np.ndarray
    entry: np.ndarray
    offset: np.ndarray
    left: np.ndarray
    right: np.ndarray
    upstream: np.ndarray

    @property
    def jump(self) -> np.ndarray:
        """``c_k``: what the derivative of the objective in the pre-activation jumps by."""
        return self.upstream * (self.right - self.left)

    def slopes(self, problem: Problem, s: np.ndarray, pick: np.ndarray) -> Slopes:
        """Slopes ``left + s (right - left)`` at the picked entries."""
        out = []
        for l, (held, slope) in enumerate(no_slopes(problem)):
            mask, value = np.zeros(held.shape, bool), np.zeros(slope.shape, slope.dtype)
            here = pick & (self.block == l)
            mask.flat[self.entry[here]] = True
            value.flat[self.entry[here]] = (self.left + s * (self.right - self.left))[here]
            out.append((jnp.asarray(mask), jnp.asarray(value)))
        return tuple(out)


def find_kinks(problem: Problem, W: Weights, point: Point) -> Kinks:
    """The entries nearest to a kink where the objective is convex across it.

    An entry that is zero because all that it reads is zero has nothing of its own to move.
    """
    rows = []
    weight, reads = np.asarray(problem.weight), np.abs(np.asarray(problem.X))
    layers = zip(problem.network.blocks, W, point.Z, point.upstream, strict=False)
    for l, (block, w, z, up) in enumerate(layers):
        w, z, up = np.abs(np.asarray(w)), np.asarray(z), np.asarray(up)
        moves = (reads @ w[:, 1:].T + w[:, 0] > 0) & (weight[:, None] > 0)
        for kink in block.link.kinks:
            sides = jnp.asarray([kink - EDGE, kink + EDGE], z.dtype)
            left, right = np.asarray(jax.jvp(block.link, (sides,), (jnp.ones_like(sides),))[1])
            entry = np.flatnonzero((up * (right - left) > 0) & moves)
            same = np.ones(entry.size)
            rows.append([l * same.astype(int), entry, (z - kink).flat[entry], left * same, right * same, up.flat[entry]])
        reads = np.abs(np.asarray(block.link(point.Z[l])))
    if not rows:
        return Kinks(*(np.zeros(0, t) for t in (int, int, float, float, float, float)))
    table = [np.concatenate(column) for column in zip(*rows, strict=True)]
    nearest = np.sort(np.argsort(np.abs(table[2]), kind="stable")[:N_CANDIDATES])
    return Kinks(*(column[nearest] for column in table))


def best_slopes(M: np.ndarray, q: np.ndarray, s: np.ndarray) -> np.ndarray:
    """``argmin s' M s / 2 + q' s`` over ``0 <= s <= 1`` by the primal-dual active-set method.

    Should the sets cycle, projected gradient steps settle them.
    """
    if not s.size:
        return s
    M = M + 1e-12 * np.diag(M).mean() * np.eye(len(M))
    scale = np.divide(1, np.diag(M), out=np.zeros(len(M)), where=np.diag(M) > 0)
    inside = np.zeros(s.size, bool)
    for _ in range(30):
        forward = s - scale * (M @ s + q)
        now = (forward > 0) & (forward < 1)
        s = np.where(forward >= 1, 1.0, np.where(forward <= 0, 0.0, s))
        if now.any():
            rest = M[np.ix_(now, ~now)] @ s[~now] + q[now]
            s[now] = -np.linalg.lstsq(M[np.ix_(now, now)], rest, rcond=None)[0]
        if (now == inside).all() and (s >= 0).all() and (s <= 1).all():
            return s
        inside = now
    step = 1 / max(np.linalg.norm(M, 2), np.finfo(float).tiny)
    s = np.clip(s, 0, 1)
    for _ in range(1000):
        s = np.clip(s - step * (M @ s + q), 0, 1)
    return s


def finish(problem: Problem, W: Weights, step: float, tol: float, max_steps: int = 10) -> Finish:
    """Damped Newton steps from ``W`` until the certificate holds or they stop helping."""
    W = tuple(jnp.asarray(w) for w in W)
    slopes, strict, steps, damping = no_slopes(problem), True, [], 0.0
    point = look(problem, W, slopes, step)
    while point.certificate > tol and len(steps) < max_steps:
        W, point = release(problem, W, slopes, point, step)
        live = np.flatnonzero(ravel_pytree(W)[0])
        kinks = find_kinks(problem, W, look(problem, W, slopes, step, True))
        # the model starts from the left slopes of all candidates
        from_left = kinks.slopes(problem, np.zeros(kinks.entry.size), np.ones(kinks.entry.size, bool))
        G = np.asarray(look(problem, W, from_left, step).total_gradient, float)[live]
        H, J = system(problem, W, slopes, live, kinks)
        top = np.abs(H).sum(1).max(initial=np.finfo(float).tiny)
        step = 1 / top
        strict = is_positive_definite(H)
        if not strict and len(steps) > 2:
            break  # still near a saddle: quasi-Newton steps leave it faster
        for _ in range(10):
            found = attempt(problem, W, point, live, H + damping * np.eye(live.size), G, J, kinks, step)
            if found is not None:
                break
            damping = max(5 * damping, 1e-5 * top)
        else:
            break
        W, slopes, point, n_held = found
        damping = damping / 25 if damping > 1e-5 * top else 0.0
        row = (float(point.objective), float(point.loss), float(point.certificate))
        steps.append(Step(*row, sum(int(jnp.count_nonzero(w)) for w in W), n_held))
    return Finish(W, slopes, float(point.certificate), float(step), strict, steps)


def attempt(
    problem: Problem, W: Weights, point: Point, live: np.ndarray, H: np.ndarray, G: np.ndarray,
    J: np.ndarray, kinks: Kinks, step: float,
) -> tuple | None:  # fmt: skip
    """The step that minimises the model, if ``H`` is positive definite and the objective agrees."""
    if not is_positive_definite(H):
        return None
    lower = scipy.linalg.cho_factor(H)
    C = J.T * kinks.jump
    HC = scipy.linalg.cho_solve(lower, C)
    s = best_slopes(C.T @ HC, HC.T @ G - kinks.jump * kinks.offset, (kinks.offset > 0).astype(float))
    w, unravel = ravel_pytree(W)
    trial = np.array(w, float)
    trial[live] -= scipy.linalg.cho_solve(lower, G) + HC @ s
    trial[trial * np.asarray(w) < 0] = 0.0
    held = (s > 0) & (s < 1)
    slopes, W_next = kinks.slopes(problem, s, held), unravel(jnp.asarray(trial, w.dtype))
    after = look(problem, W_next, slopes, step)
    if not after.objective <= point.objective * (1 + 8 * float(jnp.finfo(w.dtype).eps)):
        return None
    return W_next, slopes, after, int(held.sum())


def release(problem: Problem, W: Weights, slopes: Slopes, point: Point, step: float) -> tuple:
    """A prox-gradient step on the zeros alone, shortened until it pays."""
    w, flat = flatten(problem, W)
    for t in 0.25 ** np.arange(8):
        freed = jnp.where(w == 0, flat.prox(w - t * step * point.gradient, t * step), w)
        if not (freed != w).any():
            break
        W_freed = flat.unravel(freed)
        at = look(problem, W_freed, slopes, step)
        if at.objective <= point.objective:
            return W_freed, at
    return W, point


def system(problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray, kinks: Kinks) -> tuple:
    """Dense ``H`` and ``J`` on the live weights, computed in padded shapes so that few compile."""
    index = np.full(next((s for s in LADDER if s >= live.size), live.size), np.iinfo(np.int32).max, np.int32)
    index[: live.size] = live
    entries, order = [], []
    for l, block in enumerate(problem.network.blocks[:-1]):
        here = np.flatnonzero(kinks.block == l)
        padded = np.zeros(N_CANDIDATES if block.link.kinks else 0, np.int32)
        padded[: here.size] = kinks.entry[here]
        entries.append(jnp.asarray(padded))
        order.append(np.pad(here, (0, padded.size - here.size), constant_values=-1))
    H, dz = columns(problem, W, slopes, jnp.asarray(index), tuple(entries))
    H = np.asarray(H, float)[: live.size, : live.size]
    order = np.concatenate([np.zeros(0, int), *order])
    J = np.zeros((kinks.entry.size, live.size))
    J[order[order >= 0]] = np.asarray(dz, float)[: live.size, 1:].T[order >= 0]
    return (H + H.T) / 2, J


def is_positive_definite(H: np.ndarray) -> bool:
    """Whether Cholesky's factorisation exists."""
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return False
    return True
