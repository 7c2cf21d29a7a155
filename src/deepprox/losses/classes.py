"""Losses of classes: multinomial and binary likelihoods, and the hinges."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.arrays import namespace
from deepprox.losses.contract import Loss, Separable, need
from deepprox.losses.rounding import plus, plus_prox
from deepprox.newton import descend
from deepprox.struct import struct


@struct
class Softmax(Loss):
    """``log sum_k exp(eta_k) - y' eta``: a multinomial response, ``y`` one-hot."""

    by_formula: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    simplex: ClassVar[bool] = True
    differences: ClassVar[bool] = True
    responses: ClassVar[str] = "at least 0 and add up to 1 in every row"

    def value(self, eta: Array, y: Array) -> Array:
        return namespace(eta).logsumexp(eta, axis=-1) - (y * eta).sum(-1)

    def mean(self, eta: Array) -> Array:
        return namespace(eta).softmax(eta, axis=-1)

    def inverse_mean(self, mu: Array) -> Array:
        xp = namespace(mu)
        return xp.log(xp.maximum(mu, 1e-8))

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        xp = namespace(eta)
        p = xp.softmax(eta, axis=-1)
        one = xp.asarray(np.eye(eta.shape[-1], dtype=eta.dtype))
        return p - y, p[:, :, None] * (one - p[:, None, :])

    def takes(self, y: np.ndarray) -> np.ndarray:
        whole = np.abs(y.sum(-1, keepdims=True) - 1) <= 1e-6 * y.shape[-1]
        return (y >= 0) & whole

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
class Logistic(Separable):
    """``log(1 + exp(eta)) - y eta``: a binary response in {0, 1}, or a probability between."""

    by_formula: ClassVar[bool] = True
    binary: ClassVar[bool] = True
    responses: ClassVar[str] = "numbers from 0 to 1"

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return namespace(eta).softplus(eta) - y * eta

    def mean(self, eta: Array) -> Array:
        return namespace(eta).sigmoid(eta)

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        p = namespace(eta).sigmoid(eta)
        return p - y, p * (1 - p)

    def inverse_mean(self, mu: Array) -> Array:
        xp = namespace(mu)
        mu = xp.clip(mu, 1e-8, 1 - 1e-8)
        return xp.log(mu) - xp.log1p(-mu)

    def takes(self, y: np.ndarray) -> np.ndarray:
        return (y >= 0) & (y <= 1)

    def draw(self, rng: np.random.Generator, mu: np.ndarray, count: np.ndarray) -> np.ndarray:
        return rng.binomial(_whole(count), mu) / count


@struct
class Hinge(Separable):
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
        if self.width is not None:
            need(self, "width", "at least 0", lambda width: width >= 0)

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return plus(1 - (2 * y - 1) * eta, self.width)

    def mean(self, eta: Array) -> Array:
        """The class: the best ``eta`` tells nothing of probabilities but the likelier class."""
        return (eta > 0).astype(eta.dtype)

    def inverse_mean(self, mu: Array) -> Array:
        return namespace(mu).where(mu > 0.5, 1.0, -1.0).astype(mu.dtype)

    def takes(self, y: np.ndarray) -> np.ndarray:
        return (y == 0) | (y == 1)

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """That of a positive part, in ``1 - s eta``."""
        s = 2 * y - 1
        return s * (1 - plus_prox(1 - s * v, step, self.width))


@struct
class SquaredHinge(Separable):
    """``max(1 - s eta, 0)^2`` with ``s = 2 y - 1``: a smooth support vector machine, ``y`` in {0, 1}."""

    by_formula: ClassVar[bool] = True
    likelihood: ClassVar[bool] = False
    binary: ClassVar[bool] = True
    responses: ClassVar[str] = "the numbers 0 and 1"

    def each(self, eta: Array, y: Array) -> Array:
        """The loss of every entry."""
        return namespace(eta).maximum(1 - (2 * y - 1) * eta, 0) ** 2

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        xp, s = namespace(eta), 2 * y - 1
        short = xp.maximum(1 - s * eta, 0)
        return -2 * s * short, xp.where(short > 0, 2 * xp.ones_like(eta), 0.0)

    def mean(self, eta: Array) -> Array:
        """The probability at which ``eta`` is the best constant."""
        return namespace(eta).clip((1 + eta) / 2, 0, 1)

    def inverse_mean(self, mu: Array) -> Array:
        return 2 * mu - 1

    def takes(self, y: np.ndarray) -> np.ndarray:
        return (y == 0) | (y == 1)

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """A shortfall of the margin shrinks by ``1 + 2 step``."""
        s = 2 * y - 1
        short = 1 - s * v
        return s * (1 - jnp.where(short > 0, short / (1 + 2 * step), short))


def _whole(count: np.ndarray) -> np.ndarray:
    """How many responses an observation stands for."""
    nearest = np.rint(count)
    if not np.allclose(count, nearest, atol=1e-6):
        raise ValueError(
            "Classes are drawn for whole observations, and these have weights that are no repetitions: "
            "choose what draws none, such as method='perturbation'."
        )
    return nearest.astype(int)
