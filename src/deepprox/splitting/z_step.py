"""Z-step: ``Z <- argmin_Z`` of the augmented Lagrangian, every observation on its own.

From the output to the input, so that the response reaches the first block in one sweep:

    z_L <- prox of the loss at  W_L f_L - u_L,  step 1 / rho_L
    z_l <- argmin_z  rho_{l+1}/2 |xi - W_{l+1} link(z)|^2  +  rho_l/2 |z - c|^2

with ``xi = z_{l+1} + u_{l+1}`` without the bias and what comes from the inputs, and ``c = W_l f_l - u_l``.
The second is majorised in ``a = link(z)`` by a diagonal ``D >= W'W``, which leaves one scalar problem for
every unit and observation: ``link.pull``. An activity is majorised by a square and joins it. No line search,
no derivative at a kink, never an ascent.

Where a segment reads ``z_l``, its forward pass ``g(link(z))`` stands for the linear map. It is majorised
alike, with one curvature for each observation, which grows where it was too small.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from deepprox.activities import Activity
from deepprox.blocks import Facing
from deepprox.links import GroupLink, Link
from deepprox.problem import Problem, Weights
from deepprox.splitting.segments import Segment, pieces_of
from deepprox.splitting.state import State


def z_step(problem: Problem, state: State, inner: int, newton: int) -> tuple[Array, ...]:
    """New ``Z`` given ``W, U``: ``inner`` majorisations for every hidden block, ``newton`` steps in each."""
    network, pieces = problem.network, pieces_of(problem)
    W, Z, U, rho = state.W, list(state.Z), state.U, state.rho
    for l in reversed(range(len(pieces))):
        before = problem.X if l == 0 else pieces[l - 1].link(Z[l - 1])
        c = pieces[l].linear(W[l], network.read(l, before, problem.X)) - U[l]
        if l == len(pieces) - 1:
            Z[l] = problem.loss.prox(c, problem.y, 1 / rho[l], Z[l], newton)
            continue
        hidden = Hidden(pieces[l].link, c, pieces[l].activity, problem.weight, rho[l], newton)
        above, target, ratio = pieces[l + 1], Z[l + 1] + U[l + 1], rho[l + 1] / rho[l]
        if isinstance(above, Segment):
            Z[l] = under_segment(hidden, Z[l], above, W[l + 1], target, ratio, inner)
        else:
            inputs = problem.X if "inputs" in above.reads else None
            facing = above.facing(W[l + 1], target, pieces[l].link(Z[l]).shape[1], inputs)
            Z[l] = under_block(hidden, Z[l], facing, ratio, inner)
    return tuple(Z)


class Hidden(NamedTuple):
    """A split hidden block and what it pays by itself: ``|z - c|^2 / 2 + activity / rho``."""

    link: Link
    c: Array
    activity: Activity | None
    weight: Array
    rho: Array
    newton: int

    def pull(self, z: Array, q: Array, kappa: Array) -> Array:
        """``argmin_z kappa/2 |link(z) - q|^2`` plus that, its activity majorised at ``z``.

        The squares on ``z`` join ``|z - c|^2``, which must be as steep for all units that a link reads
        together: the steepest of them, so that ``k z^2 <= 2 k a z + top (z - a)^2`` up to a constant.
        """
        on_reads, on_z = self.curvature("reads", self.link(z)), self.curvature("z", z)
        both = kappa + on_reads
        q = jnp.where(both > 0, kappa * q / jnp.where(both > 0, both, 1.0), q)
        units, reads = self.steepest(on_z)
        c = (self.c + (units - on_z) * z) / (1 + units)
        return self.link.pull(c, q, both / (1 + reads), z, self.newton)

    def steepest(self, on_z: Array) -> tuple[Array, Array]:
        """The largest of every group of units, for each of them and for what is read of it."""
        if not isinstance(self.link, GroupLink) or on_z.ndim == 0:
            return on_z, on_z
        n, size = on_z.shape
        groups = self.link.n_groups(size)
        top = on_z.reshape(n, groups, -1).max(-1)
        return jnp.repeat(top, size // groups, 1), jnp.repeat(top, self.link.width(size) // groups, 1)

    def curvature(self, on: str, A: Array) -> Array:
        """The curvature of its majoriser at ``A``, in units of the constraint; 0 if it is not on that."""
        if self.activity is None or self.activity.on != on:
            return jnp.zeros((), A.dtype)
        return self.activity.curvature(A, self.weight) / self.rho


def under_block(hidden: Hidden, z: Array, facing: Facing, ratio: Array, inner: int) -> Array:
    """``argmin_z ratio/2 |target - W [1; link(z)]|^2`` and what the hidden block pays, by majorisation."""
    safe = jnp.where(facing.bound > 0, facing.bound, 1.0)

    def majorise(_: int, z: Array) -> Array:
        a = hidden.link(z)
        return hidden.pull(z, a + facing.down(a) / safe, ratio * facing.bound)

    return lax.fori_loop(0, inner, majorise, z)


def under_segment(
    hidden: Hidden, z: Array, segment: Segment, W: Weights, target: Array, ratio: Array, inner: int
) -> Array:
    """``argmin_z ratio/2 |target - g(W; link(z))|^2`` and what the hidden block pays, by majorisation.

    Activities inside the segment are majorised by squares at the first ``z``. A curvature ``kappa`` bounds
    an observation if what it pays above is at most ``<slope, d> + kappa/2 |d|^2`` more after a step ``d``.
    """
    above = segment.acts_inside(W, hidden.link(z))
    bends = [act.curvature(A, hidden.weight) / hidden.rho for act, A in above]

    def pays(a: Array) -> Array:
        total = (ratio * (target - segment.linear(W, a)) ** 2).sum(-1, keepdims=True)
        for bend, (_, A) in zip(bends, segment.acts_inside(W, a), strict=True):
            total += (bend * A**2).sum(-1, keepdims=True)
        return total / 2

    def slope_at(a: Array) -> tuple[Array, Array]:
        paid, back = jax.vjp(pays, a)
        return paid, back(jnp.ones_like(paid))[0]

    def majorise(_: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        z, kappa = carry
        a = hidden.link(z)
        paid, slope = slope_at(a)
        trial = hidden.pull(z, a - slope / kappa, kappa)
        d = hidden.link(trial) - a
        bounded = pays(a + d) - paid <= ((slope + kappa / 2 * d) * d).sum(-1, keepdims=True)
        return jnp.where(bounded, trial, z), jnp.where(bounded, kappa, 4 * kappa)

    a = hidden.link(z)
    _, slope = slope_at(a)
    _, bent = jax.jvp(lambda a: segment.linear(W, a), (a,), (slope,))
    length = (slope**2).sum(-1, keepdims=True)
    along = (ratio * bent**2).sum(-1, keepdims=True) / jnp.where(length > 0, length, 1.0)
    # a curvature far below the block's own, which is 1, is no bound worth having
    return lax.fori_loop(0, 2 * inner, majorise, (z, jnp.maximum(along, 1e-3)))[0]
