"""The posterior of a fitted network as a density of one vector: what every sampler draws from.

    log p(w | data) = -scale (mean_loss(W) + penalty(W)) - sum_j ridge_j w_j^2 / 2 - (anchor' w)^2 / 2

The fit minimises ``mean_loss + penalty`` over ``n`` observations. Read as a likelihood ``exp(-n
mean_loss)`` and a prior ``exp(-n penalty)`` it is a maximum a posteriori estimate, so ``scale`` is ``n``.
Squared loss is ``|eta - y|^2 / 2``, a Gaussian of unit variance; with variance ``sigma^2`` the likelihood
is ``exp(-n mean_loss / sigma^2)``. Likelihood and prior are then both on that scale, ``scale = n /
sigma^2``: the fit stays the mode, and the prior is the one that the strength of the penalty means in the
units of the noise.

Two directions have no end in a network and would make the posterior improper:

* A free bias of a hidden unit: where it is large, the unit is a constant or off, and the likelihood
  does not fall any more. It gets a Gaussian prior of standard deviation ``bias_scale``.
* The mean of the free output biases of a softmax: no probability depends on it. It gets a standard Gaussian,
  which changes no prediction.

The samplers move all weights, not the live ones alone: a weight that is zero at the mode is not zero in
the posterior, it varies around zero, and so do predictions with it. Only Laplace's approximation, which
needs second derivatives, stays on the live weights, where there are some.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.checks import is_spread, need_spread, shown
from deepprox.joining.certificate import ravel
from deepprox.posterior.propriety import fixed_weights, need_proper
from deepprox.problem import Problem, Weights
from deepprox.solve import in_dtype
from deepprox.struct import static, struct

BIAS_SCALE = 5.0  # |bias| up to twice this puts the bend of a unit among standardised inputs


@struct
class Target:
    """A log density of the weights at ``places``; all others stay as in the vector ``at``."""

    problem: Problem
    n: Any
    scale: Any
    ridge: Any
    anchor: Any
    at: Any
    places: Any
    shapes: tuple[tuple[int, int], ...] = static()
    noise: Any = None  # where sigma is drawn: the shape of its inverse gamma distribution

    def whole(self, w: Array) -> Array:
        """The vector of all weights."""
        return jnp.asarray(self.at).at[self.places].set(w)

    def weights(self, w: Array) -> tuple[Array, ...]:
        """The weights of every block."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = jnp.split(self.whole(w), ends[:-1])
        return tuple(part.reshape(shape) for part, shape in zip(parts, self.shapes))

    def smooth(self, w: Array) -> Array:
        """The part with a gradient: minus the log likelihood, and the priors of free biases."""
        v = self.whole(w)
        free = (self.ridge * v**2).sum() / 2 + (self.anchor @ v) ** 2 / 2
        return self.scale * self.problem.allsum(self.problem.mean_loss(self.weights(w))) + free

    def penalty(self, w: Array) -> Array:
        """Minus the log prior of the penalty, up to a constant."""
        return self.scale * self.problem.network.penalty(self.weights(w))

    def prox(self, v: Array, step: Array) -> Array:
        """``argmin_w penalty(w) + |w - v|^2 / (2 step)``."""
        moved = self.problem.network.prox(self.weights(v), step * self.scale)
        return jnp.concatenate([part.ravel() for part in moved])[self.places]

    def log_density(self, w: Array) -> Array:
        """The log posterior up to a constant, ``-inf`` where the prior forbids a weight."""
        value = self.smooth(w) + self.penalty(w)
        return -jnp.where(jnp.isnan(value), jnp.inf, value)

    @property
    def start(self) -> np.ndarray:
        """The weights of the fit."""
        return np.asarray(self.at)[np.asarray(self.places)]


def need_likelihood(problem: Problem) -> None:
    """Complain where there is none."""
    if not problem.loss.likelihood:
        raise ValueError(
            f"A posterior needs a likelihood, and the loss {type(problem.loss).__name__} is none: fit with "
            f"one that is, such as 'softmax', 'logistic', 'squared' or 'poisson'."
        )


def pose(
    problem: Problem,
    W: Weights,
    n: int,
    sigma: float | None = None,
    bias_scale: float = BIAS_SCALE,
    places: np.ndarray | None = None,
) -> Target:
    """The posterior around the fit ``W`` of ``n`` observations.

    Parameters
    ----------
    problem, W, n : Problem, weights, int
        What was solved, its solution, and how many observations the weights stand for.
    sigma : float
        Standard deviation of the response, for squared loss only.
    bias_scale : float
        Standard deviation of the prior of free biases of hidden units.
    places : array of int, default=None
        Numbers of the weights that vary; by default all that their penalty does not fix.
    """
    need_likelihood(problem)
    if not all(block.by_unit for block in problem.network.blocks):
        raise ValueError("A posterior is drawn for networks of dense blocks, and another block is here.")
    variance = _variance(problem, sigma)
    need_spread("bias_scale", bias_scale)
    problem = in_dtype(jax.tree.map(np.asarray, problem), np.float64)
    shapes = tuple((int(w.shape[0]), int(w.shape[1])) for w in W)
    if places is None:
        places = np.flatnonzero(~fixed_weights(problem.network, shapes))
    target = Target(
        problem=problem,
        n=np.asarray(float(n)),
        scale=np.asarray(n / variance),
        ridge=_ridge(problem, shapes, bias_scale),
        anchor=_anchor(problem, shapes),
        at=ravel(W).astype(np.float64),
        places=np.asarray(places, np.int32),
        shapes=shapes,
    )
    need_proper(target)
    return target


def _variance(problem: Problem, sigma: float | None) -> float:
    if not problem.loss.free_scale:
        if sigma is not None:
            raise ValueError(
                f"sigma is for squared loss: leave it out with {type(problem.loss).__name__}, whose variance "
                f"follows from its mean."
            )
        return 1.0
    if not is_spread(sigma):
        raise ValueError(
            f"Squared loss leaves the variance open: sigma must be a positive number, or 'sampled' "
            f"with method='proximal', got {shown(sigma)}."
        )
    return float(sigma / problem.loss.unit()) ** 2  # type: ignore[operator]


def _ridge(problem: Problem, shapes: tuple[tuple[int, int], ...], bias_scale: float) -> np.ndarray:
    """The precision of the prior that free hidden biases get; 0 for all other weights."""
    parts = [np.zeros(shape) for shape in shapes]
    for block, part in zip(problem.network.blocks[:-1], parts):
        if block.free_bias:
            block.biases(part)[:] = bias_scale**-2
    return ravel(tuple(parts))


def _anchor(problem: Problem, shapes: tuple[tuple[int, int], ...]) -> np.ndarray:
    """The mean of free softmax biases, as a vector that is multiplied with the weights; else 0."""
    parts = [np.zeros(shape) for shape in shapes]
    if problem.loss.simplex and problem.network.blocks[-1].free_bias:
        problem.network.blocks[-1].biases(parts[-1])[:] = 1 / len(parts[-1])
    return ravel(tuple(parts))
