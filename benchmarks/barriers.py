"""The split phase with a barrier that fits the link, against the squared norm.

The paper would match the barrier with the nonlinearity. A link that is the gradient of a convex ``phi``
(sigmoid: softplus; tanh: log cosh) has the Bregman distance

    D(v, z) = phi(v) - phi(z) - a (v - z),    a = link(z),    v = W f

of the constraint ``a = link(v)``; for the sigmoid it is the Kullback-Leibler divergence of two coins. With
the multiplier ``rho u`` of that constraint a hidden block adds ``rho (D(v, z) + u (a - link(v)))``:

    Z-step   convex in a: majorised as with the squared norm, root of z + kappa link(z) = v - u + kappa q
    W-step   phi(v) - a v - u link(v), a logistic regression on the units' own outputs: majorised by squares
    U-step   u <- u + a - link(v)

The output keeps its squared norm. Sweeps, starts and growth are equal; near 0 both barriers weigh the same.
"""

import time
from functools import partial
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from benchmarks import data, show
from deepprox import links, losses, penalties
from deepprox.blocks import Dense
from deepprox.links import Link
from deepprox.problem import Network, Problem
from deepprox.solve import Options, initial, revive, solve, stack, unstack
from deepprox.splitting import admm, state
from deepprox.splitting.continuation import automatic_rho, grow
from deepprox.splitting.state import State
from deepprox.splitting.w_step import gram, w_step

SWEEPS, PACE = 40, admm.Pace()
MULTIPLES = 0.1, 1.0, 4.0  # of the automatic weight of the hidden constraint


class Matched(NamedTuple):
    """A link that is a gradient: its largest first and second derivative."""

    link: Link
    slope: float
    bend: float


SIGMOID = Matched(links.Sigmoid(), 1 / 4, 1 / np.sqrt(108))
TANH = Matched(links.Tanh(), 1.0, 4 / np.sqrt(27))


def root(link: Link, t: Array, kappa: Array, z: Array, steps: int = 4) -> Array:
    """``z`` with ``z + kappa link(z) = t``, by Newton steps kept between too low and too high."""

    def step(_: int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        z, low, high = carry
        a, slope = jax.jvp(link, (z,), (jnp.ones_like(z),))
        miss = z + kappa * a - t
        low, high = jnp.where(miss < 0, z, low), jnp.where(miss > 0, z, high)
        newton = z - miss / (1 + kappa * slope)
        inside = (newton >= low) & (newton <= high)
        return jnp.where(inside, newton, (low + high) / 2), low, high

    return lax.fori_loop(0, steps, step, (z, t - kappa, t + kappa))[0]


def sweep(matched: Matched, problem: Problem, at: State, _: None) -> tuple[State, Array]:
    """Z-step, W-step and U-step of a network with one hidden layer; then ``rho`` grows."""
    (first, last), (W, V), (r, s), (u, dual) = problem.network.blocks, at.W, at.rho, at.U
    link, (z, eta) = matched.link, at.Z
    X = first.features(problem.X)

    eta = problem.loss.prox(last.linear(V, link(z)) - dual, problem.y, 1 / s, eta, 1)
    v, reads, xi = X @ W.T, V[:, 1:], eta + dual - V[:, 0]
    square = reads.T @ reads
    diagonal = jnp.abs(square).sum(0)
    for _ in range(2):
        a = link(z)
        pull = xi @ reads - a @ square + diagonal * a
        z = root(link, v - u + s / r * pull, s / r * diagonal, z)
    a = link(z)

    L, M = at.curvature
    for _ in range(2):  # two squares above phi(v) - a v - u link(v), 16 steps on them; the library takes 15
        v = X @ W.T
        fit, slope = jax.jvp(link, (v,), (jnp.ones_like(v),))
        bound = matched.slope + matched.bend * jnp.abs(u).max(-1, keepdims=True)
        S, C = gram(problem, X, v - (fit - a - u * slope) / bound, r * bound)
        W, L = w_step(first, W, S, C, L, 8)
    F = last.features(a)
    V, M = w_step(last, V, *gram(problem, F, eta + dual, s), M, 15)

    U = u + a - link(X @ W.T), dual + eta - F @ V.T
    rho, U = grow((r, s), U, PACE.growth, PACE.rho_max)
    after = State((W, V), (z, eta), U, rho, (L, M))
    return after, problem.objective((W, V))


@partial(jax.jit, static_argnames="matched")
def bregman(matched: Matched, problem: Problem, at: State) -> tuple[State, Array]:
    """All sweeps of all starts."""
    return jax.vmap(lambda one: lax.scan(partial(sweep, matched, problem), one, length=SWEEPS))(at)


def squared(problem: Problem, at: State) -> tuple[State, Array]:
    """What the library does."""
    after, info = admm.chunk(problem, at, PACE, admm.Inner(), SWEEPS, True)
    return after, info.objective


def posed(split: data.Split, link: Link, width: int, gamma: float) -> Problem:
    """The paper's setting: every weight and bias penalised."""
    n, k = len(split.X), split.y.max() + 1
    penalty = penalties.L1(gamma / n)
    network = Network((Dense(width, link, penalty, True), Dense(k, links.Identity(), penalty, True)))
    return Problem(network, losses.Softmax(), split.X, np.eye(k)[split.y], np.full(n, 1 / n))


def compare(name: str, problem: Problem, matched: Matched, n_starts: int) -> list[list[object]]:
    """A row for each barrier and weight of the hidden constraint, all from the same starts."""
    n, starts, rows = len(problem.X), initial(problem, 0, n_starts), []
    W = stack(starts)
    Z = stack([problem.network.forward(w, problem.X) for w in starts])
    pull = [np.full_like(w, float(problem.network.blocks[0].penalty.alpha)) for w in W]
    hidden, output = automatic_rho(pull, (1,))
    # 1 / slope: with it both barriers have the same curvature at 0
    ways = {"squared norm": (squared, 1.0), "Bregman": (partial(bregman, matched), 1 / matched.slope)}
    for (barrier, (run, unit)), multiple in product(ways.items(), MULTIPLES):
        at = state.start(W, Z, (multiple * unit * hidden, output))
        jax.block_until_ready(run(problem, at))
        began = time.perf_counter()
        after, objectives = jax.block_until_ready(run(problem, at))
        seconds = time.perf_counter() - began
        ends = revive(problem, unstack(after.W, True), starts)
        emptied = sum(a is b for a, b in zip(ends, starts, strict=True))
        joined = n * np.array([solve(problem, [w], Options(sweeps=0)).objective for w in ends])
        rows.append((barrier, multiple, n * np.median(objectives[:, -1]), joined, emptied, seconds))
    best = min(joined.min() for *_, joined, _, _ in rows)
    return [
        [f"{name}, {barrier}, rho x {multiple}", after, joined.min(), np.median(joined),
         (joined <= 1.001 * best).mean(), f"{emptied} of {n_starts}", seconds]
        for barrier, multiple, after, joined, emptied, seconds in rows
    ]  # fmt: skip


def main() -> None:
    """Iris and digits, each with every barrier from the same starts."""
    with jax.enable_x64(True):
        rows = compare("Iris 4-10-3 sigmoid", posed(data.iris(), links.Sigmoid(), 10, 0.67), SIGMOID, 40)
        rows += compare("digits 64-50-10 tanh", posed(data.digits(), links.Tanh(), 50, 1.0), TANH, 5)
    show.table(
        "Barriers of the split constraints: 40 sweeps, then the join phase (sum scale)",
        ["", "median after split", "best", "median", "share in the best", "emptied", "s split"],
        rows,
    )
