"""Split, then join: from random weights to a certified solution."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from deepprox.joining import quasi_newton
from deepprox.joining.finish import look, no_slopes
from deepprox.joining.join import Joined, join
from deepprox.joining.live import Live, canonical
from deepprox.problem import Problem, Weights
from deepprox.splitting import admm
from deepprox.splitting.residuals import satisfied

SWEEPS = 10  # a chunk of the split phase: what one call of a compiled program does
SCOUT = 200  # quasi-Newton steps of every start before the best goes on alone

Watch = Callable[[dict[str, Any]], None]

MESSAGES = {
    "converged": "converged: the certificate is within tol",
    "settled": "settled: the primal and dual residuals are within tol (join=False)",
    "max_iter": "stopped at max_iter with the certificate above tol: raise max_iter or tol",
    "stalled": "stalled with the certificate above tol, at the limits of {dtype}: raise tol or use float64",
    "diverged": "diverged: the objective is not finite: standardize the inputs, raise alpha or lower rho",
}


class Options(NamedTuple):
    """How a problem is solved; the defaults need no tuning.

    ``rho`` holds constraint weights to keep, one for each block (numbers, or columns over
    observations), or None to start them from the penalties and let them grow.
    """

    sweeps: int = 40
    join: bool = True
    rho: tuple[Any, ...] | None = None
    pace: admm.Pace = admm.Pace()
    inner: admm.Inner = admm.Inner()
    max_iter: int = 2000
    tol: float = 1e-6


class Solution(NamedTuple):
    """What was found and how sure it is.

    ``certificate`` is the largest entry of the prox-gradient fixed-point residual, ``strict`` whether
    the Hessian on the live weights is positive definite (None where none was formed), ``n_held`` how
    many pre-activations sit exactly at a kink of their link, ``starts`` the objective of every start.
    """

    W: tuple[np.ndarray, ...]
    live: Live
    objective: float
    loss: float
    penalty: float
    certificate: float
    primal: float
    dual: float
    status: str
    message: str
    n_iter: int
    n_held: int
    strict: bool | None
    starts: np.ndarray
    history: list[dict[str, Any]]
    seconds: dict[str, float]

    @property
    def n_nonzero(self) -> tuple[int, ...]:
        """Non-zero weights of every block, biases included."""
        return tuple(int(np.count_nonzero(w)) for w in self.W)


@partial(jax.jit, static_argnames="lanes")
def initial(problem: Problem, key: Array, lanes: bool) -> Weights:
    """Random weights, with the output bias at the best constant prediction; one start for each key."""
    sums = (problem.weight[:, None] * problem.y).sum(0), problem.weight.sum()
    sum_y, sum_weight = problem.allsum(sums)
    nothing = jnp.zeros((1, problem.y.shape[1]), problem.y.dtype)
    flat = jnp.asarray(1e4, nothing.dtype)
    level = problem.loss.prox(nothing, (sum_y / sum_weight)[None], flat, nothing, 20)[0]

    def one(key: Array) -> Weights:
        W = problem.network.init(key, problem.X.shape[1], problem.X.dtype)
        return (*W[:-1], W[-1].at[:, 0].set(level))

    return jax.vmap(one)(key) if lanes else one(key)


class Diary:
    """The history of every start as it happens, for the records and for whoever watches."""

    def __init__(self, n_starts: int, watch: Watch | None) -> None:
        self.rows: list[list[dict[str, Any]]] = [[] for _ in range(n_starts)]
        self.watch = watch
        self.began = self.marked = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def chunk(self, phase: str, info: Any, taken: Any = None) -> None:
        """Write a chunk of rows for every start and show the last of the best."""
        columns = {name: np.atleast_2d(np.asarray(column)) for name, column in info._asdict().items()}
        n_starts, length = columns["objective"].shape
        for lane in range(n_starts):
            for k in range(length if taken is None else int(np.atleast_1d(taken)[lane])):
                self.write(phase, {name: column[lane, k].item() for name, column in columns.items()}, lane)
        self.show()

    def write(self, phase: str, row: dict[str, Any], lane: int = 0) -> None:
        """Write one row."""
        at = {"phase": phase, "iteration": len(self.rows[lane]) + 1}
        self.rows[lane].append(at | row | {"seconds": time.perf_counter() - self.began})

    def show(self) -> None:
        """Tell whoever watches where the best start is."""
        if self.watch is not None and any(self.rows):
            self.watch(min((rows[-1] for rows in self.rows if rows), key=lambda row: row["objective"]))

    def lap(self, phase: str) -> None:
        """Close the account of a phase."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self.marked
        self.marked = now


def solve(
    problem: Problem, W: Weights, lanes: bool, options: Options, watch: Watch | None = None
) -> Solution:
    """Split, then join, from the starting weights ``W`` (with a leading axis of starts if ``lanes``)."""
    diary = Diary(W[0].shape[0] if lanes else 1, watch)
    if options.join:
        if options.sweeps:
            W = revive(problem, split(problem, W, lanes, options, diary)[0], W, lanes)
            diary.lap("split")
        W, starts, lane = scout(problem, W, lanes, options, diary)
        budget = max(options.max_iter - len(diary.rows[lane]), 1)
        found = join(problem, W, options.tol, budget, partial(diary.write, lane=lane))
        starts[lane] = found.objective
        diary.lap("join")
    else:
        W, settled = split(problem, W, lanes, options, diary)
        found, starts, lane = as_split(problem, W, lanes, settled)
        diary.lap("split")
    history = diary.rows[lane]
    last = next((row for row in reversed(history) if row["phase"] == "split"), {})
    return Solution(
        W=found.W,
        live=found.live,
        objective=found.objective,
        loss=found.loss,
        penalty=found.objective - found.loss,
        certificate=found.certificate,
        primal=0.0 if options.join else last["primal"],
        dual=0.0 if options.join else last["dual"],
        status=found.status,
        message=MESSAGES[found.status].format(dtype=found.W[0].dtype),
        n_iter=len(history),
        n_held=found.n_held,
        strict=found.strict,
        starts=starts,
        history=history,
        seconds=diary.seconds,
    )


def split(problem: Problem, W: Weights, lanes: bool, options: Options, diary: Diary) -> tuple[Weights, np.ndarray]:
    """The split phase: new weights, and which starts met the residual tolerances."""
    pace = options.pace if options.rho is None else options.pace._replace(growth=1.0)
    pace = admm.Pace(*(jnp.asarray(number, W[0].dtype) for number in pace))
    state = admm.begin(problem, W, options.rho, lanes)
    limit = options.sweeps if options.join else options.max_iter
    settled = np.zeros(len(diary.rows), bool)
    for _ in range(-(-limit // SWEEPS)):
        after, info = admm.chunk(problem, state, pace, options.inner, SWEEPS, lanes)
        if not np.isfinite(np.asarray(info.objective)).any(axis=-1).all():
            break  # keep the last finite weights
        state = after
        diary.chunk("split", info)
        last = jax.tree.map(lambda column: np.asarray(column)[..., -1], info)
        settled = np.atleast_1d(satisfied(last, options.tol))
        if settled.all():
            break
    return state.W, settled


def revive(problem: Problem, W: Weights, start: Weights, lanes: bool) -> Weights:
    """``W``, with the starts that the split phase emptied put back to where they began."""
    for lane in range(W[0].shape[0] if lanes else 1):
        here = _lane(W, lane, lanes)
        if not all(mask.any() for mask in canonical(problem.network, here)[1].reads):
            W = tuple(w.at[lane].set(s[lane]) for w, s in zip(W, start, strict=True)) if lanes else start
    return W


def scout(
    problem: Problem, W: Weights, lanes: bool, options: Options, diary: Diary
) -> tuple[Weights, np.ndarray, int]:
    """Quasi-Newton steps of all starts side by side; the best start, all objectives, and its place."""
    if not lanes:
        return W, np.zeros(1), 0
    state = quasi_newton.begin(problem, W, lanes)
    tol = jnp.asarray(options.tol, W[0].dtype)
    for _ in range(SCOUT // quasi_newton.CHUNK):
        state, info, taken = quasi_newton.chunk(problem, W, state, tol, lanes)
        diary.chunk("join", info, taken)
        if not np.asarray(taken).any():
            break
    starts = np.array(state.objective, float)
    lane = int(np.argmin(np.where(np.isfinite(starts), starts, np.inf)))
    unravel = ravel_pytree(_lane(W, lane, lanes))[1]
    return unravel(state.w[lane]), starts, lane


def as_split(
    problem: Problem, W: Weights, lanes: bool, settled: np.ndarray
) -> tuple[Joined, np.ndarray, int]:
    """The split phase's best weights as they are: the paper's ADMM."""
    each = [_lane(W, lane, lanes) for lane in range(len(settled))]
    starts = np.array([float(problem.objective(w)) for w in each])
    lane = int(np.argmin(np.where(np.isfinite(starts), starts, np.inf)))
    best = each[lane]
    point = look(problem, best, no_slopes(problem), 1.0)
    status = "settled" if settled[lane] else "max_iter" if np.isfinite(starts[lane]) else "diverged"
    W_best, live = tuple(np.asarray(w) for w in best), canonical(problem.network, best)[1]
    numbers = float(point.objective), float(point.loss), float(point.certificate)
    return Joined(W_best, live, *numbers, 0, None, status, 0), starts, lane


def _lane(W: Weights, lane: int, lanes: bool) -> Weights:
    return tuple(w[lane] for w in W) if lanes else W
