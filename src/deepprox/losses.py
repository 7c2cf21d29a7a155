"""Losses: negative log-likelihoods of a response given the last pre-activation ``eta``.

The contract is :class:`Loss`. A new loss is one class with ``value`` and ``mean``; a closed
``prox`` is an acceleration of the default and is tested against a generic minimiser.

A loss is a sum over observations. Cox's partial likelihood is not: the risk set of an event couples
the observations, its prox has no observation of its own, and so it has no place here. Grouped
survival times fit as :class:`Poisson` (piecewise exponential) or :class:`Logistic` (discrete hazards).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy.special import gammaln, xlogy

from deepprox.newton import descend
from deepprox.struct import struct


class Loss(ABC):
    """``loss(eta_i, y_i)`` of every observation: two arrays of shape (n, k) to one of shape (n,).

    ``likelihood`` says whether it is minus a log-likelihood, up to a constant, so that probabilities and
    information criteria mean something; ``smooth`` whether it has a gradient everywhere; ``convex`` whether
    it is convex in ``eta``, so that one block has one minimum; ``binary`` whether every column is a response
    in {0, 1} of its own, so that two classes need one column; ``simplex`` whether the columns of a response
    add up to one; ``free_scale`` whether it is Gaussian with a variance that it leaves open; ``responses``,
    in words, what it takes.
    """

    likelihood: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    convex: ClassVar[bool] = False
    binary: ClassVar[bool] = False
    simplex: ClassVar[bool] = False
    free_scale: ClassVar[bool] = False
    responses: ClassVar[str] = "numbers"

    @abstractmethod
    def value(self, eta: Array, y: Array) -> Array:
        """Negative log-likelihood of every observation."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Expected response given ``eta``: the prediction."""

    def check(self) -> None:  # noqa: B027
        """Raise one sentence if a parameter is out of its range; asked once, before a fit."""

    def takes(self, y: np.ndarray) -> np.ndarray:
        """Which entries of a response this loss can take."""
        return np.isfinite(y)

    def inverse_mean(self, mu: Array) -> Array:
        """The ``eta`` whose ``mean`` is ``mu``, where a fit starts; zero unless a loss says better."""
        return jnp.zeros_like(mu)

    def log_base(self, y: np.ndarray) -> np.ndarray:
        """``log p(y | eta) + loss(eta, y)`` of every observation: what ``value`` leaves out; 0 if nothing."""
        return np.zeros(len(y))

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        """The mean of ``count`` independent responses of expectation ``mu``, ``count`` of shape (n, 1)."""
        raise ValueError(
            f"{type(self).__name__} cannot draw responses: give it a method draw(rng, mu, count), or choose "
            f"what needs none, such as method='perturbation'."
        )

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """``argmin_eta loss(eta, y) + |eta - v|^2 / (2 step)``, searched from ``eta``.

        ``step`` broadcasts to shape (n, 1). The default takes ``steps`` damped Newton steps in
        every observation and never ends above its start.
        """

        def merit(eta: Array) -> Array:
            return self.value(eta, y)[:, None] + ((eta - v) ** 2 / (2 * step)).sum(-1, keepdims=True)

        def propose(eta: Array, damping: Array) -> Array:
            one_loss = lambda e, t: self.value(e[None], t[None])[0]  # noqa: E731
            slope = jax.vmap(jax.grad(one_loss))(eta, y) + (eta - v) / step
            curvature = jax.vmap(jax.hessian(one_loss))(eta, y)
            ridge = jnp.broadcast_to((1 + damping) / step, eta.shape)
            system = curvature + ridge[:, :, None] * jnp.eye(eta.shape[1], dtype=eta.dtype)
            return eta - jnp.linalg.solve(system, slope[:, :, None])[:, :, 0]

        return descend(merit, propose, eta, steps)


def _need(loss: Loss, name: str, words: str, holds: Callable[[np.ndarray], Any]) -> None:
    """One sentence about a parameter that is out of its range."""
    number = np.asarray(getattr(loss, name))
    if not np.all(holds(number)):
        raise ValueError(f"The {name} of the loss {type(loss).__name__} must be {words}, got {number}.")


class _Separable(Loss):
    """``sum_k each(eta_k, y_k)``: columns that do not know of one another."""

    convex: ClassVar[bool] = True

    @abstractmethod
    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""

    def value(self, eta: Array, y: Array) -> Array:
        """The entries of an observation added up."""
        return self.each(eta, y).sum(-1)

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """Damped Newton steps in every entry, searched from ``eta``."""

        def merit(eta: Array) -> Array:
            return self.each(eta, y) + (eta - v) ** 2 / (2 * step)

        def propose(eta: Array, damping: Array) -> Array:
            gradient = jax.grad(lambda eta: self.each(eta, y).sum())
            # entries do not interact: the derivative along all of them together is the diagonal
            slope, curvature = jax.jvp(gradient, (eta,), (jnp.ones_like(eta),))
            return eta - (slope + (eta - v) / step) / (curvature + (1 + damping) / step)

        return descend(merit, propose, eta, steps)


@struct
class Squared(Loss):
    """``|eta - y|^2 / 2``: a Gaussian response of unit variance, up to a constant."""

    convex: ClassVar[bool] = True
    free_scale: ClassVar[bool] = True

    def value(self, eta: Array, y: Array) -> Array:
        return ((eta - y) ** 2).sum(-1) / 2

    def mean(self, eta: Array) -> Array:
        return eta

    def inverse_mean(self, mu: Array) -> Array:
        return mu

    def log_base(self, y: np.ndarray) -> np.ndarray:
        return np.full(len(y), -y.shape[1] / 2 * math.log(2 * math.pi))

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        return rng.normal(mu, 1 / np.sqrt(count))

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """A weighted mean of ``v`` and ``y``."""
        return (v + step * y) / (1 + step)


@struct
class Softmax(Loss):
    """``log sum_k exp(eta_k) - y' eta``: a multinomial response, ``y`` one-hot."""

    convex: ClassVar[bool] = True
    simplex: ClassVar[bool] = True

    def value(self, eta: Array, y: Array) -> Array:
        return jax.nn.logsumexp(eta, axis=-1) - (y * eta).sum(-1)

    def mean(self, eta: Array) -> Array:
        return jax.nn.softmax(eta, axis=-1)

    def inverse_mean(self, mu: Array) -> Array:
        return jnp.log(jnp.maximum(mu, 1e-8))

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        return rng.multinomial(_whole(count)[:, 0], mu / mu.sum(1, keepdims=True)) / count

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """Newton with ``(diag(p) + ridge - p p')^-1`` by Sherman and Morrison's formula."""

        def merit(eta: Array) -> Array:
            return self.value(eta, y)[:, None] + ((eta - v) ** 2 / (2 * step)).sum(-1, keepdims=True)

        def propose(eta: Array, damping: Array) -> Array:
            p = jax.nn.softmax(eta, axis=-1)
            slope = p - y + (eta - v) / step
            ridge = (1 + damping) / step
            scaled = slope / (p + ridge)
            # 1 - sum p^2 / (p + ridge), written without cancellation since p sums to one
            rest = (p * ridge / (p + ridge)).sum(-1, keepdims=True)
            return eta - scaled - p / (p + ridge) * (p * scaled).sum(-1, keepdims=True) / rest

        return descend(merit, propose, eta, steps)


@struct
class Logistic(_Separable):
    """``log(1 + exp(eta)) - y eta``: a binary response in {0, 1}, or a probability between."""

    binary: ClassVar[bool] = True
    responses: ClassVar[str] = "numbers from 0 to 1"

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return jax.nn.softplus(eta) - y * eta

    def mean(self, eta: Array) -> Array:
        return jax.nn.sigmoid(eta)

    def inverse_mean(self, mu: Array) -> Array:
        mu = jnp.clip(mu, 1e-8, 1 - 1e-8)
        return jnp.log(mu) - jnp.log1p(-mu)

    def takes(self, y: np.ndarray) -> np.ndarray:
        return (y >= 0) & (y <= 1)

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        return rng.binomial(_whole(count), mu) / count


@struct
class Hinge(_Separable):
    """``max(1 - s eta, 0)`` with ``s = 2 y - 1``: the support vector machine of a response in {0, 1}.

    Exact without a ``width``. A positive one rounds the kink by a parabola where the margin ``s eta`` is
    within ``width`` of 1: at most ``width / 4`` more than the exact loss, the same outside, and with a
    gradient everywhere. The join phase follows gradients and stalls at kinks of a loss, so estimators
    take 0.01 where none is given.
    """

    width: float | None = None
    likelihood: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    binary: ClassVar[bool] = True
    responses: ClassVar[str] = "the numbers 0 and 1"

    def check(self) -> None:
        """A width is a length."""
        _need(self, "width", "at least 0", lambda width: width >= 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return _plus(1 - (2 * y - 1) * eta, self.width)

    def mean(self, eta: Array) -> Array:
        """The class: the best ``eta`` tells nothing of probabilities but the likelier class."""
        return (eta > 0).astype(eta.dtype)

    def inverse_mean(self, mu: Array) -> Array:
        return jnp.where(mu > 0.5, 1.0, -1.0).astype(mu.dtype)

    def takes(self, y: np.ndarray) -> np.ndarray:
        return (y == 0) | (y == 1)

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """That of a positive part, in ``1 - s eta``."""
        s = 2 * y - 1
        return s * (1 - _plus_prox(1 - s * v, step, self.width))


@struct
class SquaredHinge(_Separable):
    """``max(1 - s eta, 0)^2`` with ``s = 2 y - 1``: a smooth support vector machine, ``y`` in {0, 1}."""

    likelihood: ClassVar[bool] = False
    binary: ClassVar[bool] = True
    responses: ClassVar[str] = "the numbers 0 and 1"

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return jnp.maximum(1 - (2 * y - 1) * eta, 0) ** 2

    def mean(self, eta: Array) -> Array:
        """The probability at which ``eta`` is the best constant."""
        return jnp.clip((1 + eta) / 2, 0, 1)

    def inverse_mean(self, mu: Array) -> Array:
        return 2 * mu - 1

    def takes(self, y: np.ndarray) -> np.ndarray:
        return (y == 0) | (y == 1)

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """A shortfall of the margin shrinks by ``1 + 2 step``."""
        s = 2 * y - 1
        short = 1 - s * v
        return s * (1 - jnp.where(short > 0, short / (1 + 2 * step), short))


@struct
class Huber(_Separable):
    """``r^2 / 2`` where ``|r| <= delta``, else ``delta |r| - delta^2 / 2``, with ``r = eta - y``.

    An outlier pulls no harder than ``delta``, which is in the units of the response.
    """

    delta: float = 1.35
    likelihood: ClassVar[bool] = False

    def check(self) -> None:
        """Somewhere the parabola ends."""
        _need(self, "delta", "positive", lambda delta: delta > 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        r = eta - y
        core = jnp.clip(r, -self.delta, self.delta)
        return core * (r - core / 2)

    def mean(self, eta: Array) -> Array:
        return eta

    def inverse_mean(self, mu: Array) -> Array:
        return mu

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """Towards ``y``: a share of the way, or ``step delta`` at most."""
        r = v - y
        return v - jnp.clip(step * r / (1 + step), -step * self.delta, step * self.delta)


@struct
class Quantile(_Separable):
    """``q max(r, 0) + (1 - q) max(-r, 0)`` with ``r = y - eta``: the quantile of level ``q``.

    Exact without a ``width``. A positive one, in the units of the response, rounds the kink by a parabola
    where ``|r| <= width``: at most ``width / 4`` more than the exact loss, the same outside, and with a
    gradient everywhere. The join phase follows gradients and stalls at kinks of a loss, so estimators
    take a hundredth of the response's standard deviation where none is given.
    """

    q: float = 0.5
    width: float | None = None
    likelihood: ClassVar[bool] = False
    smooth: ClassVar[bool] = False

    def check(self) -> None:
        """A level is a probability, a width a length."""
        _need(self, "q", "between 0 and 1", lambda q: (q > 0) & (q < 1))
        _need(self, "width", "at least 0", lambda width: width >= 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return _plus(y - eta, self.width) + (self.q - 1) * (y - eta)

    def mean(self, eta: Array) -> Array:
        """The quantile."""
        return eta

    def inverse_mean(self, mu: Array) -> Array:
        return mu

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """That of a positive part, in ``y - eta``."""
        return y - _plus_prox(y - v - step * (self.q - 1), step, self.width)


@struct
class Poisson(_Separable):
    """``exp(eta) - y eta``: a count of mean ``exp(eta)``.

    Beyond ``eta`` = 354 (44 in single precision) the exponential goes on as its tangent: finite and
    convex where ``exp`` would overflow, and far from the mean of any count.
    """

    responses: ClassVar[str] = "numbers of at least 0"

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return _exp(eta) - y * eta

    def mean(self, eta: Array) -> Array:
        return jnp.exp(jnp.minimum(eta, _largest(eta)))

    def inverse_mean(self, mu: Array) -> Array:
        return jnp.log(jnp.maximum(mu, 1e-8))

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
class NegativeBinomial(_Separable):
    """``(y + 1/d) log(1 + d exp(eta)) - y eta``: a count of more variance than Poisson's.

    Its mean is ``mu = exp(eta)`` and its variance ``mu + d mu^2``. The ``dispersion`` d is given, not
    estimated; towards 0 the loss becomes that of Poisson.
    """

    dispersion: float = 1.0
    responses: ClassVar[str] = "numbers of at least 0"

    def check(self) -> None:
        """Without dispersion it is Poisson's."""
        _need(self, "dispersion", "positive", lambda dispersion: dispersion > 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return (y + 1 / self.dispersion) * jax.nn.softplus(eta + jnp.log(self.dispersion)) - y * eta

    def mean(self, eta: Array) -> Array:
        return jnp.exp(jnp.minimum(eta, _largest(eta)))

    def inverse_mean(self, mu: Array) -> Array:
        return jnp.log(jnp.maximum(mu, 1e-8))

    def takes(self, y: np.ndarray) -> np.ndarray:
        return y >= 0

    def log_base(self, y: np.ndarray) -> np.ndarray:
        size = 1 / np.asarray(self.dispersion)
        return (gammaln(y + size) - gammaln(size) - gammaln(y + 1) - xlogy(y, size)).sum(1)

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        size = 1 / np.asarray(self.dispersion)
        return rng.negative_binomial(count * size, size / (size + mu)) / count


@struct
class Gamma(_Separable):
    """``shape (y exp(-eta) + eta)``: a positive response of mean ``exp(eta)``, variance ``mean^2 / shape``.

    Below ``eta`` = -354 (-44 in single precision) the exponential goes on as its tangent, as Poisson's.
    """

    shape: float = 1.0
    responses: ClassVar[str] = "positive numbers"

    def check(self) -> None:
        """A shape is positive."""
        _need(self, "shape", "positive", lambda shape: shape > 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return self.shape * (y * _exp(-eta) + eta)

    def mean(self, eta: Array) -> Array:
        return jnp.exp(jnp.minimum(eta, _largest(eta)))

    def inverse_mean(self, mu: Array) -> Array:
        return jnp.log(jnp.maximum(mu, 1e-8))

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


def _whole(count: np.ndarray) -> np.ndarray:
    """How many responses an observation stands for."""
    nearest = np.rint(count)
    if not np.allclose(count, nearest, atol=1e-6):
        raise ValueError(
            "Classes are drawn for whole observations, and these have weights that are no repetitions: "
            "choose what draws none, such as method='perturbation'."
        )
    return nearest.astype(int)


def _plus(x: Array, width: Array | float | None) -> Array:
    """``max(x, 0)``, its kink rounded by a parabola where ``|x| < width``."""
    width = 0.0 if width is None else width
    rounded = jnp.clip(x + width, 0, 2 * width) ** 2 / jnp.where(width > 0, 4 * width, 1)
    return jnp.where(x >= width, x, rounded)


def _plus_prox(u: Array, step: Array, width: Array | float | None) -> Array:
    """``argmin_x _plus(x, width) + (x - u)^2 / (2 step)``: flat, rounded or sloped, whichever holds it."""
    width = 0.0 if width is None else width
    rounded = width * (2 * u - step) / (step + 2 * width)
    return jnp.where(u <= -width, u, jnp.where(u - step >= width, u - step, rounded))


def _largest(eta: Array) -> float:
    """Where ``exp`` gives up: its square is still finite there."""
    return math.log(float(jnp.finfo(eta.dtype).max)) / 2


def _exp(eta: Array) -> Array:
    """``exp(eta)``, continued by its tangent where it would overflow."""
    core = jnp.minimum(eta, _largest(eta))
    return jnp.exp(core) * (1 + eta - core)


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
