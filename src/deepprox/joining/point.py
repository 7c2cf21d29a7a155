"""A point of the Newton steps: everything that the next needs to know of it, and what certifies it."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.blocks import Block
from deepprox.joining import kinks as kinks_
from deepprox.joining.certificate import certificate, flatten, ravel, unravel
from deepprox.joining.kinks import Slopes
from deepprox.problem import Problem, Weights
from deepprox.spreading import program
from deepprox.struct import change_rows, replace, rows, struct

CERTIFY_STEPS = 200


@struct
class Point:
    """A point of the Newton iteration with everything its next step needs.

    ``moved`` is the prox-gradient point, ``kinked`` the weights whose penalty has a kink at zero; ``Z`` ends
    with ``eta``. ``slope`` has the derivatives of those hidden links that have kinks, at their own ``Z``.
    """

    objective: Array
    loss: Array
    gradient: Array
    penalty_gradient: Array
    moved: Array
    kinked: Array
    certificate: Array
    Z: tuple[Array, ...] = rows()
    upstream: tuple[Array, ...] = rows()
    slope: tuple[Array | None, ...] = rows()


def _at(problem: Problem, W: Weights, slopes: Slopes, step: Array, ride: Array) -> Point:
    w, flat = flatten(problem, W)
    riding = jnp.broadcast_to(ride, (problem.X.shape[0], 1))

    def mean_loss(w: Array, nudge: tuple[Array, ...]) -> tuple[Array, tuple]:
        at = kinks_.forward(problem, flat.unravel(w), slopes, riding, on_reads=nudge)
        return problem.smooth_part(at), (problem.data_loss(at.Z[-1]), at.Z)

    hidden = problem.network.blocks[:-1]
    n, n_in = problem.X.shape
    nudge = tuple(jnp.zeros((n, width), w.dtype) for width in problem.network.sources(n_in)[1:])
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
        slope=tuple(kinks_.derivative(b.link, z) if b.link.kinks else None for b, z in zip(hidden, Z)),
    )


_look = program()(_at)


def look(problem: Problem, W: Weights, slopes: Slopes, step: float, ride: bool = False) -> Point:
    """Objective, gradients with the chosen slopes, and the certificate they give."""
    return _here(problem, _look(problem, W, slopes, np.asarray(step, W[0].dtype), np.asarray(ride)))


def _here(problem: Problem, point: Point) -> Point:
    """A point of which this process has its rows, and the host its numbers."""
    point = change_rows(lambda array, _: problem.allsum.rows(array), point)
    numbers = {name: np.asarray(getattr(point, name)) for name in ("objective", "loss", "certificate")}
    return replace(point, **numbers)  # once: they are asked for many times


def _levelled(problem: Problem, W: Weights, V: Weights) -> Weights:
    network, out = problem.network, list(V)
    here = network.run(W, problem.X)
    way = [block.linear(v - w, r) for block, v, w, r in zip(network.blocks, V, W, here.reads)]
    told = network.run(W, problem.X, lambda l, z: z + way[l])

    def levelled(l: int, z: Array) -> Array:
        if l == 0 or not network.blocks[l].free_bias:
            return z
        off = problem.allsum(problem.weight @ (told.Z[l] - z)).reshape(-1, len(V[l])).mean(0)  # over places
        out[l] = network.blocks[l].raised(V[l], off)
        return z + jnp.tile(off, z.shape[1] // len(off))

    network.run(V, problem.X, levelled)
    return tuple(out)


@program()
def _leap(problem: Problem, W: Weights, V: Weights, slopes: Slopes, step: Array) -> tuple[Weights, Point]:
    V = _levelled(problem, W, V)
    return V, _at(problem, V, slopes, step, jnp.zeros((), bool))


def leap(problem: Problem, W: Weights, V: Weights, slopes: Slopes, step: float) -> tuple[Weights, Point]:
    """Where a step from ``W`` to ``V`` leads: ``V`` with other free biases, and the point there.

    With these biases means of pre-activations are what a model around ``W`` says. A unit that is active
    nearly everywhere may have almost any bias, if the next block's biases follow. What follows is a product
    of two weights: to first order a step would leave that valley, which bends.
    """
    if not any(block.free_bias for block in problem.network.blocks[1:]) or not problem.allsum.in_memory:
        return V, look(problem, V, slopes, step)
    V, point = _leap(problem, W, V, slopes, np.asarray(step, W[0].dtype))
    return tuple(map(np.asarray, V)), _here(problem, point)


def certify(
    problem: Problem, W: Weights, slopes: Slopes, point: Point, step: float, tol: float
) -> tuple[Slopes, Point]:
    """The point with those slopes of its idle entries that certify it best, chosen from the top down."""
    zeros = ravel(W) == 0
    off = lambda at: np.abs(np.asarray(at.moved))[zeros].max(initial=0.0)  # noqa: E731
    if off(point) <= step * tol or not problem.allsum.in_memory:
        return slopes, point  # its zeros are good as they are, or no row can have a slope of its own
    trial, at, entries = slopes, point, kinks_.find_idle(problem, point.Z, slopes)
    for l in reversed([l for l, block in enumerate(problem.network.blocks[:-1]) if block.by_unit]):
        # weights that several places share have no slopes chosen for them
        idle = entries.take(entries.block == l)
        jump = idle.pick(at.upstream) * (idle.right - idle.left)
        if problem.allsum(np.count_nonzero(jump)):
            trial = idle.put(trial, idle.left)
            at, jumps = look(problem, W, trial, step), np.zeros(trial.held[l].shape)
            jumps.flat[idle.place] = jump
            share = _idle_shares(problem, W, l, jumps, at, step, tol)
            trial = idle.put(trial, idle.between(share.flat[idle.place]))
            at = look(problem, W, trial, step)
    return (trial, at) if off(at) < off(point) else (slopes, point)


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
    reads = problem.network.hidden_reads(problem.X, at.Z)[l]
    F = np.asarray(block.features(reads))[rows]
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
def _block_residual(block: Block, W: Array, gradient: Array, step: Array) -> Array:
    return (W - block.prox(W - step * gradient, step)) / step
