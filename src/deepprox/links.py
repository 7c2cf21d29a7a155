"""Links: functions from the pre-activations of a block to what the next block reads.

The contract is :class:`Link` for element-wise links, and :class:`GroupLink` for those that act on groups
of consecutive units. A new link is one class with ``__call__`` (or ``of_group``); a closed form of ``pull``
is an acceleration of the default and is tested against a brute-force minimiser.
"""

import math
from abc import ABC, abstractmethod
from numbers import Integral
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from deepprox.arrays import namespace
from deepprox.checks import is_number, shown
from deepprox.newton import descend
from deepprox.struct import static, struct


class Link(ABC):
    """``reads = link(z)``, element by element.

    ``kinks`` are the points without a derivative, asked of every link by itself; ``gain`` scales random
    weights so that a signal keeps its size through the link (He et al. 2015).
    """

    kinks: tuple[float, ...] = ()
    gain: ClassVar[float] = 1.0
    elementwise: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, z: Array) -> Array:
        """What the next block reads."""

    def width(self, size: int) -> int:
        """How many numbers the next block reads of ``size`` units."""
        return size

    def leaky(self) -> "Link":
        """A link near this one that no observation sits on a flat piece of; itself if there is none."""
        return self

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
        return namespace(z).sigmoid(z)


@struct
class Tanh(Link):
    """``tanh z = 2 sigmoid(2 z) - 1``."""

    def __call__(self, z: Array) -> Array:
        return namespace(z).tanh(z)


@struct
class LeakyReLU(Link):
    """``max(z, 0) + slope * min(z, 0)``."""

    slope: float | Array = 0.01
    kinks = (0.0,)
    gain = math.sqrt(2)

    def __call__(self, z: Array) -> Array:
        return namespace(z).where(z > 0, z, self.slope * z)

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
        return namespace(z).where(z > 0, z, 0.0)

    def leaky(self) -> Link:
        """A steep leaky ReLU: a third of every gradient passes."""
        return LeakyReLU(0.3)

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """The leaky ReLU's with slope 0."""
        return LeakyReLU(0.0).pull(c, q, kappa, z)


@struct
class Softplus(Link):
    """``log(1 + exp(z))``: a smooth ReLU."""

    def __call__(self, z: Array) -> Array:
        return namespace(z).softplus(z)


@struct
class ELU(Link):
    """``max(z, 0) + exp(min(z, 0)) - 1``: a ReLU that levels off at -1, without a kink."""

    gain = math.sqrt(1.5)

    def __call__(self, z: Array) -> Array:
        xp = namespace(z)
        # not the minimum, whose derivative at a tie is one half
        return xp.where(z > 0, z, xp.expm1(xp.where(z > 0, 0.0, z)))


@struct
class SiLU(Link):
    """``z / (1 + exp(-z))``: also called swish."""

    gain = math.sqrt(2)

    def __call__(self, z: Array) -> Array:
        return namespace(z).silu(z)


@struct
class GELU(Link):
    """``z Phi(z)`` with the normal distribution function ``Phi``."""

    gain = math.sqrt(2)

    def __call__(self, z: Array) -> Array:
        return namespace(z).gelu(z)


@struct
class Sine(Link):
    """``sin z``: periodic features."""

    def __call__(self, z: Array) -> Array:
        return namespace(z).sin(z)


@struct
class GaussianRBF(Link):
    """``exp(-z^2 / 2)``: a bump, large where the pre-activation is near zero."""

    def __call__(self, z: Array) -> Array:
        return namespace(z).exp(-(z**2) / 2)


def pull_of_pieces(pieces: tuple, c: Array, q: Array, kappa: Array) -> Array:
    """``pull`` of a continuous piecewise linear link: one candidate on each piece, the lowest of them.

    A piece is ``(low, high, slope, intercept)``.
    """
    best, least = c, jnp.full(jnp.broadcast_shapes(c.shape, q.shape, kappa.shape), jnp.inf, c.dtype)
    for low, high, slope, intercept in pieces:
        z = jnp.clip((c + kappa * slope * (q - intercept)) / (1 + kappa * slope**2), low, high)
        value = (z - c) ** 2 + kappa * (slope * z + intercept - q) ** 2
        best, least = jnp.where(value < least, z, best), jnp.minimum(value, least)
    return best


@struct
class HardTanh(Link):
    """``min(max(z, -1), 1)``."""

    kinks = (-1.0, 1.0)

    def __call__(self, z: Array) -> Array:
        return namespace(z).clip(z, -1.0, 1.0)

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """The lowest of three."""
        pieces = ((-jnp.inf, -1.0, 0.0, -1.0), (-1.0, 1.0, 1.0, 0.0), (1.0, jnp.inf, 0.0, 1.0))
        return pull_of_pieces(pieces, c, q, kappa)


@struct
class HardSigmoid(Link):
    """``min(max(z / 6 + 1/2, 0), 1)``."""

    kinks = (-3.0, 3.0)

    def __call__(self, z: Array) -> Array:
        return namespace(z).clip(z / 6 + 0.5, 0.0, 1.0)

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """The lowest of three."""
        pieces = ((-jnp.inf, -3.0, 0.0, 0.0), (-3.0, 3.0, 1 / 6, 0.5), (3.0, jnp.inf, 0.0, 1.0))
        return pull_of_pieces(pieces, c, q, kappa)


class GroupLink(Link):
    """``reads = link(z)`` of every group of ``group`` consecutive units; 0 is one group of all units."""

    group: int
    elementwise = False

    @abstractmethod
    def of_group(self, z: Array) -> Array:
        """What is read of groups in the last axis: as many numbers for each as the link gives."""

    def n_groups(self, size: int) -> int:
        """How many groups ``size`` units make."""
        if not isinstance(self.group, Integral) or isinstance(self.group, bool) or self.group < 0:
            raise ValueError(
                f"{shown(self)} needs a group of a whole number of units, or 0 for one group of all units."
            )
        group = self.group or size
        if size % group:
            near = size // group * group
            widths = f"{near} or {near + group}" if near else shown(group)
            raise ValueError(
                f"{shown(self)} pools groups of {shown(group)} units, which does not divide a width of "
                f"{size}: choose a width of {widths}, or a group that divides {size}."
            )
        return size // group

    def __call__(self, z: Array) -> Array:
        grouped = z.reshape(*z.shape[:-1], self.n_groups(z.shape[-1]), -1)
        return self.of_group(grouped).reshape(*z.shape[:-1], -1)

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """Damped Gauss-Newton steps in every group, never above their start."""
        n, size = z.shape
        groups = self.n_groups(size)
        split = lambda a: a.reshape(n, groups, -1)  # noqa: E731
        c, z = split(jnp.broadcast_to(c, z.shape)), split(z)
        q = split(jnp.broadcast_to(q, (n, self.width(size))))
        kappa = split(jnp.broadcast_to(kappa, (n, self.width(size))))
        one_by_one = lambda f: jax.vmap(jax.vmap(f))  # noqa: E731

        def merit(z: Array) -> Array:
            gap = self.of_group(z).reshape(q.shape) - q
            return ((z - c) ** 2).sum(-1, keepdims=True) / 2 + (kappa * gap**2).sum(-1, keepdims=True) / 2

        def propose(z: Array, damping: Array) -> Array:
            J = one_by_one(jax.jacfwd(lambda g: self.of_group(g).reshape(-1)))(z)
            gap = self.of_group(z).reshape(q.shape) - q
            slope = z - c + jnp.einsum("ngk,ngku->ngu", kappa * gap, J)
            # (I + J' K J)^-1 by the small side: one number for a pooled group
            ridge = (1 + damping)[..., None]
            inner = jnp.einsum("ngku,nglu->ngkl", J, J) / ridge
            weight = jnp.where(kappa > 0, kappa, jnp.finfo(z.dtype).tiny)
            inner += jnp.eye(q.shape[-1], dtype=z.dtype) / weight[..., None]
            Js = jnp.einsum("ngku,ngu->ngk", J, slope) / ridge[..., 0]
            back = jnp.linalg.solve(inner, Js[..., None])[..., 0]
            return z - (slope - jnp.einsum("ngku,ngk->ngu", J, back)) / ridge[..., 0]

        return descend(merit, propose, z, steps).reshape(n, size)


class PooledLink(GroupLink):
    """A group link that reads one number of every group."""

    def width(self, size: int) -> int:
        return self.n_groups(size)


@struct
class Softmax(GroupLink):
    """``exp(z_k) / sum_j exp(z_j)`` over the group: soft choice of a unit."""

    group: int = static(default=0)

    def of_group(self, z: Array) -> Array:
        return namespace(z).softmax(z, axis=-1)


@struct
class LogSumExp(PooledLink):
    """``log sum_k exp(z_k)`` over the group: a smooth maximum."""

    group: int = static(default=2)

    def of_group(self, z: Array) -> Array:
        return namespace(z).logsumexp(z, axis=-1)


@struct
class LpNorm(PooledLink):
    """``(sum_k |z_k|^p)^(1/p)`` over the group, ``p >= 1``.

    From ``largest`` on it is :class:`MaxAbs` to the last bit, whose derivatives need no powers.
    """

    p: float = static(default=2.0)
    group: int = static(default=2)
    largest: ClassVar[float] = 1e15

    def __post_init__(self) -> None:
        if not (is_number(self.p) and 1 <= self.p <= self.largest):
            raise ValueError(
                f"LpNorm needs p of at least 1 and at most {self.largest:g}, got p={shown(self.p)}: the "
                f"largest of a group, to which it tends, is MaxAbs."
            )

    def of_group(self, z: Array) -> Array:
        xp = namespace(z)
        far = xp.stop_gradient(xp.abs(z))
        safe = far.max(-1, keepdims=True)
        safe = xp.where(safe > 0, safe, 1.0)
        # of a quotient that rounding leaves below 1 a high power would be 0: the largest is 1 exactly
        size = xp.where(far == safe, 1.0, far / safe) + (xp.abs(z) - far) / safe
        # at a zero the power has no derivative, and the norm of a zero group none at all: 0 is taken
        powers = xp.where(size > 0, xp.where(size > 0, size, 1.0) ** self.p, 0.0).sum(-1)
        norm = xp.where(powers > 0, xp.where(powers > 0, powers, 1.0) ** (1 / self.p), 0.0)
        return norm * safe[..., 0]

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """Along ``c`` for the Euclidean norm; else the default's, or a zero group where that is lower."""
        if self.p == 2:
            reach = jnp.repeat(self(c), z.shape[1] // self.n_groups(z.shape[1]), axis=1)
            q, kappa = (jnp.broadcast_to(a, self(z).shape) for a in (q, kappa))
            q, kappa = (jnp.repeat(a, z.shape[1] // a.shape[1], axis=1) for a in (q, kappa))
            length = jnp.maximum((reach + kappa * q) / (1 + kappa), 0.0)
            first = jnp.arange(z.shape[1]) % (self.group or z.shape[1]) == 0
            return length * jnp.where(reach > 0, c / jnp.where(reach > 0, reach, 1.0), first)
        ended = super().pull(c, q, kappa, z, steps)
        n, groups = z.shape[0], self.n_groups(z.shape[1])

        def merit(z: Array) -> Array:
            near = ((z - c) ** 2).reshape(n, groups, -1).sum(-1)
            return near + kappa * (self(z) - q) ** 2

        emptied = merit(jnp.zeros_like(z)) < merit(ended)
        return jnp.where(jnp.repeat(emptied, z.shape[1] // groups, axis=1), 0.0, ended)


@struct
class MaxAbs(PooledLink):
    """``max_k |z_k|`` over the group: max-pooling of absolute values."""

    group: int = static(default=2)

    def of_group(self, z: Array) -> Array:
        return namespace(z).abs(z).max(-1)

    def pull(self, c: Array, q: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
        """Exact: the level ``m`` at which the largest are cut, or to which the largest is raised.

        ``kappa (m - q) = sum_k max(|c_k| - m, 0)`` has the largest of the roots of its pieces as its root.
        """
        n, size = z.shape
        groups = self.n_groups(size)
        c = jnp.broadcast_to(c, z.shape).reshape(n, groups, -1)
        q, kappa = (jnp.broadcast_to(a, (n, groups))[..., None] for a in (q, kappa))
        sizes, signs = jnp.abs(c), jnp.where(c < 0, -1.0, 1.0)
        counts = jnp.arange(1, c.shape[-1] + 1, dtype=z.dtype)
        highest = -jnp.sort(-sizes, axis=-1)
        roots = (kappa * q + jnp.cumsum(highest, -1)) / (kappa + counts)
        level = jnp.maximum(roots.max(-1, keepdims=True), 0.0)
        first = jnp.arange(c.shape[-1]) == jnp.argmax(sizes, axis=-1, keepdims=True)
        raised = first & (level > highest[..., :1])
        return (signs * jnp.where(raised, level, jnp.minimum(sizes, level))).reshape(n, size)
