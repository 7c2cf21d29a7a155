"""Links: element-wise functions from a pre-activation to what the next block reads.

The contract is :class:`Link`. A new link is one class with ``__call__``; a closed form of
``pull`` is an acceleration of the default and is tested against a brute-force minimiser.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from deepprox.newton import descend
from deepprox.struct import struct


class Link(ABC):
    """``reads = link(z)``, element by element.

    ``kinks`` are the points without a derivative; ``gain`` scales random weights so that a signal
    keeps its size through the link (He et al. 2015).
    """

    kinks: ClassVar[tuple[float, ...]] = ()
    gain: ClassVar[float] = 1.0

    @abstractmethod
    def __call__(self, z: Array) -> Array:
        """What the next block reads."""

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """``argmin_z (z - c)^2 / 2 + kappa (link(z) - q)^2 / 2``, searched from ``z``.

        The default takes ``steps`` damped Newton steps in every entry and never ends above its
        start: the Z-step inherits its descent from here. Closed forms return the global
        minimiser and need neither ``z`` nor ``steps``.
        """

        def gap(z: Array) -> Array:
            return self(z) - q

        def merit(z: Array) -> Array:
            return ((z - c) ** 2 + kappa * gap(z) ** 2) / 2

        def propose(z: Array, damping: Array) -> Array:
            one = jnp.ones_like(z)
            (r, dr), (_, ddr) = jax.jvp(lambda t: jax.jvp(gap, (t,), (one,)), (z,), (one,))
            # Newton where the problem is convex, Gauss-Newton elsewhere.
            gauss = 1 + kappa * dr**2
            newton = gauss + kappa * r * ddr
            curvature = jnp.where(newton > 0.1 * gauss, newton, gauss) * (1 + damping)
            return z - ((z - c) + kappa * r * dr) / curvature

        return descend(merit, propose, z, steps)


@struct
class Identity(Link):
    """``z``: a linear layer (reduced-rank regression when narrow)."""

    def __call__(self, z: Array) -> Array:
        return z

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """One quadratic."""
        return (c + kappa * q) / (1 + kappa)


@struct
class Sigmoid(Link):
    """``1 / (1 + exp(-z))``: the logistic function."""

    def __call__(self, z: Array) -> Array:
        return jax.nn.sigmoid(z)


@struct
class Tanh(Link):
    """``tanh z = 2 sigmoid(2 z) - 1``."""

    def __call__(self, z: Array) -> Array:
        return jnp.tanh(z)


@struct
class LeakyReLU(Link):
    """``max(z, 0) + slope * min(z, 0)``."""

    slope: float | Array = 0.01
    kinks = (0.0,)
    gain = math.sqrt(2)

    def __call__(self, z: Array) -> Array:
        return jnp.where(z > 0, z, self.slope * z)

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """One candidate on each half-line, the lower of the two."""
        s = self.slope
        right = jnp.maximum((c + kappa * q) / (1 + kappa), 0)
        left = jnp.minimum((c + kappa * s * q) / (1 + kappa * s**2), 0)
        # value(left) - value(right) in difference form: no cancellation near a tie
        gain = (left - right) * (left + right - 2 * c)
        gain += kappa * (s * left - right) * (s * left + right - 2 * q)
        return jnp.where(gain >= 0, right, left)


@struct
class ReLU(Link):
    """``max(z, 0) = (|z| + z) / 2``."""

    kinks = (0.0,)
    gain = math.sqrt(2)

    def __call__(self, z: Array) -> Array:
        return jnp.where(z > 0, z, 0.0)

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """The leaky ReLU's with slope 0."""
        return LeakyReLU(0.0).pull(c, q, kappa, z)


@struct
class Softplus(Link):
    """``log(1 + exp(z))``: a smooth ReLU."""

    def __call__(self, z: Array) -> Array:
        return jax.nn.softplus(z)
