"""Which strength? Networks at many strengths, each without one fold of the rows, judged on that fold.

All of them are lanes of one program: the batch phase, shortened, in which a fold is rows of weight zero. So
they share draws of rows, and one compilation serves every fold and every strength. What is compared is how a
network predicts rows that it has not seen,

    risk_a = sum_i weight_i error(y_i, mean_i),   mean_i from the lane of strength a without the fold of i,

where the error is the loss; of classes with probabilities it is their squared error, which is bounded:
networks that are sure, and now and then wrong, do not decide alone.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox import batches, traces
from deepprox.losses import Loss
from deepprox.network import Network, Weights
from deepprox.problem import Problem
from deepprox.runtime import products_asked
from deepprox.struct import replace

FOLDS = 5
STEPS = 1000  # of every lane: a third of a batch phase chooses as well as a whole one
CALL = 100  # steps of one call of the program
ROWS = 10_000  # rows on which strengths are compared, at most


class Risks(NamedTuple):
    """``risk`` of every strength on rows that its networks have not seen, ``each`` that of every fold."""

    risk: np.ndarray
    each: np.ndarray

    @property
    def best(self) -> int:
        """The number of the strength with the least risk; of equals the strongest."""
        return int(np.flatnonzero(self.risk == self.risk.min())[-1])


def some(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem of at most ``ROWS`` of its rows, drawn at random."""
    counts = np.flatnonzero(np.asarray(problem.weight))
    if len(counts) <= ROWS:
        return problem
    rows = np.sort(rng.choice(counts, ROWS, replace=False))
    X, y, weight = (np.asarray(a)[rows] for a in (problem.X, problem.y, problem.weight))
    return replace(problem, X=X, y=y, weight=weight / weight.sum())


def deal(problem: Problem, rng: np.random.Generator, n_folds: int) -> np.ndarray:
    """A fold for every row that counts, in which responses are spread alike; -1 for the others.

    Of rows in the order of their responses every ``n_folds`` in a row go to different folds: so classes are
    in their proportions, small ones too, and so are large and small numbers.
    """
    counts = np.flatnonzero(np.asarray(problem.weight))
    y = np.asarray(problem.y)[counts]
    order = counts[np.lexsort((rng.random(len(counts)), *y.T))]
    turns = [rng.permutation(n_folds) for _ in range(-(-len(order) // n_folds))]
    folds = np.full(len(problem.weight), -1)
    folds[order] = np.concatenate(turns)[: len(order)]
    return folds


def error(loss: Loss, eta: Array, y: Array) -> Array:
    """How wrong a prediction is, row by row: the loss, or the squared error of probabilities."""
    if loss.likelihood and (loss.simplex or loss.binary):
        return ((loss.mean(eta) - y) ** 2).sum(-1)
    return loss.value(eta, y)


@partial(traces.jit, static_argnames=("batch", "products"))
def _advance(
    problem: Problem,
    networks: Network,
    kept: Array,
    state: batches.State,
    first: Any,
    batch: int,
    products: str,
) -> batches.State:
    """``CALL`` steps of all lanes from number ``first`` on, each with the weights of what it has ``kept``."""
    n = jnp.maximum(jnp.count_nonzero(problem.weight), 1)
    rows = jax.random.randint(jax.random.key(first), (CALL, batch), 0, n)
    networks, loss = batches.single((networks, problem.loss))
    numbers = first + jnp.arange(CALL)
    rates = batches.rates(len(networks.blocks), numbers, STEPS)

    def draw_and_step(state: batches.State, now: tuple) -> tuple[batches.State, None]:
        rows, number, rate = now
        X, y, weight = batches.single((problem.X[rows], problem.y[rows], problem.weight[rows]))

        def lane(network: Network, kept: Array, state: batches.State) -> batches.State:
            own = weight * kept[rows]
            own = own / jnp.maximum(own.sum(), jnp.finfo(own.dtype).tiny)
            some = Problem(network, loss, X, y, own)
            return batches.step(some, state, number.astype(jnp.float32) + 1, rate)[0]

        return jax.vmap(lane)(networks, kept, state), None

    with jax.default_matmul_precision(products):
        return lax.scan(draw_and_step, state, (rows, numbers, rates))[0]


@traces.jit
def _errors(problem: Problem, networks: Network, W: Weights) -> Array:
    """The error of every lane at every row."""
    networks, loss, X, y = batches.single((networks, problem.loss, problem.X, problem.y))
    of_lane = lambda lane: error(loss, lane[0].forward(lane[1], X)[-1], y)  # noqa: E731
    return lax.map(of_lane, (networks, W))


def risks(
    problem: Problem, networks: Sequence[Network], starts: Sequence[Weights], folds: np.ndarray, batch: int
) -> Risks:
    """The risks of networks that differ in their strength, from one start for every fold."""
    n_folds = len(starts)
    stacked = jax.tree.map(lambda *leaves: np.stack([*leaves] * n_folds), *networks)
    fold = np.repeat(np.arange(n_folds), len(networks))
    kept = (folds != fold[:, None]).astype(np.float32) * (folds >= 0)
    W = tuple(np.repeat(np.stack(w), len(networks), axis=0) for w in zip(*starts, strict=True))
    state, products = batches.start(W), products_asked() or batches.PRODUCTS
    for k in range(0, STEPS, CALL):
        state = _advance(problem, stacked, kept, state, np.int32(k), batch, products)
    errors = np.asarray(_errors(problem, stacked, state.W), float)
    held = (folds == fold[:, None]) * np.asarray(problem.weight, float)
    each = (np.where(held > 0, errors, 0) * held).sum(1) / np.maximum(held.sum(1), np.finfo(float).tiny)
    each = np.where(np.isfinite(each), each, np.inf).reshape(n_folds, -1).T
    shares = held.sum(1).reshape(n_folds, -1)[:, 0]
    return Risks(each @ (shares / shares.sum()), each)
