"""Split, then join: all cells and starts of a split side by side, the best of each cell joined and certified.

``mu`` is where ``rho`` starts; from there it grows as it does in any fit. Without a penalty and with classes
that a network can separate there is no minimum: the loss falls to zero as the weights grow. Such a fit ends
where its gradient is within ``TOL``, or at ``MAX_ITER``, whichever comes first.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from deepprox.applications.iris.setting import CELLS, TRAIN, Split, pose, rate, side_by_side
from deepprox.joining import quasi_newton
from deepprox.joining.certificate import flatten, unravel
from deepprox.joining.join import join
from deepprox.problem import Problem, Weights
from deepprox.scouting import SCOUT
from deepprox.solve import Options, in_dtype, initial, revive
from deepprox.splitting import admm
from deepprox.splitting.state import start

TOL, MAX_ITER = 1e-6, 2000


class Fit(NamedTuple):
    """One fit: share of non-zero weights, classification rates, objective (sum scale), and how it ended."""

    share: float
    train: float
    test: float
    objective: float
    certificate: float
    status: str
    largest: float


def fit_cells(split: Split, seed: int, n_starts: int) -> list[Fit]:
    """The fits of all cells of the paper to one split."""
    problems = [pose(split, gamma) for gamma, _ in CELLS]
    found = scout(problems, np.array([mu for _, mu in CELLS], np.float32), seed, n_starts)
    return [finish(problem, W, split) for problem, W in zip(problems, found)]


def finish(problem: Problem, W: Weights, split: Split) -> Fit:
    """The join phase from ``W``, in double precision."""
    found = join(problem, W, TOL, MAX_ITER, lambda phase, rows: None)
    eta, eta_test = (np.asarray(problem.network.forward(found.W, X)[-1]) for X in (split.X, split.X_test))
    w = np.concatenate([w.ravel() for w in found.W])
    return Fit(
        share=np.count_nonzero(w) / w.size,
        train=float(rate(eta, split.y)),
        test=float(rate(eta_test, split.y_test)),
        objective=TRAIN * found.objective,
        certificate=found.certificate,
        status=found.status,
        largest=float(np.abs(w).max()),
    )


def scout(problems: list[Problem], mu: np.ndarray, seed: int, n_starts: int) -> list[Weights]:
    """The best weights for each problem after the split phase and some quasi-Newton steps of all its starts.

    Single precision tells local minima apart, as in any fit with many starts.
    """
    rough = in_dtype(problems, np.float32)
    starts = [initial(problem, seed, n_starts) for problem in rough]
    together = side_by_side(rough)
    W = _split(together, _stack(starts), mu)
    by_problem = [list(zip(*row)) for row in zip(*(np.asarray(w) for w in W))]
    alive = [revive(*row) for row in zip(rough, by_problem, starts)]
    objective, w = _quasi_newton(together, _stack(alive))
    best = np.nanargmin(np.asarray(objective), axis=1)
    return [unravel(np.asarray(rows[k], np.float64), starts[0][0]) for rows, k in zip(np.asarray(w), best)]


def _stack(starts: list[list[Weights]]) -> Any:
    """Weights of all problems and starts as one record with two leading axes."""
    return side_by_side([side_by_side(row) for row in starts])


@jax.jit
def _split(problems: Problem, W: Weights, mu: Any) -> Weights:
    """The split phase of every problem and start."""
    options = Options()

    def one(problem: Problem, W: Weights, mu: Any) -> Weights:
        state = start(W, problem.network.forward(W, problem.X), (mu,) * len(W))
        sweep = lambda state, _: (admm.sweep(problem, state, options.pace, options.inner)[0], None)  # noqa: E731
        return lax.scan(sweep, state, length=options.sweeps)[0].W

    return jax.vmap(jax.vmap(one, in_axes=(None, 0, None)))(problems, W, mu)


@jax.jit
def _quasi_newton(problems: Problem, W: Weights) -> tuple[Any, Any]:
    """Objectives and weights, as vectors, of every problem and start after at most ``SCOUT`` steps."""

    def one(problem: Problem, W: Weights) -> tuple[Any, Any]:
        w, flat = flatten(problem, W)
        tol, limit = jnp.asarray(10 * TOL, w.dtype), jnp.asarray(quasi_newton.CHUNK)
        steps = lambda _, state: quasi_newton.run(flat, state, tol, limit)[0]  # noqa: E731
        state = lax.fori_loop(0, SCOUT // quasi_newton.CHUNK, steps, quasi_newton.first(flat, w))
        return state.objective, state.w

    return jax.vmap(jax.vmap(one, in_axes=(None, 0)))(problems, W)
