"""Z-step: ``Z <- argmin_Z`` of the augmented Lagrangian, every observation on its own.

From the output to the input, so that the response reaches the first block in one sweep:

    z_L <- prox of the loss at  W_L f_L - u_L,  step 1 / rho_L
    z_l <- argmin_z  rho_{l+1}/2 |xi - W_{l+1} link(z)|^2  +  rho_l/2 |z - c|^2

with ``xi = z_{l+1} + u_{l+1} - b_{l+1}`` and ``c = W_l f_l - u_l``. The second is majorised in
``a = link(z)`` by a diagonal ``D >= W'W``, which leaves one scalar problem for every unit and
observation: ``link.pull``. An activity is majorised by a square and joins it. No line search, no
derivative at a kink, never an ascent.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from deepprox.activities import Activity
from deepprox.links import Link
from deepprox.problem import Problem
from deepprox.splitting.state import State


def z_step(problem: Problem, state: State, inner: int, newton: int) -> tuple[Array, ...]:
    """New ``Z`` given ``W, U``: ``inner`` majorisations for every hidden block, ``newton`` steps in each."""
    blocks = problem.network.blocks
    W, Z, U, rho = state.W, list(state.Z), state.U, state.rho
    for l in reversed(range(len(blocks))):
        reads = problem.X if l == 0 else blocks[l - 1].link(Z[l - 1])
        c = blocks[l].linear(W[l], reads) - U[l]
        if l == len(blocks) - 1:
            Z[l] = problem.loss.prox(c, problem.y, 1 / rho[l], Z[l], newton)
        else:
            xi = Z[l + 1] + U[l + 1] - W[l + 1][:, 0]
            acts = Acts(blocks[l].activity, problem.weight, rho[l])
            ratio = rho[l + 1] / rho[l]
            Z[l] = hidden(blocks[l].link, Z[l], c, xi, W[l + 1][:, 1:], ratio, acts, (inner, newton))
    return tuple(Z)


class Acts(NamedTuple):
    """The activity of a block and what its charge is weighed with."""

    activity: Activity | None
    weight: Array
    rho: Array

    def curvature(self, on: str, A: Array) -> Array:
        """The curvature of its majoriser at ``A``, in units of the constraint; 0 if it is not on that."""
        if self.activity is None or self.activity.on != on:
            return jnp.zeros((), A.dtype)
        return self.activity.curvature(A, self.weight) / self.rho


def hidden(
    link: Link, z: Array, c: Array, xi: Array, W: Array, ratio: Array, acts: Acts, steps: tuple[int, int]
) -> Array:
    """``argmin_z ratio/2 |xi - W link(z)|^2 + |z - c|^2 / 2 + activity / rho`` by majorisation."""
    inner, newton = steps
    gram = W.T @ W
    diagonal = jnp.abs(gram).sum(0)
    safe = jnp.where(diagonal > 0, diagonal, 1.0)
    target = xi @ W

    def majorise(_: int, z: Array) -> Array:
        a = link(z)
        q, kappa = a + (target - a @ gram) / safe, ratio * diagonal
        on_reads, on_z = acts.curvature("reads", a), acts.curvature("z", z)
        both = kappa + on_reads
        q = jnp.where(both > 0, kappa * q / jnp.where(both > 0, both, 1.0), q)
        return link.pull(c / (1 + on_z), q, both / (1 + on_z), z, newton)

    return lax.fori_loop(0, inner, majorise, z)
