"""Networks of many inputs: solved on some of them, and certified on all.

Where the penalty of the first block lets inputs leave, most of many have left in the end. The derivative of
the loss in the first pre-activations, ``d`` with a row for every observation, says of every input at once
whether its weights may stay at zero: its gradient is ``d'x``, which sparse inputs are asked for as they are,
and the prox of the penalty, column by column, is the judge. So a network is solved on a set of inputs, dense,
with the programs of any other table of that size; inputs that want to come in do, until none does.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox import traces
from deepprox.blocks import Block
from deepprox.design import Design, Whole
from deepprox.joining.join import Joined
from deepprox.joining.kinks import Slopes, forward
from deepprox.joining.live import Live
from deepprox.joining.quasi_newton import Memory
from deepprox.losses import Loss
from deepprox.network import Network, Weights
from deepprox.problem import Problem
from deepprox.runtime import bucket, lattice
from deepprox.spreading import Spread, same
from deepprox.struct import replace

MANY = (
    2048  # inputs up to which a network is solved on all of them: with fewer that costs twice as much at most
)
FIRST = 512  # inputs that it begins with
AT_ONCE = 4096  # columns of weights that a prox takes
ROUGH = 0.02  # share of what other inputs ask for to within which some are solved
ROUNDS = 30


def suits(network: Network, n_inputs: int, allsum: Spread = same) -> bool:
    """Whether a network has so many inputs that it is solved on some of them, and they may leave."""
    alone = all("inputs" not in block.reads for block in network.blocks[1:])
    deep = len(network.blocks) > 1 and allsum == same
    return bool(deep and alone and n_inputs > MANY and network.blocks[0].screens)


def design_of(X: Any) -> Design:
    """The inputs, asked for what a design is asked for."""
    return X if isinstance(X, Design) else Whole(np.asarray(X))


def some(problem: Problem, inputs: np.ndarray) -> Problem:
    """The problem on some of its inputs, dense, its rows padded."""
    X = design_of(problem.X).columns(inputs)
    n = len(X)
    rows = np.zeros(bucket(n), int)
    rows[:n] = np.arange(n)
    weight = np.pad(np.asarray(problem.weight), (0, len(rows) - n))
    few = replace(problem, X=np.ascontiguousarray(X[rows]), y=np.asarray(problem.y)[rows], weight=weight)
    return few if isinstance(problem.X, np.ndarray) else jax.device_put(few)


@traces.jit
def _pull_at(loss: Loss, eta: Array, y: Array, weight: Array) -> Array:
    pull: Array = jax.grad(lambda eta: (weight * loss.value(eta, y)).sum())(eta)
    return pull


@traces.jit
def _pull(problem: Problem, W: Weights, slopes: Slopes) -> Array:
    """The derivative of the smooth part in the first pre-activations, with chosen slopes at kinks."""
    (n, n_in), rest = problem.X.shape, [jnp.zeros((), problem.X.dtype)] * (len(problem.network.blocks) - 1)
    still = jnp.zeros((n, 1), bool)

    def smooth(nudge: Array) -> Array:
        return problem.smooth_part(forward(problem, W, slopes, still, on_z=[nudge, *rest]))

    pull: Array = jax.grad(smooth)(jnp.zeros((n, problem.network.numbers(n_in)[0]), problem.X.dtype))
    return pull


@traces.jit
def _residuals(block: Block, W: Array, gradient: Array, step: Array) -> Array:
    """How far the prox would move the weights of every column, in units of a derivative."""
    return abs(W - block.prox(W - step * gradient, step)).max(0)[1:] / step


def pulls(problem: Problem, few: Problem, W: Weights, slopes: Slopes) -> np.ndarray:
    """The gradient of the first block in all inputs, at weights on a ``few`` of them."""
    d = np.asarray(_pull(few, W, slopes))[: len(problem.weight)]
    return design_of(problem.X).gradient(d)


def residuals(problem: Problem, W: np.ndarray, gradient: np.ndarray, step: float) -> np.ndarray:
    """How far every input is from being stationary; 0 where it may stay as it is."""
    block, found = problem.network.blocks[0], []
    width, length = min(lattice(gradient.shape[1]), AT_ONCE), np.asarray(step, W.dtype)
    slopes = block.slopes(W)
    for first in range(0, gradient.shape[1], width):
        here = slice(first, first + width)
        short = width - gradient[:, here].shape[1]
        wide = [np.pad(part[:, here], [(0, 0), (1, short)]) for part in (slopes, gradient.astype(W.dtype))]
        found.append(np.asarray(_residuals(block, *wide, length))[: width - short])
    return np.concatenate(found)


def begun(problem: Problem, alive: np.ndarray) -> tuple[np.ndarray, float]:
    """The inputs to begin with, those ``alive``, a mask, and more; and how large a derivative is at most.

    The others are those along which the loss of the best constant prediction falls most.
    """
    y, weight = np.asarray(problem.y), np.asarray(problem.weight)
    level = problem.level if problem.network.blocks[-1].bias else np.zeros(y.shape[1])
    eta = np.broadcast_to(level, y.shape).astype(y.dtype)
    pull = np.asarray(_pull_at(problem.loss, eta, y, weight))
    score = np.abs(design_of(problem.X).gradient(pull)).max(0)
    return largest(score, alive, room_for(int(alive.sum()) + FIRST // 2)), float(score.max())


def room_for(n: int) -> int:
    """How many inputs a round takes where so many must be among them: few sizes, so that few compile."""
    return max(FIRST, 1 << (n - 1).bit_length())


def largest(score: np.ndarray, surely: np.ndarray, size: int) -> np.ndarray:
    """The numbers of so many inputs, if there are: a mask of some, and others in order of a score."""
    order = np.argsort(-np.where(surely, np.inf, score), kind="stable")
    return np.sort(order[: max(size, int(surely.sum()))])


def wider(
    inputs: np.ndarray, alive: np.ndarray, residual: np.ndarray, gradient: np.ndarray, tol: float
) -> np.ndarray:
    """The inputs of the next round: those ``alive``, those that want to come in, and what has most pull.

    So many come in as are alive, at most, or as the first round has: as many inputs as before as long as
    these find room, so that nothing compiles.
    """
    want = residual > tol
    most = max(FIRST, int(alive.sum()))
    if want.sum() > most:
        chosen = np.argpartition(-residual, most)[:most]
        want[:] = False
        want[chosen] = True
    surely = alive | want
    return largest(np.abs(gradient).max(0), surely, max(len(inputs), room_for(int(surely.sum()))))


Begin = Callable[[Problem, list[Weights], float], Joined]
GoOn = Callable[[Problem, Weights, Memory | None, float], Joined]


def in_turns(
    problem: Problem, starts: list[Weights], tol: float, warm: bool, begin: Begin, go_on: GoOn
) -> Joined:
    """Where the best of the starts ends, on some inputs after others, and its certificate on all of them.

    ``begin`` solves a problem of some inputs from the starts, ``go_on`` from a solution on others, to within
    what they are told: roughly, as long as others are to come.
    """
    first, n_inputs = problem.network.blocks[0], problem.X.shape[1]
    alive = first.used(starts[0][0]) if warm else np.zeros(n_inputs, bool)
    inputs, far = begun(problem, alive)
    few, aim = some(problem, inputs), max(tol, ROUGH * far)
    at = taken(first, starts, inputs, n_inputs, 1.0 if warm else math.sqrt(n_inputs / len(inputs)))
    end, outside = begin(few, at, aim), 0.0
    for _ in range(ROUNDS):
        W = put(first, end.W, inputs, n_inputs)
        gradient = pulls(problem, few, end.W, end.slopes)
        residual = residuals(problem, W[0], gradient, end.step)
        residual[inputs] = 0.0  # those of the problem of some inputs know the slopes of its own
        outside = float(residual.max())
        if end.status in ("diverged", "max_iter"):
            break
        if outside > tol:
            inputs = wider(inputs, first.used(W[0]), residual, gradient, tol)
            few, aim, memory = some(problem, inputs), max(tol, ROUGH * outside), None
        elif end.certificate > tol and aim > tol:
            aim, memory = tol, end.memory
        else:
            break
        end = go_on(few, taken(first, [W], inputs, n_inputs)[0], memory, aim)
    live = np.zeros(n_inputs, bool)
    live[inputs] = end.live.inputs
    certificate = max(end.certificate, outside)
    return end._replace(
        W=put(first, end.W, inputs, n_inputs),
        live=Live((live, *end.live.reads[1:])),
        certificate=certificate,
        status="stalled" if end.status == "converged" and certificate > tol else end.status,
        memory=None,
    )


def taken(
    first: Block, all_of: list[Weights], inputs: np.ndarray, n_inputs: int, larger: float = 1.0
) -> list[Weights]:
    """Weights of some inputs, so much ``larger``: fewer then give pre-activations of the same size."""
    grid, out = first.grid(np.arange(first.size), inputs, n_inputs), []
    for W in all_of:
        own = np.asarray(W[0])[grid]
        first.slopes(own)[:] *= larger
        out.append((own, *W[1:]))
    return out


def put(first: Block, few: Weights, inputs: np.ndarray, n_inputs: int) -> Weights:
    """Weights of all inputs: those of some in their places, zeros elsewhere."""
    own = np.asarray(few[0])
    out = np.zeros(first.shape(n_inputs), own.dtype)
    out[first.grid(np.arange(first.size), inputs, n_inputs)] = own
    return out, *few[1:]
