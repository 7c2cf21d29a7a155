"""The posterior: calibration by simulation, coverage, averaged probabilities, effective draws a second.

``python -m benchmarks posterior`` takes some minutes, ``--quick`` a fifth of the simulations.
"""

import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from sklearn.datasets import load_diabetes, load_wine
from sklearn.model_selection import KFold

from benchmarks import data, show
from deepprox import DeepClassifier, DeepRegressor
from deepprox.blocks import Dense
from deepprox.links import Tanh
from deepprox.losses import Logistic, Squared
from deepprox.penalties import L1, L2
from deepprox.posterior import nuts, polya_gamma, sample_posterior
from deepprox.posterior.chains import collect
from deepprox.posterior.draws import Diagnostics
from deepprox.posterior.proximal import ProximalLangevin, first_covariance, spread_starts
from deepprox.posterior.sampling import modes
from deepprox.posterior.target import pose
from deepprox.problem import Network, Problem
from deepprox.runtime import keep_programs, precision
from deepprox.solve import Options, initial, solve

QUICK = "--quick" in sys.argv
SIMULATIONS = 40 if QUICK else 200
BINS = 10
RANKS = 99  # thinned draws among which the truth has its rank


# Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari, Gelman 2018): with the truth drawn
# from the prior, its rank among draws of the posterior is uniform.


def simulation(kind: str, rng: np.random.Generator):
    """A problem whose truth came from its prior, the truth, and how many observations it has."""
    if kind == "one block":
        n, hidden, loss, penalty = 40, (), Logistic(), L1(1 / 40)
        draw = lambda shape: rng.laplace(size=shape)  # noqa: E731
    else:
        n, hidden, loss, penalty = 30, (3,), Squared(), L2(1 / 30)
        draw = lambda shape: rng.normal(size=shape)  # noqa: E731
    X = rng.normal(size=(n, 2))
    blocks = tuple(Dense(size, Tanh(), penalty, penalize_bias=True) for size in (*hidden, 1))
    network = Network(blocks)
    W = tuple(draw(shape) for shape in network.shapes(2))
    eta = network.forward(W, jnp.asarray(X))[-1]
    y = loss.draw(rng, np.asarray(loss.mean(eta)), np.ones((n, 1)))
    weight = np.full(n, 1 / n)
    return Problem(network, loss, jnp.asarray(X), jnp.asarray(y), jnp.asarray(weight)), W, n


def ranks_of(kind: str, method: str) -> tuple[np.ndarray, float]:
    """Ranks of true weights, or function values of a network, among thinned draws, and the median R-hat."""
    rng, out, rhats = np.random.default_rng(0), [], []
    for k in range(SIMULATIONS):
        problem, truth, n = simulation(kind, rng)
        found = solve(problem, initial(problem, k, 1), Options(max_iter=500))
        options = {"n_chains": 2, "n_warmup": 500, "n_draws": 500, "seed": k, "method": method}
        draws = sample_posterior(
            problem, found.W, n, sigma=1.0 if problem.loss.free_scale else None, **options
        )
        if kind == "one block":
            values, true = draws.W[0].reshape(len(draws), -1), truth[0].ravel()
            rhats.append(Diagnostics.of(draws.W[0]).rhat.max())
        else:
            points = np.asarray(problem.X)[:5]
            values = draws.outputs(points)[..., 0]
            true = np.asarray(problem.network.forward(truth, jnp.asarray(points))[-1])[:, 0]
            rhats.append(Diagnostics.of(values.reshape(2, 500, -1)).rhat.max())
        thinned = values[np.linspace(0, len(values) - 1, RANKS).astype(int)]
        out.append((thinned < true).sum(0))
    return np.array(out), float(np.median(rhats))


def calibration_by_simulation() -> None:
    """Rank histograms: a chi-squared test of every quantity, and counts within their bands."""
    rows = []
    for kind, method, names in (
        ("one block", "proximal", ["bias", "w1", "w2"]),
        ("one block", "polya-gamma", ["bias", "w1", "w2"]),
        ("2-3-1 tanh", "proximal", [f"eta {i}" for i in range(1, 6)]),
    ):
        began = time.perf_counter()
        ranks, rhat = ranks_of(kind, method)
        seconds = time.perf_counter() - began
        low, high = scipy.stats.binom(SIMULATIONS, 1 / BINS).ppf([0.0005, 0.9995])
        for name, column in zip(names, ranks.T):
            counts = np.bincount(column * BINS // (RANKS + 1), minlength=BINS)
            p = scipy.stats.chisquare(counts).pvalue
            inside = bool(((counts >= low) & (counts <= high)).all())
            bars = " ".join(map(str, counts))
            rows.append(
                [
                    f"{kind}, {method}: {name}",
                    bars,
                    p,
                    f"{rhat:.3f}",
                    f"{seconds:.0f}",
                    show.met(p > 0.001 and inside),
                ]
            )
    title = f"Simulation-based calibration, {SIMULATIONS} data sets: ranks in {BINS} bins, target uniform"
    show.table(title, ["", "counts", "p-value", "median R-hat", "seconds", ""], rows)


# Coverage of 90 % predictive intervals


def held_out_coverage(model, X, y, method: str, folds: int = 5, **options) -> tuple[float, int]:
    """The share of held-out responses within their 90 % intervals, and how many there were."""
    inside = []
    for train, test in KFold(folds, shuffle=True, random_state=0).split(X):
        model.fit(X[train], y[train])
        draws = model.sample_posterior(method, random_state=0, **options)
        low, high = model.predict_interval(X[test], 0.9, posterior=draws)
        inside.append((low <= y[test]) & (y[test] <= high))
    inside = np.concatenate(inside)
    return float(inside.mean()), inside.size


def coverage() -> None:
    """On simulated and on real data, between 87 % and 93 %."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    line = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=1000)
    bent = 2 * np.tanh(X[:, 0] + X[:, 1]) + X[:, 2] + 0.5 * rng.normal(size=1000)
    counts = rng.poisson(np.exp(1 + 0.5 * X[:, 0])).astype(float)
    few = {"n_draws": 500, "n_warmup": 500}
    net = DeepRegressor((4,), link="tanh", alpha=0.005, penalize_bias=True, random_state=0, max_iter=5000)
    diabetes, wine = load_diabetes(return_X_y=True), load_wine().data
    cases = [
        ("simulated line, l1, proximal", DeepRegressor((), alpha=0.01), X, line, "proximal", few),
        (
            "simulated curve, 4-4-1 tanh, proximal",
            net,
            X[:500],
            bent[:500],
            "proximal",
            {**few, "n_chains": 2},
        ),
        (
            "simulated counts, Poisson, Laplace",
            DeepRegressor((), loss="poisson", alpha=0.01),
            X,
            counts,
            "laplace",
            {},
        ),
        ("diabetes, l1, proximal", DeepRegressor((), alpha=1.0), *diabetes, "proximal", few),
        (
            "wine (alcohol), l1, proximal",
            DeepRegressor((), alpha=0.01),
            wine[:, 1:],
            wine[:, 0],
            "proximal",
            few,
        ),
    ]
    rows = []
    for name, model, inputs, response, method, options in cases[:: 2 if QUICK else 1]:
        share, n = held_out_coverage(model, inputs, response, method, **options)
        error = np.sqrt(0.09 / n)
        # counts are whole numbers: an interval of theirs holds at least its probability
        good = share >= 0.87 and (share <= 0.93 or "counts" in name)
        rows.append([name, n, f"{share:.1%}", f"{error:.1%}", show.met(good)])
    show.table(
        "Coverage of 90 % predictive intervals, 5 folds, target 87 % to 93 %",
        ["", "held out", "covered", "standard error", ""],
        rows,
    )


# Averaged probabilities


def calibration_error(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    """The mean gap between confidence and accuracy over bins of equal width."""
    confidence, right = p.max(1), p.argmax(1) == y
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [abs((confidence - right)[which == b].sum()) for b in range(bins)]
    return float(sum(gaps) / len(y))


def scores(p: np.ndarray, y: np.ndarray) -> list[float]:
    """Calibration error, log loss and accuracy."""
    log_loss = -np.log(p[np.arange(len(p)), y]).mean()
    return [calibration_error(p, y), float(log_loss), float((p.argmax(1) == y).mean())]


class Averaged(NamedTuple):
    """A network of digits, how many training rows it is fitted to, and how its posterior is drawn."""

    rows: int
    hidden: tuple[int, ...]
    penalty: str
    alpha: float
    method: str
    vary: str
    fits: int
    n_draws: int

    def __str__(self) -> str:
        sizes = "-".join(map(str, (64, *self.hidden, 10)))
        part = ", last block" if self.vary == "last_block" else ""
        return f"{self.rows} rows, {sizes}, {self.penalty} {self.alpha:g}, {self.method}{part}"

    def measured(self, digits: data.Split) -> tuple[np.ndarray, float]:
        """Scores over (fit, fit or average, score) on the test rows, and the largest R-hat of a fit.

        Every fit has other training rows, drawn anew, and a start of its own.
        """
        found, rhats = [], []
        for k in range(min(self.fits, 2) if QUICK else self.fits):
            rows = np.random.default_rng(k).permutation(len(digits.y))[: self.rows]
            model = DeepClassifier(
                self.hidden,
                link="tanh",
                penalty=self.penalty,
                alpha=self.alpha,
                standardize=False,
                penalize_bias=True,
                random_state=k,
            ).fit(digits.X[rows], digits.y[rows])
            draws = model.sample_posterior(
                self.method, n_chains=2, n_warmup=150, n_draws=self.n_draws, vary=self.vary, random_state=k
            )
            rhats.append(Diagnostics.of(draws.function_values[:, :, ::5]).worst()[0])
            X, y = digits.X_test, digits.y_test
            found.append(
                [scores(model.predict_proba(X), y), scores(model.predict_proba(X, posterior=draws), y)]
            )
        return np.array(found), max(rhats)


AVERAGED = (
    Averaged(300, (10,), "l1", 1e-4, "nuts", "last_block", 6, 300),
    Averaged(300, (10,), "l1", 1e-3, "nuts", "last_block", 6, 300),
    Averaged(300, (6,), "l2", 1e-5, "nuts", "last_block", 6, 300),
    Averaged(1000, (20,), "l2", 3e-5, "nuts", "last_block", 4, 150),
    Averaged(300, (20,), "l2", 3e-3, "nuts", "all", 2, 150),
    Averaged(1000, (), "l2", 1e-4, "nuts", "all", 2, 150),
    Averaged(300, (10,), "l1", 1e-4, "laplace", "all", 2, 300),
)


def averaged_probabilities() -> None:
    """On digits: the calibration error of averaged probabilities against that of the fit."""
    digits, lines = data.digits(), []
    for case in AVERAGED[: 1 if QUICK else None]:
        began = time.perf_counter()
        found, rhat = case.measured(digits)
        seconds = time.perf_counter() - began
        fit, average = found.mean(0)
        gain = found[:, 1, 0] - found[:, 0, 0]
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        cells = [f"{a:.4f} -> {b:.4f}" for a, b in zip(fit, average)]
        below = show.met(gain.mean() + 2 * error < 0)
        lines.append(
            [
                str(case),
                len(gain),
                *cells,
                f"{gain.mean():+.4f} ({error:.4f})",
                f"{rhat:.3f}",
                f"{seconds:.0f}",
                below,
            ]
        )
    columns = [
        "fit -> average",
        "fits",
        "error",
        "log loss",
        "accuracy",
        "gain (its error)",
        "R-hat",
        "s",
        "",
    ]
    title = "Digits: calibration error on 540 test rows, target: two standard errors below that of the fit"
    show.table(title, columns, lines)


# Speed


def speed_of(sampler, target, n_warmup: int, n_draws: int) -> tuple[float, float, float]:
    """Fewest effective draws a second of weights and function values after warm-up, and the worst R-hat."""
    collect(sampler, n_warmup, 50)
    began = time.perf_counter()
    w = collect(sampler, 0, n_draws)[0]["w"]
    seconds = time.perf_counter() - began
    X = target.problem.X[:: max(len(target.problem.X) // 20, 1)]
    network, mean = target.problem.network, target.problem.loss.mean
    forward = jax.jit(jax.vmap(jax.vmap(lambda v: mean(network.forward(target.weights(v), X)[-1]))))
    values = np.asarray(forward(w))
    of_values, of_weights = Diagnostics.of(values), Diagnostics.of(w)
    return of_weights.ess_bulk.min() / seconds, of_values.ess_bulk.min() / seconds, of_values.rhat.max()


def speed() -> None:
    """Against NumPyro's NUTS on the same density, compiled programs only, in one run."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 10))
    y = (X[:, :3].sum(1) + rng.logistic(size=500) > 0).astype(int)
    iris = data.iris()
    net = {"link": "sigmoid", "alpha": 0.67 / 105, "penalize_bias": True, "random_state": 0}
    fits = {
        "logistic, 10 inputs, l2": DeepClassifier((), loss="logistic", penalty="l2", alpha=0.002).fit(X, y),
        "Iris 4-10-3, l2": DeepClassifier((10,), penalty="l2", **net).fit(iris.X, iris.y),
        "Iris 4-10-3, l1": DeepClassifier((10,), **net).fit(iris.X, iris.y),
    }
    rows = []
    for name, model in list(fits.items())[: 1 if QUICK else 3]:
        target, deep = pose(model.fitted_.problem(), model.fitted_.W, model.fitted_.n), "Iris" in name
        covariance = first_covariance(target)
        starts = spread_starts(target, modes(target.problem, model.fitted_.W, 4, 0), covariance, 0)
        samplers = {
            "NUTS": (nuts.NUTS(target, starts, 0, 200 if deep else 500), (200, 100) if deep else (500, 1000)),
            "proximal": (ProximalLangevin(target, starts, covariance, 0), (1000, 1000)),
        }
        if not deep:
            samplers["Polya-Gamma"] = polya_gamma.PolyaGamma(target, starts, 0), (100, 500)
        base = None
        for kind, (sampler, (n_warmup, n_draws)) in samplers.items():
            of_weights, of_values, rhat = speed_of(sampler, target, n_warmup, n_draws)
            base = base or of_values
            rows.append([f"{name}: {kind}", of_weights, of_values, f"{of_values / base:.2f}", f"{rhat:.3f}"])
    columns = ["", "weights", "function values", "times NUTS", "R-hat of values"]
    show.table("Fewest effective draws a second, 4 chains", columns, rows)


def main() -> None:
    """Four tables."""
    keep_programs()
    with precision(np.float64):
        speed()
        calibration_by_simulation()
        coverage()
        averaged_probabilities()
