"""Z-step: ``Z <- argmin_Z`` of the augmented Lagrangian, every observation on its own.

From the output to the input, so that the response reaches the first block in one sweep:

    z_L <- prox of the loss at  W_L f_L - u_L,  step 1 / rho_L
    z_l <- argmin_z  rho_{l+1}/2 |xi - W_{l+1} link(z)|^2  +  rho_l/2 |z - c|^2

with ``xi = z_{l+1} + u_{l+1} - b_{l+1}`` and ``c = W_l f_l - u_l``. The second is majorised in
``a = link(z)`` by a diagonal ``D >= W'W``, which leaves one scalar problem for every unit and
observation: ``link.pull``. No line search, no derivative at a kink, never an ascent.
"""

import jax.numpy as jnp
from jax import Array, lax

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
            Z[l] = hidden(blocks[l].link, Z[l], c, xi, W[l + 1][:, 1:], rho[l + 1] / rho[l], (inner, newton))
    return tuple(Z)


def hidden(
    link: Link, z: Array, c: Array, xi: Array, W: Array, ratio: Array, steps: tuple[int, int]
) -> Array:
    """``argmin_z ratio/2 |xi - W link(z)|^2 + |z - c|^2 / 2`` by majorisation."""
    inner, newton = steps
    gram = W.T @ W
    diagonal = jnp.abs(gram).sum(0)
    safe = jnp.where(diagonal > 0, diagonal, 1.0)
    target = xi @ W

    def majorise(_: int, z: Array) -> Array:
        a = link(z)
        q = a + (target - a @ gram) / safe
        return link.pull(c, q, ratio * diagonal, z, newton)

    return lax.fori_loop(0, inner, majorise, z)
