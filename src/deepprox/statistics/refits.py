"""Fits to other responses, each started from the solution at hand.

``perturbation`` is Ye's (1998) Monte-Carlo estimate of ``sum_i d mean_i / d y_i``, with small steps and
random signs; ``bootstrap`` is the covariance penalty of Efron (2004), with responses drawn from the model.
"""

from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from deepprox.joining.join import join
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.losses import Loss
from deepprox.problem import Problem, Weights
from deepprox.struct import replace

STEP = 1e-3  # of a perturbation, as a share of the response's standard deviation
FAR = 10  # times as far as the response: a fit that moved so far is in another minimum
AIM = 1e-3  # certificate that refits try for, as a share of tol
ENOUGH = 1e-1  # certificate that they need, as a share of tol
MAX_ITER = 1000


def eta_of(problem: Problem, W: Weights) -> np.ndarray:
    """The last pre-activation of every observation."""
    return np.asarray(look(problem, W, no_slopes(problem), 1.0).Z[-1])


def mean_loss(problem: Problem, W: Weights) -> float:
    """The mean loss, without activities and penalties."""
    return float(look(problem, W, no_slopes(problem), 1.0).loss)


@jax.jit
def _mean(loss: Loss, eta: Array) -> Array:
    return loss.mean(eta)


@jax.jit
def _natural(loss: Loss, eta: Array, y: Array) -> Array:
    """The natural parameter, up to a function of ``y``."""
    return -jax.grad(lambda y: loss.value(eta, y).sum())(y)


def refit(problem: Problem, W: Weights, y: np.ndarray, tol: float, near: bool = True) -> tuple[Weights, bool]:
    """Where the join phase goes from ``W`` for the response ``y``, and whether that is a solution.

    With a response ``near`` the old one Newton steps come first, and stay in the same minimum.
    """
    found = join(replace(problem, y=y), W, AIM * tol, MAX_ITER, lambda phase, rows: None, warm=near)
    return found.W, found.certificate <= ENOUGH * tol


def perturbation(
    problem: Problem, W: Weights, tol: float, n_draws: int, rng: np.random.Generator
) -> list[float]:
    """``z' (mean(y + e z) - mean(y - e z)) / 2 e`` for random signs ``z``, a number for each.

    A draw is left out where a refit found no solution, or one that is not near ``W``.
    """
    y, weight = np.asarray(problem.y), np.asarray(problem.weight)
    fitted = lambda W: np.asarray(_mean(problem.loss, eta_of(problem, W)))  # noqa: E731
    W, _ = refit(problem, W, y, tol)
    deviation = np.sqrt(np.average((y - np.average(y, 0, weight)) ** 2, 0, weight))
    length, here, found = STEP * (deviation.mean() or 1.0), fitted(W), []
    for _ in range(n_draws):
        z = rng.choice([-1.0, 1.0], y.shape) * (weight > 0)[:, None]
        if problem.loss.simplex:  # the columns still add up to one
            z -= z.mean(1, keepdims=True)
        ends = [refit(problem, W, y + side * length * z, tol) for side in (1, -1)]
        ahead, behind = (fitted(end) for end, _ in ends)
        near = max(np.linalg.norm(end - here) for end in (ahead, behind)) <= FAR * length * np.linalg.norm(z)
        if near and all(solved for _, solved in ends):
            found.append(float((z * (ahead - behind)).sum() / (2 * length)))
    return found


def bootstrap(
    problem: Problem,
    W: Weights,
    n: int,
    tol: float,
    n_draws: int,
    sigma: float | None,
    rng: np.random.Generator,
) -> list[float]:
    """``sum_i count_i (theta_i - theta_hat_i)' (y_i - mean_i) / sigma^2``, a number for each draw of ``y``.

    An observation of weight ``w`` stands for ``n w`` equal ones, and its response for their mean. ``sigma``
    is for a loss that leaves its scale open. A draw is left out where its refit found no solution.
    """
    counts = n * np.asarray(problem.weight)[:, None]
    draw = partial(problem.loss.draw, rng, count=np.where(counts > 0, counts, 1.0))
    draw(mu=np.asarray(problem.y))  # one that cannot be drawn says so before the work begins
    W, _ = refit(problem, W, np.asarray(problem.y), tol)
    eta = eta_of(problem, W)
    mu, variance = np.asarray(_mean(problem.loss, eta)), 1.0 if sigma is None else sigma**2
    natural = partial(_natural, problem.loss, y=np.asarray(problem.y))
    around: Any = np.asarray(natural(eta))
    found = []
    for _ in range(n_draws):
        y = mu + np.sqrt(variance) * (draw(mu=mu) - mu)
        again, solved = refit(problem, W, y, tol, near=False)
        if solved:
            moved = np.asarray(natural(eta_of(problem, again))) - around
            found.append(float((counts * moved * (y - mu)).sum() / variance))
    return found
