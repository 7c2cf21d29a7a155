"""Losses: negative log-likelihoods of a response given the last pre-activation ``eta``.

The contract is :class:`Loss`. A new loss is one class with ``value`` and ``mean``; a closed
``prox`` is an acceleration of the default and is tested against a generic minimiser.
"""

from abc import ABC, abstractmethod

import jax
import jax.numpy as jnp
from jax import Array

from deepprox.newton import descend
from deepprox.struct import struct


class Loss(ABC):
    """``loss(eta_i, y_i)`` of every observation: two arrays of shape (n, k) to one of shape (n,)."""

    @abstractmethod
    def value(self, eta: Array, y: Array) -> Array:
        """Negative log-likelihood of every observation."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Expected response given ``eta``: the prediction."""

    def inverse_mean(self, mu: Array) -> Array:
        """The ``eta`` whose ``mean`` is ``mu``, where a fit starts; zero unless a loss says better."""
        return jnp.zeros_like(mu)

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


@struct
class Squared(Loss):
    """``|eta - y|^2 / 2``: a Gaussian response of unit variance, up to a constant."""

    def value(self, eta: Array, y: Array) -> Array:
        return ((eta - y) ** 2).sum(-1) / 2

    def mean(self, eta: Array) -> Array:
        return eta

    def inverse_mean(self, mu: Array) -> Array:
        return mu

    def prox(self, v: Array, y: Array, step: Array, eta: Array, steps: int = 4) -> Array:
        """A weighted mean of ``v`` and ``y``."""
        return (v + step * y) / (1 + step)


@struct
class Softmax(Loss):
    """``log sum_k exp(eta_k) - y' eta``: a multinomial response, ``y`` one-hot."""

    def value(self, eta: Array, y: Array) -> Array:
        return jax.nn.logsumexp(eta, axis=-1) - (y * eta).sum(-1)

    def mean(self, eta: Array) -> Array:
        return jax.nn.softmax(eta, axis=-1)

    def inverse_mean(self, mu: Array) -> Array:
        return jnp.log(jnp.maximum(mu, 1e-8))

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
