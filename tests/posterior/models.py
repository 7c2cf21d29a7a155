"""Small problems that need no fit."""

import jax.numpy as jnp
import numpy as np

from deepprox.blocks import Dense
from deepprox.links import Tanh
from deepprox.problem import Network, Problem


def problem(loss, penalty, X, y, hidden=(), penalize_bias=False):
    """Observations of equal weight and a network with tanh units."""
    y = np.asarray(y, float)
    y = y[:, None] if y.ndim == 1 else y
    sizes = (*hidden, y.shape[1])
    blocks = tuple(Dense(size, Tanh(), penalty, penalize_bias=penalize_bias) for size in sizes)
    weight = np.full(len(X), 1 / len(X))
    return Problem(Network(blocks), loss, jnp.asarray(X, float), jnp.asarray(y), jnp.asarray(weight))


def zeros(problem):
    """Weights that are all zero."""
    return tuple(np.zeros(shape) for shape in problem.network.shapes(problem.X.shape[1]))
