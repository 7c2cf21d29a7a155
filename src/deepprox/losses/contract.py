"""The contract of a loss, and of one whose columns do not know of one another."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.newton import descend


class Loss(ABC):
    """``loss(eta_i, y_i)`` of every observation: two arrays of shape (n, k) to one of shape (n,).

    ``likelihood`` says whether it is minus a log-likelihood, up to a constant, so that probabilities and
    information criteria mean something; ``smooth`` whether it has a gradient everywhere; ``convex`` whether
    it is convex in ``eta``, so that one block has one minimum; ``binary`` whether every column is a response
    in {0, 1} of its own, so that two classes need one column; ``simplex`` whether the columns of a response
    add up to one; ``differences`` whether it sees differences between the columns of ``eta`` alone;
    ``free_scale`` whether it is Gaussian with a variance that it leaves open; ``responses``,
    in words, what it takes; ``endless`` names the parameters that may be infinite; ``by_formula`` says
    whether there is a formula for its :meth:`derivatives`, ``quadratic`` whether the second are 1 everywhere.
    """

    likelihood: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    convex: ClassVar[bool] = False
    binary: ClassVar[bool] = False
    simplex: ClassVar[bool] = False
    differences: ClassVar[bool] = False
    free_scale: ClassVar[bool] = False
    responses: ClassVar[str] = "numbers"
    endless: ClassVar[tuple[str, ...]] = ()
    by_formula: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False

    @abstractmethod
    def value(self, eta: Array, y: Array) -> Array:
        """Negative log-likelihood of every observation."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Expected response given ``eta``: the prediction."""

    def derivatives(self, eta: Array, y: Array) -> tuple[Array, Array]:
        """First derivatives in ``eta`` of shape (n, k), and second ones, of losses ``by_formula``.

        The second are of shape (n, k) where columns do not interact, (n, k, k) where they do.
        """
        raise NotImplementedError(f"{type(self).__name__} has no formula for its derivatives.")

    def check(self) -> None:  # noqa: B027
        """Raise one sentence if a parameter is out of its range; asked once, before a fit."""

    def takes(self, y: np.ndarray) -> np.ndarray:
        """Which entries of a response this loss can take."""
        return np.isfinite(y)

    def inverse_mean(self, mu: Array) -> Array:
        """The ``eta`` whose ``mean`` is ``mu``, where a fit starts; zero unless a loss says better."""
        return jnp.zeros_like(mu)

    def unit(self) -> float:
        """What a residual of one stands for in the response: standard deviations are told in its units."""
        return 1.0

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


class Separable(Loss):
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


def need(loss: Loss, name: str, words: str, holds: Callable[[np.ndarray], Any]) -> None:
    """One sentence about a parameter that is out of its range."""
    number = np.asarray(getattr(loss, name))
    if not np.all(holds(number)):
        raise ValueError(f"The {name} of the loss {type(loss).__name__} must be {words}, got {number}.")
