"""Laplace's approximation: a Gaussian around the fit, on the weights that are live there.

    w = mode + N(0, P^-1),      P = scale H_AA + the precision of free hidden biases,      A the live weights

    log p(y) ~ log p(y | W) + log prior(W) + d/2 log(2 pi) - 1/2 log|P|

``H_AA`` is the Hessian of the objective on the live set (:mod:`deepprox.statistics.curvature`). Weights that
their penalty holds at zero stay there: their posterior has a kink, not a parabola. The marginal likelihood
is therefore that of the network that is left, with the prior of its ``d`` weights and its normalising
constant: ``scale alpha / 2`` for each weight under l1, a Gaussian's under l2. Free output biases have a flat
prior of density one, so that Bayes factors compare models of the same response and loss, not more. Units
can be relabelled, and the same network is there many times; these copies are not counted.

``P`` is exact up to 5000 live weights. Above, or on request, it is a diagonal and the largest bends beside,

    P ~ D^1/2 (I + V diag(b) V') D^1/2,      D the Gauss-Newton diagonal, b and V by Lanczos' method,

or the diagonal alone; or only the weights of the last block vary.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import gammaln, log_ndtr

from deepprox.blocks import Block
from deepprox.checks import need_name
from deepprox.joining.kinks import no_slopes
from deepprox.joining.live import canonical
from deepprox.memory import need, of_square
from deepprox.penalties import L1, L2, ElasticNet, LogSum, StudentT
from deepprox.posterior.chains import Record
from deepprox.posterior.target import BIAS_SCALE, Target, pose
from deepprox.problem import Problem, Weights
from deepprox.statistics.curvature import (
    Held,
    at_kinks,
    diagonal,
    live_weights,
    open_directions,
    second_derivatives,
    times,
)

CURVATURES = ("auto", "full", "low_rank", "diagonal", "last_block")
HESSIANS = 6  # matrices held at once while its factor is found
EXACT = 5000  # live weights up to which the Hessian is formed
RANK = 60  # directions in which a low-rank curvature bends otherwise than its diagonal
FLAT = 1e-9  # curvature that counts as none, of a Hessian with a unit diagonal


@dataclass(frozen=True)
class Laplace:
    """A Gaussian ``mode + basis N(0, P^-1)`` of some weights.

    ``root`` is the Cholesky factor of ``P``, or the square root of its diagonal, beside which it bends by
    ``bends``, the values ``b`` and vectors ``V``.
    ``log_evidence`` is None where it is not known, and ``message`` then says why.
    """

    target: Target
    mode: np.ndarray
    basis: np.ndarray | None
    root: np.ndarray
    log_evidence: float | None
    message: str
    bends: tuple[np.ndarray, np.ndarray] | None = None

    def draw(self, n_chains: int, n_draws: int, seed: int) -> Record:
        """Independent draws of the weights at ``target.places``."""
        noise = np.random.default_rng(seed).standard_normal((n_chains * n_draws, len(self.root)))
        if self.bends is not None:
            b, V = self.bends
            noise = noise + (noise @ V) * (1 / np.sqrt(1 + b) - 1) @ V.T
        if self.root.ndim == 1:
            steps = noise / self.root
        else:
            steps = scipy.linalg.solve_triangular(self.root, noise.T, lower=True, trans="T").T
        if self.basis is not None:
            steps = steps @ self.basis.T
        return {"w": (self.mode + steps).reshape(n_chains, n_draws, -1)}


def laplace(
    problem: Problem,
    W: Weights,
    n: int,
    sigma: float | None = None,
    bias_scale: float = BIAS_SCALE,
    curvature: str = "auto",
) -> Laplace:
    """The Gaussian around the fit ``W``.

    Parameters
    ----------
    problem, W, n, sigma, bias_scale
        As :func:`deepprox.posterior.target.pose` takes them.
    curvature : {"auto", "full", "low_rank", "diagonal", "last_block"}
        Which second derivatives: all, their Gauss-Newton diagonal with the largest bends beside it or
        without, or all of the last block, whose weights alone then vary. "auto" is "full" up to 5000 live
        weights, then "low_rank".
    """
    need_name("curvature", curvature, CURVATURES)
    W = canonical(problem.network, W)[0]
    live = live_weights(problem, W)
    if curvature == "last_block":
        live = live[live >= sum(w.size for w in W[:-1])]
    target = pose(problem, W, n, sigma, bias_scale, places=live)
    if curvature == "diagonal":
        return _diagonal(target, W)
    if curvature == "low_rank" or (curvature == "auto" and live.size > EXACT):
        return _low_rank(_diagonal(target, W), W)
    cheaper = "take curvature='low_rank' or 'diagonal'"
    need(of_square(live.size, HESSIANS, f"second derivatives in {live.size} weights", cheaper))
    return _full(target, W, whole=curvature != "last_block")


def _diagonal(target: Target, W: Weights) -> Laplace:
    places = np.asarray(target.places)
    bends = float(target.scale) * diagonal(target.problem, W, no_slopes(target.problem), places)
    P = bends + np.asarray(target.ridge)[places] + np.asarray(target.anchor)[places] ** 2
    if (P <= 0).any():
        raise ValueError("The loss is flat in some live weight: Laplace's approximation has no width there.")
    return Laplace(target, target.start, None, np.sqrt(P), None, "none with a diagonal curvature")


def _low_rank(found: Laplace, W: Weights) -> Laplace:
    """The Gaussian with that diagonal, and the directions in which it bends most otherwise."""
    target, size = found.target, found.root.size
    problem, places = target.problem, np.asarray(target.places)
    ridge, anchor = np.asarray(target.ridge)[places], np.asarray(target.anchor)[places]

    def beside_diagonal(v: np.ndarray) -> np.ndarray:
        u = v.ravel() / found.root
        Hu = times(problem, W, no_slopes(problem), places, u[None], penalised=True)[0]
        return (float(target.scale) * Hu + ridge * u + anchor * (anchor @ u)) / found.root - v.ravel()

    operator = LinearOperator((size, size), beside_diagonal, dtype=float)
    b, V = eigsh(operator, min(RANK, size - 1), which="LM", v0=np.ones(size), tol=1e-4)
    if b[0] <= FLAT - 1:
        raise ValueError(
            f"Laplace's approximation needs a minimum, and the Hessian on the live weights, scaled to a unit "
            f"diagonal, has the eigenvalue {1 + b[0]:.2g}: fit to a smaller tol, or use curvature='diagonal'."
        )
    return replace(found, bends=(b, V), message="none with a low-rank curvature")


def _full(target: Target, W: Weights, whole: bool) -> Laplace:
    problem, places, scale = target.problem, np.asarray(target.places), float(target.scale)
    ridge, anchor = np.asarray(target.ridge)[places], np.asarray(target.anchor)[places]
    smooth = problem.network.smooth
    held = at_kinks(problem, W, places) if smooth else Held(no_slopes(problem), np.zeros((0, places.size)))
    of_loss, of_penalty = second_derivatives(problem, W, held.slopes, places)
    basis = scipy.linalg.null_space(held.rows) if len(held.rows) else None
    if not smooth:
        basis, of_penalty = open_directions(problem, W, places, of_penalty)
    P = scale * of_loss + np.diag(ridge) + np.outer(anchor, anchor)
    if basis is None:
        P = P + scale * of_penalty
    else:
        P = basis.T @ P @ basis + scale * (basis.T @ of_penalty @ basis if smooth else of_penalty)
    P, basis = _bent(P, basis)
    root = np.linalg.cholesky(P)
    # the fit is the mode without the priors of free biases: a Newton step brings it to the mode with them
    pull = ridge * target.start + anchor * (anchor @ target.start)
    step = scipy.linalg.cho_solve((root, True), pull if basis is None else basis.T @ pull)
    mode = target.start - (step if basis is None else basis @ step)
    found = Laplace(target, mode, basis, root, None, "none with the last block alone")
    return _with_evidence(found, W) if whole else found


def _bent(P: np.ndarray, basis: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The precision on the directions that bend, and these directions.

    What is flat moves neither the fit nor the prior, as what all classes of a softmax share under l1.
    """
    scales = np.sqrt(np.maximum(np.diag(P), 1e-300))
    scaled = P / np.outer(scales, scales)
    try:
        if np.diag(np.linalg.cholesky(scaled)).min(initial=1.0) ** 2 > FLAT:
            return P, basis
    except np.linalg.LinAlgError:
        pass  # the eigenvalues say whether it is flat or bends down
    values, vectors = np.linalg.eigh(scaled)
    if values[0] < -FLAT:
        raise ValueError(
            f"Laplace's approximation needs a minimum, and the Hessian on the live weights, scaled to a unit "
            f"diagonal, has the eigenvalue {values[0]:.2g}: fit to a smaller tol, or use method='proximal'."
        )
    directions = vectors[:, values > FLAT] / scales[:, None]
    return np.diag(values[values > FLAT]), directions if basis is None else basis @ directions


def _with_evidence(found: Laplace, W: Weights) -> Laplace:
    target, d = found.target, len(found.root)
    log_constants = _log_constants(target, W)
    if found.basis is not None:
        return _without(found, "none: some directions are flat or held at a kink, where no parabola fits")
    if isinstance(log_constants, str):
        return _without(found, log_constants)
    log_density = float(_log_density(target, found.mode)) + log_base(target)
    log_volume = d / 2 * math.log(2 * math.pi) - float(np.log(np.diag(found.root)).sum())
    return Laplace(
        target, found.mode, None, found.root, log_density + log_constants + log_volume, "on the live weights"
    )


@jax.jit
def _log_density(target: Target, w: Any) -> Any:
    return target.log_density(w)


def _without(found: Laplace, reason: str) -> Laplace:
    return Laplace(found.target, found.mode, found.basis, found.root, None, reason)


def log_base(target: Target) -> float:
    """``log p(y | W) + scale mean_loss(W)``: what the loss leaves out of the likelihood."""
    problem = target.problem
    y, weight = np.asarray(problem.y), np.asarray(problem.weight)
    n = float(target.n)
    base = n * float(weight @ problem.loss.log_base(y))
    # squared loss is written for unit variance
    return base - n * y.shape[1] / 2 * math.log(n / float(target.scale)) if problem.loss.free_scale else base


def _log_constants(target: Target, W: Weights) -> float | str:
    """The log normalising constants of the priors of the weights that vary, or why they are not known."""
    network = target.problem.network
    if any(block.activity is not None for block in network.blocks):
        return "none: an activity is a prior whose constant is not known"
    varies = np.zeros(sum(w.size for w in W), bool)
    varies[np.asarray(target.places)] = True
    ridge = np.asarray(target.ridge)
    total = float(0.5 * np.log(ridge[varies & (ridge > 0)] / (2 * math.pi)).sum())
    begin = 0
    for block, w in zip(network.blocks, W):
        here = varies[begin : begin + w.size].reshape(w.shape)
        penalised = here[:, block.first :]
        begin += w.size
        if penalised.any():
            constants = log_prior_constant(block, float(target.scale))
            if constants is None:
                name = type(block.penalty).__name__
                return f"none: the normalising constant of the prior {name} is not known"
            total += float(np.broadcast_to(constants, penalised.shape)[penalised].sum())
    return total


def log_prior_constant(block: Block, scale: float) -> Any:
    """``-log integral exp(-scale penalty(w)) dw`` of one weight; None where it is not known."""
    penalty = block.penalty
    if not isinstance(penalty, L1 | L2 | ElasticNet | StudentT | LogSum):
        return None
    alpha = scale * np.asarray(penalty.alpha, float)
    if isinstance(penalty, L1):
        return np.log(alpha / 2)
    if isinstance(penalty, L2):
        return np.log(alpha / (2 * math.pi)) / 2
    if isinstance(penalty, ElasticNet):
        rate, precision = alpha * penalty.l1_ratio, alpha * (1 - np.asarray(penalty.l1_ratio, float))
        if not (precision > 0).all():
            return np.log(rate / 2)
        z = rate / np.sqrt(precision)
        return -(math.log(2) + np.log(2 * math.pi / precision) / 2 + z**2 / 2 + log_ndtr(-z))
    if isinstance(penalty, StudentT):
        width = np.sqrt(np.asarray(penalty.df, float)) * penalty.scale
        return gammaln(alpha) - gammaln(alpha - 0.5) - np.log(width) - math.log(math.pi) / 2
    return np.log((alpha - 1) / (2 * np.asarray(penalty.eps, float)))
