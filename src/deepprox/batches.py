"""The batch phase: proximal steps on rows drawn at random, for data of which a few rows say most.

With ``G_l`` the gradient in block ``l`` of the mean loss of the rows drawn,

    v_l <- 0.999 v_l + 0.001 |G_l|^2                      how large the gradients of a block are
    M_l <- 0.9 M_l + 0.1 min(1, 3 sqrt(v_l) / |G_l|) G_l  the direction
    s_l  = rate |W_l at the start| / sqrt(v_l)            the length of its step
    W_l <- prox(W_l - s_l M_l, s_l)                       of its penalty

both averages freed of the zeros that they start from, ``| |`` the root of the mean square. The rate stays
for half of the steps, which is where zeros appear, and then falls to zero in a line. Blocks share it: a step
that changes each of ``L`` by a share ``r`` changes the outputs by ``(1 + r)^L``. This is Adam (Kingma and Ba,
2015) with one length for all weights of a block: the prox of every penalty is then exact, zeros are exact on
the way, and what a step leaves alone on average is stationary for the objective itself. Deep networks now and
then meet some gradients ten times as large as usual: ``v`` is slow to follow, and without the ``min`` a few
such steps undo the network. Rows are drawn with replacement, in single precision.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.budget import Budget
from deepprox.network import Network
from deepprox.problem import Problem, Weights
from deepprox.spreading import program

STEPS = 50  # of one call of the compiled program: a row of the history
RATE = 0.15  # the first steps, as a share of the weights they change, all blocks together
FALLING = 0.5  # share of the steps along which the rate falls
PRODUCTS = "tensorfloat32"  # what a draw repeats or misses is noise already: eleven bits are enough
MEAN, SQUARE = 0.9, 0.999  # how much of the averages a step keeps
BURST = 3.0  # times the usual size, all that counts of a gradient: one calm one in a thousand is above 2


class State(NamedTuple):
    """Weights, the two averages, and how large the weights were at the start."""

    W: Weights
    mean: Weights
    square: tuple[Any, ...]
    size: tuple[Any, ...]


class Info(NamedTuple):
    """The mean loss of the rows drawn during a chunk, with the penalties at its end, and the non-zeros."""

    objective: Array
    loss: Array
    n_nonzero: Array


def start(W: Weights) -> State:
    """The state before the first step."""
    W = tuple(np.asarray(w, np.float32) for w in W)
    sizes = tuple(np.sqrt((w**2).mean((-2, -1))) for w in W)
    return State(W, tuple(np.zeros_like(w) for w in W), tuple(np.zeros_like(size) for size in sizes), sizes)


def step(problem: Problem, state: State, count: Array, rate: Array) -> tuple[State, Array]:
    """Step number ``count`` on the rows of a problem, and their loss before it."""
    loss, G = problem.loss_and_gradient(state.W)
    squares = [(g**2).mean() for g in G]
    square = tuple(SQUARE * v + (1 - SQUARE) * s for v, s in zip(state.square, squares, strict=True))
    usual = [jnp.sqrt(v / (1 - SQUARE**count) + jnp.finfo(jnp.float32).tiny) for v in square]
    mean = tuple(
        MEAN * m + (1 - MEAN) * g / jnp.maximum(1, jnp.sqrt(s) / (BURST * u))
        for m, g, s, u in zip(state.mean, G, squares, usual, strict=True)
    )
    lengths = [rate * size / u for size, u in zip(state.size, usual, strict=True)]
    W = tuple(
        block.prox(w - length * m / (1 - MEAN**count), length)
        for block, w, m, length in zip(problem.network.blocks, state.W, mean, lengths, strict=True)
    )
    return State(W, mean, square, state.size), loss


def confined(budget: Budget | None, network: Network, state: State, share: Array) -> State:
    """The state within a budget, if there is one, when this share of the steps is done."""
    return state if budget is None else state._replace(W=budget.kept(network, state.W, share))


@program("batch", "lanes", "products")
def chunk(
    problem: Problem,
    state: State,
    first: Any,
    total: Any,
    batch: int,
    lanes: bool,
    products: str,
    budget: Budget | None = None,
) -> tuple[State, Info]:
    """``STEPS`` of ``total`` steps, from number ``first`` on, with ``batch`` rows of every device each.

    ``products`` says how an accelerator multiplies. With a ``budget`` the largest weights stay.
    """
    n = jnp.maximum(jnp.count_nonzero(problem.weight), 1)  # rows without weight stand last
    rows = jax.random.randint(jax.random.key(first), (STEPS, batch), 0, n)
    network, loss = single((problem.network, problem.loss))
    numbers = first + jnp.arange(STEPS)
    each_rate = rates(len(network.blocks), numbers, total)

    def one(state: State) -> tuple[State, Info]:
        def draw_and_step(state: State, now: tuple) -> tuple[State, Array]:
            rows, number, rate = now
            X, y, weight = single((problem.X[rows], problem.y[rows], n * problem.weight[rows]))
            weight = weight / problem.allsum(weight.sum())
            some = Problem(network, loss, X, y, weight, problem.allsum)
            state, loss_before = step(some, state, number.astype(jnp.float32) + 1, rate)
            return confined(budget, network, state, (number + 1) / total), loss_before

        state, losses = lax.scan(draw_and_step, state, (rows, numbers, each_rate))
        mean, n_nonzero = losses.mean(), sum(jnp.count_nonzero(w) for w in state.W)
        told = mean + network.penalty(state.W), mean, n_nonzero
        return state, Info(*(jnp.reshape(column, 1) for column in told))

    with jax.default_matmul_precision(products):
        return jax.vmap(one)(state) if lanes else one(state)


def rates(n_blocks: int, numbers: Array, total: Any) -> Array:
    """The rates of steps with these numbers, of so many in all."""
    left = (1 - numbers / total).astype(jnp.float32)
    return RATE / n_blocks * jnp.minimum(left / FALLING, 1)


def single(tree: Any) -> Any:
    """The same numbers in single precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)
