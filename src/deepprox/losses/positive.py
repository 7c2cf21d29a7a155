"""Losses of counts and of positive responses, whose mean is ``exp(eta)``."""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy.special import gammaln, xlogy

from deepprox.arrays import namespace
from deepprox.losses.contract import Separable, need
from deepprox.struct import struct


class _Exponential(Separable):
    """A response of mean ``exp(eta)``, as far as that is finite."""

    def mean(self, eta: Array) -> Array:
        xp = namespace(eta)
        return xp.exp(xp.minimum(eta, largest(eta)))

    def inverse_mean(self, mu: Array) -> Array:
        xp = namespace(mu)
        return xp.log(xp.maximum(mu, 1e-8))


@struct
class Poisson(_Exponential):
    """``exp(eta) - y eta``: a count of mean ``exp(eta)``.

    Beyond ``eta`` = 354 (44 in single precision) the exponential goes on as its tangent: finite and
    convex where ``exp`` would overflow, and far from the mean of any count.
    """

    by_formula: ClassVar[bool] = True
    responses: ClassVar[str] = "numbers of at least 0"

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return _exp(eta) - y * eta

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        rise, bend = _rise(eta)
        return rise - y, bend

    def takes(self, y: np.ndarray) -> np.ndarray:
        return y >= 0

    def log_base(self, y: np.ndarray) -> np.ndarray:
        return -gammaln(y + 1).sum(1)

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        return rng.poisson(count * mu) / count

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """By Lambert's function: ``eta + step exp(eta) = v + step y``."""
        return _solve_exp(step, v + step * y)


@struct
class NegativeBinomial(_Exponential):
    """``(y + 1/d) log(1 + d exp(eta)) - y eta``: a count of more variance than Poisson's.

    Its mean is ``mu = exp(eta)`` and its variance ``mu + d mu^2``. The ``dispersion`` d is given, not
    estimated; towards 0 the loss becomes that of Poisson.
    """

    dispersion: float = 1.0
    by_formula: ClassVar[bool] = True
    responses: ClassVar[str] = "numbers of at least 0"

    def check(self) -> None:
        """Without dispersion it is Poisson's."""
        need(self, "dispersion", "positive", lambda dispersion: dispersion > 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        xp = namespace(eta)
        return (y + 1 / self.dispersion) * xp.softplus(eta + xp.log(self.dispersion)) - y * eta

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        xp, size = namespace(eta), y + 1 / self.dispersion
        p = xp.sigmoid(eta + xp.log(self.dispersion))
        return size * p - y, size * p * (1 - p)

    def takes(self, y: np.ndarray) -> np.ndarray:
        return y >= 0

    def log_base(self, y: np.ndarray) -> np.ndarray:
        size = 1 / np.asarray(self.dispersion)
        return (gammaln(y + size) - gammaln(size) - gammaln(y + 1) - xlogy(y, size)).sum(1)

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        size = 1 / np.asarray(self.dispersion)
        return rng.negative_binomial(count * size, size / (size + mu)) / count


@struct
class Gamma(_Exponential):
    """``shape (y exp(-eta) + eta)``: a positive response of mean ``exp(eta)``, variance ``mean^2 / shape``.

    Below ``eta`` = -354 (-44 in single precision) the exponential goes on as its tangent, as Poisson's.
    """

    shape: float = 1.0
    by_formula: ClassVar[bool] = True
    responses: ClassVar[str] = "positive numbers"

    def check(self) -> None:
        """A shape is positive."""
        need(self, "shape", "positive", lambda shape: shape > 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return self.shape * (y * _exp(-eta) + eta)

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        rise, bend = _rise(-eta)
        return self.shape * (1 - y * rise), self.shape * y * bend

    def takes(self, y: np.ndarray) -> np.ndarray:
        return y > 0

    def log_base(self, y: np.ndarray) -> np.ndarray:
        shape = np.asarray(self.shape)
        return (xlogy(shape, shape) - gammaln(shape) + (shape - 1) * np.log(y)).sum(1)

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        return rng.gamma(count * self.shape, mu / (count * self.shape))

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """By Lambert's function: ``-eta + step shape y exp(-eta) = step shape - v``."""
        return -_solve_exp(step * self.shape * y, step * self.shape - v)


def largest(eta: Array) -> float:
    """Where ``exp`` gives up: its square is still finite there."""
    return math.log(float(jnp.finfo(eta.dtype).max)) / 2


def _exp(eta: Array) -> Array:
    """``exp(eta)``, continued by its tangent where it would overflow."""
    xp = namespace(eta)
    core = xp.minimum(eta, largest(eta))
    return xp.exp(core) * (1 + eta - core)


def _rise(eta: Array) -> tuple[Array, Array]:
    """The first and second derivative of that; the tangent has no second."""
    xp = namespace(eta)
    rise = xp.exp(xp.minimum(eta, largest(eta)))
    return rise, xp.where(eta <= largest(eta), rise, 0.0)


def _solve_exp(weight: Array, c: Array) -> Array:
    """The root of ``x + weight exp(x) = c``, for ``weight >= 0``: Newton's steps fall to it from above.

    With ``u = x + log weight`` it reads ``u + exp(u) = a``. The starts ``u = a`` below 0, 0 up to 1 and
    ``log a`` beyond are never below the root, and so near that eight steps end at rounding.
    """
    shift = jnp.log(weight)
    a = c + shift
    x = jnp.where(a <= 0, c, jnp.log(jnp.maximum(a, 1)) - shift)

    def newton(_: int, x: Array) -> Array:
        rise = weight * jnp.exp(x)
        return x - (x - c + rise) / (1 + rise)

    return lax.fori_loop(0, 8, newton, x)
