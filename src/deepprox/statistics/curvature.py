"""How a solution moves with the response: second derivatives on the directions open to it.

When the response moves a little, zeros stay zero and what sits at a kink stays there. What moves is the
live weights of the canonical form, or combinations of them. With ``F`` the objective, ``J_i`` the Jacobian
of ``eta_i`` in these, and ``K_i = -(d^2 loss / d eta d y) (d mean / d eta)`` at observation ``i``,

    H = d^2 F,          G = sum_i weight_i J_i' K_i J_i,          d mean / d y  has trace  tr(H^-1 G).

For a canonical loss (squared, softmax, logistic, Poisson) ``K`` is its second derivative in ``eta``; for
every likelihood of an exponential family it is Fisher's information.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array, lax

from deepprox.blocks import Block
from deepprox.joining import kinks as kinks_
from deepprox.joining.box import best_slopes
from deepprox.joining.certificate import flatten, ravel, unravel
from deepprox.joining.hessian import Hessian, Places, hessian, loss_hessian
from deepprox.joining.kinks import Slopes, no_slopes
from deepprox.joining.live import canonical
from deepprox.joining.model import survey
from deepprox.joining.point import look
from deepprox.losses import Loss
from deepprox.problem import Network, Problem, Weights
from deepprox.struct import replace, struct

INSIDE = 1e-9  # a slope this far from both sides of a kink holds its pre-activation there
NUDGE = 1e-6  # of a prox's argument, whose derivative is taken by differences
OPEN = 1e-6  # derivative of a prox above which a direction is open


@struct
class Response(Loss):
    """``(eta - eta_hat)' K (eta - eta_hat) / 2``, ``y`` holding ``eta_hat`` and the response.

    Its second derivatives in the weights are ``G`` at ``eta_hat``: its gradient vanishes there.
    """

    loss: Loss

    def value(self, eta: Array, y: Array) -> Array:
        at, y = jnp.split(y, 2, axis=1)
        step = eta - at
        moved = jax.jvp(self.loss.mean, (at,), (step,))[1]
        slope = jax.grad(lambda eta, y: self.loss.value(eta, y).sum())
        return -(step * jax.jvp(lambda y: slope(at, y), (y,), (moved,))[1]).sum(-1) / 2

    def mean(self, eta: Array) -> Array:
        return eta


def responses(problem: Problem, W: Weights) -> Problem:
    """The problem whose second derivatives at ``W`` are ``G``."""
    eta = np.asarray(look(problem, W, no_slopes(problem), 1.0).Z[-1])
    free = Network(tuple(replace(block, activity=None) for block in problem.network.blocks))
    y = np.concatenate([eta, np.asarray(problem.y)], axis=1)
    return replace(problem, network=free, loss=Response(problem.loss), y=y)


def live_weights(problem: Problem, W: Weights) -> np.ndarray:
    """The numbers of the weights that can move: between live places and not held at zero by their penalty."""
    live = canonical(problem.network, W)[1]
    kinked = unravel(look(problem, W, no_slopes(problem), 1.0).kinked, W)
    masks = tuple(
        live.weights(problem.network, l) & ((w != 0) | ~held if block.penalty.smooth else True)
        for l, (block, w, held) in enumerate(zip(problem.network.blocks, W, kinked))
    )
    return np.flatnonzero(ravel(masks))


class Held(NamedTuple):
    """Pre-activations at kinks: the slopes that hold them, and their derivatives in the live weights."""

    slopes: Slopes
    rows: np.ndarray


def at_kinks(problem: Problem, W: Weights, live: np.ndarray) -> Held:
    """Which pre-activations a solution holds at kinks of their links.

    Their slopes belong to ``min_dw g' dw + |dw|^2 / 2 + sum_k jump_k max(offset_k + J_k dw, 0)``, the model
    of the Newton steps with unit curvature: at a solution ``dw`` is 0, whatever the curvature.
    """
    none = no_slopes(problem)
    if not any(block.link.kinks for block in problem.network.blocks[:-1]):
        return Held(none, np.zeros((0, live.size)))
    at = look(problem, W, none, 1.0)
    kinks, J, gradient = survey(problem, W, none, at, 1.0, together=False)
    J, g = J[:, live], (gradient + np.asarray(at.penalty_gradient))[live]
    C, above = J.T * kinks.jump, (kinks.offset > 0).astype(float)
    s = best_slopes(C.T @ C, C.T @ g - kinks.jump * kinks.offset, above)
    held = (s > INSIDE) & (s < 1 - INSIDE)
    return Held(kinks.slopes(none, s, held), J[held])


class Curvature(NamedTuple):
    """``H`` and ``G`` on the directions in which a solution can move.

    ``residual`` is the largest derivative of the objective in a live weight: 0 at a solution.
    """

    H: np.ndarray
    G: np.ndarray
    n_live: int
    n_held: int
    residual: float


def curvature(problem: Problem, W: Weights) -> Curvature:
    """Both matrices, dense; ``W`` in canonical form."""
    live = live_weights(problem, W)
    smooth = problem.network.smooth
    # the Newton steps, which find slopes at kinks, need smooth penalties: without them no kink is held
    held = at_kinks(problem, W, live) if smooth else Held(no_slopes(problem), np.zeros((0, live.size)))
    H, G = (
        second_derivatives(problem, W, held.slopes, live),
        loss_hessian(responses(problem, W), W, held.slopes, live),
    )
    basis, penalty = (None, H.penalty) if smooth else open_directions(problem, W, live, H.penalty)
    if basis is not None:
        H, G = Hessian(basis.T @ H.loss @ basis, penalty), basis.T @ G @ basis
    objective = H.full
    if len(held.rows):  # what is held moves along none of these rows
        along = scipy.linalg.null_space(held.rows)
        objective, G = along.T @ objective @ along, along.T @ G @ along
    return Curvature(objective, G, live.size, len(held.rows), residual(problem, W, held.slopes, live))


def residual(problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray) -> float:
    """The largest derivative of the objective in a live weight, or what its prox makes of it."""
    at = look(problem, W, slopes, 1.0)
    pull = unravel(at.gradient + at.penalty_gradient, W)
    moved = unravel(ravel(W) - np.asarray(at.moved), W)
    parts = tuple(a if b.penalty.smooth else c for b, a, c in zip(problem.network.blocks, pull, moved))
    return float(np.abs(ravel(parts))[live].max(initial=0.0))


def second_derivatives(problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray) -> Hessian:
    """The Hessian on some weights, activities as they are."""
    H = hessian(problem, W, slopes, live)
    if all(block.activity is None for block in problem.network.blocks):
        return H
    # there an activity is its majoriser; here it is itself
    columns = np.asarray(times(problem, W, slopes, live, np.eye(live.size), penalised=False))
    return Hessian((columns + columns.T) / 2, H.penalty)


def times(
    problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray, V: np.ndarray, penalised: bool
) -> np.ndarray:
    """The rows of ``V`` times the Hessian, with or without the penalty, in the weights ``live``."""
    # shapes from few sizes: what is beyond the last weight is dropped
    index = np.full(max(32, 1 << (live.size - 1).bit_length()), np.iinfo(np.int32).max, np.int32)
    index[: live.size] = live
    rows = np.zeros((len(V), index.size))
    rows[:, : live.size] = V
    return np.asarray(_times(problem, W, slopes, index, rows, np.asarray(penalised)))[:, : live.size]


@jax.jit
def _times(problem: Problem, W: Weights, slopes: Slopes, index: Any, V: Array, penalised: Array) -> Array:
    w, flat = flatten(problem, W)
    nobody = jnp.zeros((problem.X.shape[0], 1), bool)

    def mean_loss(w: Array) -> Array:
        return problem.smooth_part(kinks_.forward(problem, flat.unravel(w), slopes, nobody))

    def one(v: Array) -> Array:
        direction = jnp.zeros_like(w).at[index].set(v, mode="drop")
        of_loss = problem.allsum(jax.jvp(jax.grad(mean_loss), (w,), (direction,))[1])
        of_penalty = jax.jvp(flat.penalty_gradient, (w,), (direction,))[1]
        return (of_loss + jnp.where(penalised, of_penalty, 0.0)).at[index].get(mode="fill", fill_value=0.0)

    return lax.map(one, V)


def diagonal(problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray) -> np.ndarray:
    """The diagonal of ``G`` plus what bends up in the penalty: a scale for every live weight, at least 0.

    A weight moves the pre-activation of its unit by what it reads: ``sum_i F_ij^2 d^2 loss / d z_ia^2``.
    Where several places share weights no scale is known, and all are 0.
    """
    if not all(block.by_unit for block in problem.network.blocks):
        return np.zeros(live.size)
    at = Places.of(live, W)
    units = np.unique(at.unit)
    padded = np.full(-(-units.size // 8) * 8, np.iinfo(np.int32).max, np.int32)
    padded[: units.size] = units
    F, bends, bent = map(np.asarray, _unit_bends(responses(problem, W), W, slopes, padded))
    out = np.zeros(live.size)
    for unit, bend in zip(units, bends):
        out[at.unit == unit] = F[at.feature[at.unit == unit]] ** 2 @ bend
    return np.maximum(out, 0) + np.maximum(bent[live], 0)


@jax.jit
def _unit_bends(problem: Problem, W: Weights, slopes: Slopes, units: Array) -> tuple[Array, ...]:
    """What weights read, the second derivative of the loss in each of ``units``, and that of the penalty."""
    w, flat = flatten(problem, W)
    sizes = [block.size for block in problem.network.blocks]
    nobody = jnp.zeros((problem.X.shape[0], 1), bool)

    def mean_loss(shift: Array) -> tuple[Array, Array]:
        shifts = jnp.split(shift.T, np.cumsum(sizes)[:-1], axis=1)
        at = kinks_.forward(problem, W, slopes, nobody, on_z=shifts)
        features = [block.features(r).T for block, r in zip(problem.network.blocks, at.reads)]
        return problem.data_loss(at.Z[-1]), jnp.concatenate(features)

    still = jnp.zeros((sum(sizes), problem.X.shape[0]), problem.X.dtype)
    (_, F), push = jax.linearize(jax.grad(mean_loss, has_aux=True), still)
    bends = lax.map(lambda u: push(still.at[u].set(1.0, mode="drop"))[0].at[u].get(mode="clip"), units)
    return F, bends, jax.jvp(flat.penalty_gradient, (w,), (jnp.ones_like(w),))[1]


def open_directions(
    problem: Problem, W: Weights, live: np.ndarray, penalty: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Directions in which a penalty with kinks away from zero lets weights move, and its curvature in them.

    A prox moves with its argument along the surface on which the penalty is smooth, by
    ``1 / (1 + step curvature)`` of the way: the rank of a matrix, a level, a bound all stay. ``penalty``
    holds second derivatives of the blocks whose penalty is smooth.
    """
    gradient = unravel(look(problem, W, no_slopes(problem), 1.0).gradient, W)
    ends = np.cumsum([w.size for w in W])
    block_of = np.searchsorted(ends, live, side="right")
    bases, bends = [], []
    for l, (block, w, g) in enumerate(zip(problem.network.blocks, W, gradient)):
        mine = np.flatnonzero(block_of == l)
        if block.penalty.smooth:
            bases.append(np.eye(mine.size))
            bends.append(penalty[np.ix_(mine, mine)])
        else:
            places = live[mine] - (ends[l] - w.size)
            share, directions = np.linalg.eigh(_prox_derivative(block, w - g, places))
            bases.append(directions[:, share > OPEN])
            bends.append(np.diag(1 / share[share > OPEN] - 1))
    return scipy.linalg.block_diag(*bases), scipy.linalg.block_diag(*bends)


def _prox_derivative(block: Block, V: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The derivative of the prox of step 1 at ``V`` in some entries of it, by central differences.

    Automatic derivatives of a singular value decomposition have no value where singular values are equal.
    """
    length = NUDGE * (1 + np.abs(V).max())
    nudges = np.zeros((places.size, V.size))
    nudges[np.arange(places.size), places] = length
    ahead, behind = (_proxes(block, V + side * nudges.reshape(-1, *V.shape)) for side in (1, -1))
    P = (np.asarray(ahead) - np.asarray(behind)).reshape(nudges.shape)[:, places] / (2 * length)
    return (P + P.T) / 2


@jax.jit
def _proxes(block: Block, V: Array) -> Array:
    return lax.map(lambda v: block.prox(v, jnp.ones((), v.dtype)), V)
