"""The batch phase of many networks side by side: strengths, folds, starts and penalties are lanes.

Every lane has its own rows, held rows, scale of inputs and responses, penalty, strength and start, and all
take the library's steps (:mod:`deepprox.batches`). Two programs: ``fixed``, one strength from beginning to
end, which keeps the weights that were best on the held rows too; ``walk``, from a weak strength to a strong
one.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from deepprox import batches
from deepprox.blocks import Dense
from deepprox.links import ReLU, Tanh
from deepprox.losses import Softmax, Squared
from deepprox.penalties import L1, L2, MCP, Bridge, GroupL2, LogSum
from deepprox.penalties.contract import Penalty
from deepprox.problem import Network, Problem
from deepprox.struct import static, struct

KINDS: dict[str, Any] = {
    "l1": lambda alpha: L1(alpha),
    "bridge12": lambda alpha: Bridge(alpha, 0.5),
    "bridge23": lambda alpha: Bridge(alpha, 2 / 3),
    "mcp": lambda alpha: MCP(alpha, 0.5 / alpha),  # flat from weights of 1/2 on, whatever the strength
    "log_sum": lambda alpha: LogSum(alpha / 5, 0.1),
    "group_inputs": lambda alpha: GroupL2(alpha, by="input"),
    "group_units": lambda alpha: GroupL2(alpha, by="unit"),
    "l2": lambda alpha: L2(10 * alpha),  # dense, beside the others
}
LINKS = {"relu": ReLU(), "tanh": Tanh()}
CHUNK = 100  # steps between two looks at the held rows
LEVEL = 150  # steps at each strength of a walk


@struct
class Mixed(Penalty):
    """One of several penalties, by number."""

    kinds: tuple[str, ...] = static()
    kind: Any = 0
    alpha: Any = 1.0

    def _one(self, results: list) -> Any:
        return jnp.select([self.kind == k for k in range(len(results))], results)

    def value(self, w: Any) -> Any:
        return self._one([KINDS[name](self.alpha).value(w) for name in self.kinds])

    def prox(self, v: Any, step: Any) -> Any:
        return self._one([KINDS[name](self.alpha).prox(v, step) for name in self.kinds])


class Lanes(NamedTuple):
    """What differs between lanes: a leading axis each. ``rows`` counts ``n``, ``held`` counts ``h``."""

    rows: Any
    n: Any
    held: Any
    h: Any
    test: Any
    kind: Any
    alpha: Any
    key: Any
    W: Any


class Ends(NamedTuple):
    """Outputs on the held and the test rows in the units of the response, and facts about the weights."""

    held: Any
    test: Any
    train: Any
    objective: Any
    n_nonzero: Any
    inputs: Any
    units: Any


def network_of(how: "How", kind: Any, alpha: Any) -> Network:
    """The network of a lane."""
    penalty = Mixed(how.kinds, kind, alpha)
    hidden = tuple(Dense(size, LINKS[how.link], penalty) for size in how.hidden)
    return Network((*hidden, Dense(how.outputs, penalty=penalty)))


class How(NamedTuple):
    """What all lanes share."""

    kinds: tuple[str, ...]
    hidden: tuple[int, ...]
    link: str
    outputs: int
    classes: bool
    batch: int
    steps: int

    @property
    def loss(self) -> Any:
        return Softmax() if self.classes else Squared()


def starts(how: How, n_in: int, level: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Random weights, with the output's bias at the best constant."""
    W = network_of(how, 0, 1.0).init(np.random.default_rng(seed), n_in)
    W[-1][:, 0] = level
    return tuple(w.astype(np.float32) for w in W)


class Scaled(NamedTuple):
    """How a lane sees inputs and responses."""

    mean: Any
    spread: Any
    y_mean: Any
    y_spread: Any

    @classmethod
    def of(cls, how: How, X: Any, y: Any, lane: Lanes) -> "Scaled":
        """From the rows of the lane alone."""
        weight = (jnp.arange(len(lane.rows)) < lane.n) / lane.n
        rows, responses = X[lane.rows], y[lane.rows]
        mean, level = weight @ rows, weight @ responses
        spread = jnp.sqrt(weight @ (rows - mean) ** 2)
        width = jnp.sqrt(weight @ (responses - level) ** 2)
        if how.classes:
            level, width = jnp.zeros_like(level), jnp.ones_like(width)
        return cls(mean, jnp.where(spread > 1e-6, spread, jnp.inf), level, jnp.where(width > 0, width, 1))

    def inputs(self, X: Any) -> Any:
        return (X - self.mean) / self.spread

    def responses(self, y: Any) -> Any:
        return (y - self.y_mean) / self.y_spread

    def outputs(self, eta: Any) -> Any:
        return eta * self.y_spread + self.y_mean


def problem_of(how: How, X: Any, y: Any, scale: Scaled, lane: Lanes, rows: Any, count: Any) -> Problem:
    """The problem of a lane on some rows, ``count`` of which are meant."""
    weight = (jnp.arange(len(rows)) < count) / jnp.maximum(count, 1)
    network = network_of(how, lane.kind, lane.alpha)
    return Problem(network, how.loss, scale.inputs(X[rows]), scale.responses(y[rows]), weight)


def draw(how: How, X: Any, y: Any, scale: Scaled, lane: Lanes, state: Any, number: Any, rate: Any) -> Any:
    """One step on rows drawn at random."""
    key = jax.random.fold_in(lane.key, number)
    rows = lane.rows[jax.random.randint(key, (how.batch,), 0, lane.n)]
    problem = problem_of(how, X, y, scale, lane, rows, how.batch)
    count = number.astype(jnp.float32) + 1
    return batches.step(problem, state, count, batches.RATE / (len(how.hidden) + 1) * rate)[0]


def ends(how: How, X: Any, y: Any, scale: Scaled, lane: Lanes, W: Any) -> Ends:
    """What is kept of a network."""
    problem = problem_of(how, X, y, scale, lane, lane.rows, lane.n)
    seen = [scale.inputs(X[rows]) for rows in (lane.held, lane.test)]
    eta = [scale.outputs(problem.network.forward(W, rows)[-1]) for rows in seen]
    read = tuple(jnp.abs(w[:, 1:]) > 0 for w in W)
    for l in range(1, len(W)):  # what nothing reaches, and what reaches nothing, is not there
        read = (*read[:l], read[l] & read[l - 1].any(1), *read[l + 1 :])
    for l in range(len(W) - 2, -1, -1):
        read = (*read[:l], read[l] & read[l + 1].any(0)[:, None], *read[l + 1 :])
    live = read[0]
    biases = sum(one.any(1).sum() for one in read[:-1]) + how.outputs
    loss, count = problem.mean_loss(W), sum(one.sum() for one in read) + biases
    penalty = problem.network.penalty(W)
    return Ends(*eta, loss, loss + penalty, count, live.any(0).sum(), live.any(1).sum())


def begun(W: Any) -> batches.State:
    """The library's state before the first step, of arrays on the device."""
    sizes = tuple(jnp.sqrt((w**2).mean()) for w in W)
    return batches.State(W, tuple(map(jnp.zeros_like, W)), tuple(map(jnp.zeros_like, sizes)), sizes)


@partial(jax.jit, static_argnames="how")
def fixed(how: How, X: Any, y: Any, lanes: Lanes) -> tuple[Ends, Ends, Any]:
    """At the end, and where the held rows were predicted best, with the step of that."""

    def one(lane: Lanes) -> Any:
        scale = Scaled.of(how, X, y, lane)
        outside = problem_of(how, X, y, scale, lane, lane.held, lane.h)

        def chunk(carry: Any, first: Any) -> Any:
            state, best, least, when = carry

            def step(state: Any, number: Any) -> Any:
                left = 1 - number / how.steps
                rate = jnp.minimum(left / batches.FALLING, 1)
                return draw(how, X, y, scale, lane, state, number, rate), None

            state, _ = lax.scan(step, state, first + jnp.arange(CHUNK))
            now = outside.mean_loss(state.W)
            better = now < least
            best = jax.tree.map(lambda new, old: jnp.where(better, new, old), state.W, best)
            carry = state, best, jnp.where(better, now, least), jnp.where(better, first + CHUNK, when)
            return carry, None

        begin = begun(lane.W), lane.W, jnp.float32(jnp.inf), jnp.int32(0)
        (state, best, _, when), _ = lax.scan(chunk, begin, jnp.arange(0, how.steps, CHUNK))
        at = partial(ends, how, X, y, scale, lane)
        return at(state.W), at(best), when

    return jax.vmap(one)(lanes)


@partial(jax.jit, static_argnames="how")
def walk(how: How, X: Any, y: Any, lanes: Lanes, levels: Any) -> Ends:
    """At the end of every level of strength; the first one has as many steps as a third of a fit."""

    def one(lane: Lanes) -> Any:
        scale = Scaled.of(how, X, y, lane)

        def steps(state: Any, alpha: Any, numbers: Any, rates: Any) -> Any:
            here = lane._replace(alpha=alpha)
            return lax.scan(
                lambda state, at: (draw(how, X, y, scale, here, state, *at), None), state, (numbers, rates)
            )[0]

        early = jnp.arange(how.steps // 3)
        state = steps(begun(lane.W), levels[0], early, jnp.ones(len(early)))

        def level(state: Any, at: Any) -> Any:
            k, alpha = at
            numbers = len(early) + k * LEVEL + jnp.arange(LEVEL)
            state = steps(state, alpha, numbers, jnp.linspace(0.5, 0.02, LEVEL))
            return state, ends(how, X, y, scale, lane._replace(alpha=alpha), state.W)

        return lax.scan(level, state, (jnp.arange(len(levels)), levels))[1]

    return jax.vmap(one)(lanes)
