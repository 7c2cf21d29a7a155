"""Which strength? Networks at many strengths, each without one fold of the rows, judged on that fold.

All of them are lanes of one program: the batch phase, shortened. A fold is a problem of its own, of the other
rows in their own units, and one compilation serves every fold and every strength. What is compared is how a
network predicts rows that it has not seen,

    risk_a = sum_i weight_i error(y_i, mean_i),   mean_i from the lane of strength a without the fold of i,

where the error is the loss; of classes with probabilities it is their squared error, which is bounded:
networks that are sure, and now and then wrong, do not decide alone.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox import batches, traces
from deepprox.arrays import as_taken
from deepprox.budget import Budget
from deepprox.losses import Loss
from deepprox.losses.real import Real
from deepprox.network import Network, Weights
from deepprox.problem import Problem
from deepprox.room import Room, room
from deepprox.runtime import bucket, products_asked
from deepprox.struct import replace

FOLDS = 5  # that predict too
FEW_FOLDS = 3  # that choose a strength and no more
STEPS = 1000  # of every lane: a third of a batch phase chooses as well as a whole one
CALL = 100  # steps of one call of the program
TOGETHER = 10  # folds in one call, at most
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


def error(loss: Loss, eta: Any, y: Any) -> Any:
    """How wrong a prediction is, row by row: the loss, or the squared error of probabilities."""
    if loss.likelihood and (loss.simplex or loss.binary):
        return ((loss.mean(eta) - y) ** 2).sum(-1)
    return loss.value(eta, y)


class Rows(NamedTuple):
    """The rows of every fold's networks, in their own units: a leading axis for the folds."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    loss: Loss

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> "Rows":
        """Those of problems of one shape; the units of a response are taken out on the host."""
        return cast(Rows, jax.tree.map(lambda *rows: np.stack(rows), *map(cls._alone, problems)))

    @classmethod
    def _alone(cls, problem: Problem) -> "Rows":
        y, loss = np.asarray(problem.y), problem.loss
        if isinstance(loss, Real):
            y, loss = loss.scaled(y), replace(loss, centre=None, spread=None)
        X, y, weight = (np.asarray(a, np.float32) for a in (problem.X, y, problem.weight))
        return cls(X, y, weight, loss)


@partial(traces.jit, static_argnames=("batch", "products"))
def _advance(
    networks: Network,
    rows: Rows,
    state: batches.State,
    first: Any,
    batch: int,
    products: str,
    budget: Budget | None,
) -> batches.State:
    """``CALL`` steps of the networks of all strengths and folds, from number ``first`` on.

    Every fold draws by the same numbers from rows of its own; those without weight stand last.
    """
    drawn = jax.random.randint(jax.random.key(first), (CALL, batch), 0, np.iinfo(np.int32).max)
    networks, rows = batches.single((networks, rows))
    counts = jnp.maximum(jnp.count_nonzero(rows.weight, axis=1), 1)
    numbers = first + jnp.arange(CALL)
    rates = batches.rates(len(networks.blocks), numbers, STEPS)

    def draw_and_step(state: batches.State, now: tuple) -> tuple[batches.State, None]:
        drawn, number, rate = now

        def fold(rows: Rows, count: Array, state: batches.State) -> batches.State:
            own = drawn % count
            weight = rows.weight[own]
            weight = weight / jnp.maximum(weight.sum(), jnp.finfo(weight.dtype).tiny)

            def lane(network: Network, state: batches.State) -> batches.State:
                some = Problem(network, rows.loss, rows.X[own], rows.y[own], weight)
                state = batches.step(some, state, number.astype(jnp.float32) + 1, rate)[0]
                return batches.confined(budget, network, state, (number + 1) / STEPS)

            return jax.vmap(lane)(networks, state)

        return jax.vmap(fold)(rows, counts, state), None

    with jax.default_matmul_precision(products):
        return lax.scan(draw_and_step, state, (drawn, numbers, rates))[0]


@traces.jit
def _outputs(networks: Network, W: Weights, X: Array) -> Array:
    """``eta`` of every strength at every row."""
    networks, X = batches.single((networks, X))
    return lax.map(lambda lane: lane[0].forward(lane[1], X)[-1], (networks, W))


class Lanes(NamedTuple):
    """Networks of all strengths for every fold: ``W[fold]`` has a leading axis for the strengths."""

    networks: Network
    W: list[Weights]
    room: Room

    def outputs(self, fold: int, X: np.ndarray) -> np.ndarray:
        """``eta`` of the networks of a fold at inputs in its units, of shape (n_strengths, n, k)."""
        n, n_in = X.shape
        X = np.pad(np.float32(X), [(0, bucket(n) - n), (0, self.room.problem.X.shape[1] - n_in)])
        return np.asarray(_outputs(self.networks, self.room.put(self.W[fold]), X), float)[:, :n]


def train(
    problems: Sequence[Problem],
    networks: Sequence[Network],
    starts: Sequence[Weights],
    batch: int,
    told: Callable[[int, int], None] | None = None,
    budget: Budget | None = None,
) -> Lanes:
    """Networks that differ in their strength, on the rows of every fold, from one start for each fold.

    All of them are within the ``budget``, if there is one.
    """
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *networks)
    products, out = products_asked() or batches.PRODUCTS, []
    rooms, total = [room(problem) for problem in problems], STEPS * -(-len(problems) // TOGETHER)
    for at in range(0, len(problems), TOGETHER):
        rows = Rows.of([wide.problem for wide in rooms[at : at + TOGETHER]])
        first = zip(*map(rooms[0].put, starts[at : at + TOGETHER]), strict=True)
        W = tuple(np.repeat(np.stack(w)[:, None], len(networks), axis=1) for w in first)
        state = batches.start(W)
        for k in range(0, STEPS, CALL):
            state = _advance(stacked, rows, state, np.int32(k), batch, products, budget)
            if told:
                told(STEPS * (at // TOGETHER) + k + CALL, total)
        W = tuple(np.asarray(w) for w in state.W)
        out += [rooms[0].take(tuple(w[k] for w in W)) for k in range(len(W[0]))]
    return Lanes(stacked, out, rooms[0])


def errors(loss: Loss, own: Loss, eta: Any, y: np.ndarray) -> np.ndarray:
    """The error of every strength (rows) at every row (columns), in the units of ``loss``.

    ``own`` is the loss of the networks, whose response may have had another level and spread.
    """
    if isinstance(loss, Real):
        eta = loss.scaled(own.mean(eta))
    with np.errstate(all="ignore"):
        taken = [as_taken(a, loss) for a in (*eta, y)]
        return np.array([np.asarray(error(loss, one, taken[-1]), float) for one in taken[:-1]])


def risks(each: np.ndarray, shares: np.ndarray) -> Risks:
    """The risks of strengths (rows) from those on every fold (columns), which has a share of the weight."""
    each = np.where(np.isfinite(each), each, np.inf)
    return Risks(each @ (shares / shares.sum()), each)
