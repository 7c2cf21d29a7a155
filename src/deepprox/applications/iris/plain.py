"""The paper's plain ADMM: one fixed ``mu``, no join phase, every lane in one compiled program.

    primal   sum_i loss_i + gamma sum |w|  of the forward pass
    dual     max_U min_{W, Z} of the augmented Lagrangian, at the iterate: the paper's equation for it

They are equal where every split constraint holds.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax

from deepprox.applications.iris.setting import TRAIN, Split, draw_split, pose, rate, side_by_side
from deepprox.problem import Problem
from deepprox.solve import initial
from deepprox.splitting import admm
from deepprox.splitting.state import State, lagrangian, start

CHUNK = 50  # sweeps of one call of the compiled program
PACE = admm.Pace(relaxation=1.0, growth=1.0, rho_max=1.0)
INNER, ONE_PROX_STEP = admm.Inner(), admm.Inner(w=1)

Track = Callable[..., Iterable[int]]


class Lane(NamedTuple):
    """One run: a cell, a split, and the scale of the inputs."""

    gamma: float
    mu: float
    split: int
    standardize: bool


class Curves(NamedTuple):
    """What one looks at after every sweep: a row for each run, objectives on the sum scale."""

    primal: Any
    dual: Any
    share: Any
    train: Any
    test: Any

    def gap(self) -> np.ndarray:
        """``|dual - primal| / primal``, its largest value in the last tenth of each run."""
        relative = np.abs(self.dual - self.primal) / self.primal
        return relative[:, -(relative.shape[1] // 10) :].max(1)


class Runs(NamedTuple):
    """All lanes and their curves."""

    lanes: list[Lane]
    curves: Curves

    def cell(self, gamma: float, mu: float, standardize: bool = True) -> Curves:
        """The curves of one cell, a row for each split."""
        rows = [lane[:2] == (gamma, mu) and lane.standardize == standardize for lane in self.lanes]
        return Curves(*(column[rows] for column in self.curves))


def run(lanes: list[Lane], seed: int, sweeps: int, track: Track, inner: admm.Inner = INNER) -> Runs:
    """All lanes side by side, in chunks of one compiled program."""
    splits = [draw_split(seed, lane.split, lane.standardize) for lane in lanes]
    problems = [pose(split, lane.gamma) for split, lane in zip(splits, lanes)]
    states = [begin(problem, lane, seed) for problem, lane in zip(problems, lanes)]
    given, state = side_by_side(list(zip(problems, splits))), side_by_side(states)
    pieces = []
    for _ in track(range(-(-sweeps // CHUNK)), description=f"plain ADMM, {len(lanes)} runs side by side"):
        state, curves = _chunk(*given, state, inner)
        pieces.append([np.asarray(column) for column in curves])
    return Runs(lanes, Curves(*(np.concatenate(column, axis=1) for column in zip(*pieces))))


def begin(problem: Problem, lane: Lane, seed: int) -> State:
    """Random weights, the same for every cell of a split, their forward pass, and zero duals."""
    W = initial(problem, seed + lane.split)[0]
    return start(W, problem.network.forward(W, problem.X), (np.float64(lane.mu),) * len(W))


@partial(jax.jit, static_argnames="inner")
def _chunk(problems: Problem, splits: Split, states: State, inner: admm.Inner) -> tuple[State, Curves]:
    def one(problem: Problem, split: Split, state: State) -> tuple[State, Curves]:
        def sweep(state: State, _: None) -> tuple[State, Curves]:
            state, info = admm.sweep(problem, state, PACE, inner)
            eta, eta_test = (problem.network.forward(state.W, X)[-1] for X in (split.X, split.X_test))
            return state, Curves(
                primal=TRAIN * info.objective,
                dual=TRAIN * lagrangian(problem, state),
                share=info.n_nonzero / sum(w.size for w in state.W),
                train=rate(eta, split.y),
                test=rate(eta_test, split.y_test),
            )

        return lax.scan(sweep, state, length=CHUNK)

    return jax.vmap(one)(problems, splits, states)
