"""Gibbs sampling of logistic and multinomial models by Polya-Gamma variables (Polson, Scott, Windle 2013).

    exp(eta)^a / (1 + exp(eta))^b  =  2^-b exp((a - b/2) eta) E exp(-omega eta^2 / 2),     omega ~ PG(b, 0)

Given ``omega ~ PG(c_i, psi_i)``, with ``c_i`` how many observations a row stands for, the weights of a
class are Gaussian. For several classes they are drawn one class after the other: given the rest, class ``k``
against all others is logistic in ``psi_k = eta_k - log sum_{j != k} exp(eta_j)`` (Holmes and Held 2006).

    omega_i ~ PG(c_i, psi_i),       P = F' diag(omega) F + D,       F = [1, x]
    w ~ N(P^-1 F' (c (y - 1/2) + omega offset), P^-1)

``D`` is the precision of the prior. That of l2 is ``scale alpha``. The Laplace prior of l1 with rate
``r = scale alpha`` is a mixture of Gaussians: ``1 / D_j`` given ``w_j`` is such that ``D_j`` is inverse
Gaussian with mean ``r / |w_j|`` and shape ``r^2`` (Park and Casella 2008). A free bias has ``D = 0``. Every
draw is exact: there is no step to tune and nothing to reject.
"""

from typing import Any

import numpy as np
import scipy.linalg
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from deepprox.blocks import Block
from deepprox.losses import Logistic, Softmax
from deepprox.penalties import L1, L2, ElasticNet, Zero
from deepprox.posterior.chains import CHUNK, Record
from deepprox.posterior.target import Target

SMALL = 1e-12  # the least |w_j| in the mean of an inverse Gaussian


def suits(target: Target) -> bool:
    """Whether the last block is logistic or multinomial, with a prior that is a mixture of Gaussians."""
    known = isinstance(target.problem.loss, Logistic | Softmax)
    return known and isinstance(target.problem.network.blocks[-1].penalty, L1 | L2 | ElasticNet | Zero)


def need(target: Target) -> Any:
    """The package that draws the variables, or a complaint where there is none or it does not apply."""
    if not suits(target):
        raise ValueError(
            "method='polya-gamma' is for a logistic or softmax loss and the penalty l1, l2 or elasticnet in "
            "the last block: use method='proximal'."
        )
    try:
        from polyagamma import random_polyagamma
    except ImportError as error:
        raise ImportError(
            "method='polya-gamma' needs the package polyagamma: pip install 'deepprox[posterior]'."
        ) from error
    return random_polyagamma


def rates(block: Block, shape: tuple[int, int], scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The prior ``exp(-rate |w| - precision w^2 / 2)`` of every weight; 0 and 0 for a free bias."""
    penalty, free = block.penalty, int(block.free_bias)
    rate, precision = np.zeros(shape), np.zeros(shape)
    if not isinstance(penalty, L1 | L2 | ElasticNet):
        return rate, precision
    alpha = scale * np.asarray(penalty.alpha, float)
    share = penalty.l1_ratio if isinstance(penalty, ElasticNet) else float(isinstance(penalty, L1))
    rate[:, free:], precision[:, free:] = alpha * share, alpha * (1 - share)
    return rate, precision


class PolyaGamma:
    """Gibbs chains of the last block, which may be the only one, that start at the rows of ``starts``."""

    def __init__(self, target: Target, starts: np.ndarray, seed: int) -> None:
        self._draw_omega = need(target)
        problem, shape = target.problem, target.shapes[-1]
        block = problem.network.blocks[-1]
        counts = np.asarray(problem.weight) > 0
        self.count = float(target.scale) * np.asarray(problem.weight)[counts]
        X = np.asarray(problem.X)[counts]
        self.F = block.own(np.column_stack([np.ones(len(X)), X]))
        self.y = np.asarray(problem.y)[counts]
        self.simplex = problem.loss.simplex
        self.anchor = block.own(np.asarray(target.anchor)[-shape[0] * shape[1] :].reshape(shape))
        self.rate, self.precision = rates(block, self.anchor.shape, float(target.scale))
        self.W = np.asarray(starts).reshape(len(starts), *self.anchor.shape)
        self.rngs = np.random.default_rng(seed).spawn(len(starts))

    def warm_up(self, done: int, total: int) -> None:
        """A chunk: nothing adapts, the chains forget where they started."""
        self.draw()

    def draw(self) -> Record:
        """The next chunk."""
        out = np.empty((len(self.W), CHUNK, self.W[0].size))
        with threadpool_limits(1):  # matrices are small: threads of BLAS would only wait for each other
            for chain, rng in enumerate(self.rngs):
                for k in range(CHUNK):
                    self.W[chain] = self.sweep(self.W[chain], rng)
                    out[chain, k] = self.W[chain].ravel()
        return {"w": out}

    def sweep(self, W: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One draw of all classes in turn, each given the others and what the block reads, ``F``."""
        W = W.copy()
        eta = self.F @ W.T
        D = self.precision + self._mixing(W, rng)
        for k in range(len(W)):
            W[k] = self._class(W, eta, D[k], k, rng)
            eta[:, k] = self.F @ W[k]
        return self._shift(W, D, rng) if self.simplex else W

    def _shift(self, W: np.ndarray, D: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A draw of what the classes have in common, column by column: no probability depends on it.

        Given ``D`` it is Gaussian; one class at a time would move along it in small steps only.
        """
        total = D.sum(0) + (self.anchor != 0).any(0)  # the anchor: a standard Gaussian mean of the biases
        pull = (D * W).sum(0) + self.anchor.sum(0) * (self.anchor * W).sum(0)
        return W + rng.standard_normal(W.shape[1]) / np.sqrt(total) - pull / total

    def _class(
        self, W: np.ndarray, eta: np.ndarray, D: np.ndarray, k: int, rng: np.random.Generator
    ) -> np.ndarray:
        rest = np.delete(eta, k, axis=1)
        offset = logsumexp(rest, axis=1) if self.simplex else np.zeros(len(eta))
        omega = self._draw_omega(self.count, eta[:, k] - offset, random_state=rng, disable_checks=True)
        kappa = self.count * (self.y[:, k] - 0.5)
        P = (self.F.T * omega) @ self.F
        P[np.diag_indices(len(P))] += D
        # the prior of the anchored mean, given the other biases
        a = self.anchor[k]
        others = (self.anchor * W).sum() - a @ W[k]
        right = self.F.T @ (kappa + omega * offset) - a * others
        root = np.linalg.cholesky(P + np.outer(a, a))
        half = scipy.linalg.solve_triangular(root, right, lower=True)
        noise = rng.standard_normal(len(P))
        return scipy.linalg.solve_triangular(root, half + noise, lower=True, trans="T")

    def _mixing(self, W: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The precisions that make a Laplace prior of Gaussians; 0 where there is none."""
        out, on = np.zeros(W.shape), self.rate > 0
        rate = self.rate[on]
        out[on] = rng.wald(rate / np.maximum(np.abs(W[on]), SMALL), rate**2)
        return out
