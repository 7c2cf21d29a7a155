"""Stein's unbiased risk estimate against the error on new responses, over simulated data sets.

The inputs and the mean are the same in all of them, the noise is new, and its deviation is known. For every
fit, SURE is compared with ``|mean - fit|^2 + n sigma^2``, what new responses at the same inputs cost on
average; and the mean of the degrees of freedom with their definition ``sum_i cov(fit_i, y_i) / sigma^2``.
The networks are 6-8-1 tanh. A fit that starts near the solution for the mean stays in one minimum and is a
smooth function of the response nearly everywhere; the best of many starts jumps from one minimum to another.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from benchmarks import show
from deepprox.blocks import Dense
from deepprox.joining.join import join
from deepprox.links import Identity, Tanh
from deepprox.losses import Squared
from deepprox.penalties import L1
from deepprox.problem import Network, Problem, Weights
from deepprox.runtime import keep_programs, precision
from deepprox.solve import Options, initial, solve
from deepprox.statistics.degrees_of_freedom import degrees_of_freedom
from deepprox.struct import replace

SETS, N, P, SIGMA, TOL = 200, 100, 6, 0.5, 1e-8


class Result(NamedTuple):
    """A row for every data set that was solved: SURE, error, degrees of freedom, and noise times fit.

    ``lost`` data sets have no certified fit, or no degrees of freedom there.
    """

    sure: np.ndarray
    error: np.ndarray
    df: np.ndarray
    covariance: np.ndarray
    lost: int


def setting(hidden: tuple[int, ...], alpha: float) -> tuple[Problem, np.ndarray]:
    """The problem without noise, and its mean: two smooth steps, four of six inputs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    mean = 1.5 * np.tanh(X[:, 0] + X[:, 1]) - np.tanh(2 * X[:, 2] - X[:, 3])
    blocks = [Dense(size, Tanh(), L1(np.asarray(alpha))) for size in hidden]
    network = Network((*blocks, Dense(1, Identity(), L1(np.asarray(alpha)))))
    return Problem(network, Squared(), X, mean[:, None], np.full(N, 1 / N)), mean[:, None]


def simulate(problem: Problem, mean: np.ndarray, fit: Callable[[Problem, int], Weights | None]) -> Result:
    """The rule ``fit`` on all data sets."""
    eta = jax.jit(lambda W: problem.network.forward(W, problem.X)[-1])
    noises, offs, dfs = [], [], []
    for number in range(SETS):
        noise = SIGMA * np.random.default_rng(1000 + number).normal(size=mean.shape)
        posed = replace(problem, y=mean + noise)
        W = fit(posed, number)
        df = None if W is None else degrees_of_freedom(posed, W, N, "exact", tol=1e-6)
        if df is not None and df.defined:
            noises.append(noise[:, 0])
            offs.append(np.asarray(eta(W) - mean)[:, 0])
            dfs.append(df.value)
    e, off, freedom, n_sets = np.array(noises), np.array(offs), np.array(dfs), len(dfs)
    return Result(
        sure=((e - off) ** 2).sum(1) + 2 * SIGMA**2 * freedom,
        error=(off**2).sum(1) + N * SIGMA**2,
        df=freedom,
        covariance=(e * (off - off.mean(0))).sum(1) / SIGMA**2 * n_sets / (n_sets - 1),
        lost=SETS - n_sets,
    )


def from_start(W: Weights) -> Callable[[Problem, int], Weights | None]:
    """Join from the same weights every time."""

    def fit(posed: Problem, number: int) -> Weights | None:
        found = join(posed, W, TOL, 5000, lambda phase, rows: None)
        return found.W if found.status == "converged" else None

    return fit


def cold(n_starts: int) -> Callable[[Problem, int], Weights | None]:
    """Split and join from new random starts, the best of them."""

    def fit(posed: Problem, number: int) -> Weights | None:
        found = solve(posed, initial(posed, number, n_starts), Options(tol=TOL, max_iter=5000))
        return found.W if found.status == "converged" else None

    return fit


def main() -> None:
    """Six rules, 200 data sets each."""
    keep_programs()
    with precision(np.float64):
        began = time.perf_counter()
        rows = [row(*rule) for rule in rules()]
    columns = ["", "SURE / n", "error / n", "difference", "mean df", "sum cov / sigma^2", "left out", ""]
    show.table(f"SURE over {SETS} data sets, within 2 standard errors", columns, rows)
    show.console.print(f"{time.perf_counter() - began:.0f} seconds")


def rules():
    """Name, problem, mean, how it is fitted, and whether SURE claims to be unbiased."""
    problem, mean = setting((), 0.05)
    yield "lasso, alpha 0.05", problem, mean, from_start(initial(problem, 0)[0]), True
    for alpha in (0.02, 0.002):
        problem, mean = setting((8,), alpha)
        at_mean = solve(problem, initial(problem, 0, 10), Options(tol=TOL)).W
        yield f"net, alpha {alpha}, near the mean's", problem, mean, from_start(at_mean), True
        if alpha == 0.002:
            yield f"net, alpha {alpha}, one start", problem, mean, cold(1), False
        yield f"net, alpha {alpha}, best of 10", problem, mean, cold(10), False


def row(
    name: str,
    problem: Problem,
    mean: np.ndarray,
    fit: Callable[[Problem, int], Weights | None],
    claimed: bool,
) -> list[object]:
    """The means over the data sets and their standard errors."""
    found = simulate(problem, mean, fit)
    gap, error = found.sure - found.error, lambda x: x.std(ddof=1) / np.sqrt(len(x))
    off = abs(gap.mean()) / error(gap)
    return [
        name,
        f"{found.sure.mean() / N:.4f}",
        f"{found.error.mean() / N:.4f}",
        f"{gap.mean() / N:+.4f} +- {error(gap) / N:.4f}",
        f"{found.df.mean():.2f}",
        f"{found.covariance.mean():.2f} +- {error(found.covariance):.2f}",
        str(found.lost),
        show.met(off <= 2) if claimed else f"{off:.1f} errors",
    ]
