"""Degrees of freedom: four methods on certified networks, and closed forms where there are some."""

import time

import numpy as np
from sklearn.linear_model import Lasso, Ridge

from benchmarks import data, show
from deepprox import DeepClassifier, DeepRegressor
from deepprox.runtime import precision
from deepprox.statistics import refits
from deepprox.statistics.degrees_of_freedom import degrees_of_freedom
from deepprox.struct import replace

DRAWS = {"hutchinson": 200, "perturbation": 200, "bootstrap": 400}
ERRORS = 3  # standard errors within which two methods agree


def simulated(n=150, p=5, seed=0):
    """A smooth response of four inputs with noise of standard deviation 0.5."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    mean = 2 * np.tanh(X[:, 0] + X[:, 1]) - 1.5 * np.tanh(2 * X[:, 2] * (X[:, 3] > 0)) + X[:, 3]
    return X, mean + 0.5 * rng.normal(size=n)


def closed_forms():
    """The lasso and ridge: their degrees of freedom are known."""
    X, y = simulated(p=20)
    X = (X - X.mean(0)) / X.std(0)
    one = {"hidden_layer_sizes": (), "standardize": False, "tol": 1e-9}
    lasso = DeepRegressor(alpha=0.1, **one).fit(X, y)
    count = np.count_nonzero(Lasso(0.1, tol=1e-14, max_iter=10**6).fit(X, y).coef_) + 1
    yield "lasso, 150 x 20, non-zeros of scikit-learn", lasso, count
    ridge = DeepRegressor(penalty="l2", alpha=0.1, **one).fit(X, y)
    assert np.allclose(ridge.coefs_[0][:, 0], Ridge(15.0).fit(X, y).coef_, atol=1e-8)
    d = np.linalg.svd(X, compute_uv=False)
    yield "ridge, 150 x 20, sum d^2 / (d^2 + n alpha) + 1", ridge, 1 + (d**2 / (d**2 + 15)).sum()


def networks():
    """Certified fits of several kinds."""
    X, y = simulated()
    for alpha in (0.002, 0.01, 0.04):
        model = DeepRegressor((8, 5), link="tanh", alpha=alpha, n_init=5, random_state=0, tol=1e-8)
        yield f"5-8-5-1 tanh, squared, alpha {alpha}", model.fit(X, y)
    model = DeepRegressor((8,), alpha=0.03, n_init=5, random_state=0, tol=1e-7)
    yield "5-8-1 ReLU, squared, alpha 0.03", model.fit(X, y)
    counts = np.random.default_rng(1).poisson(np.exp(y / 2))
    model = DeepRegressor((6,), link="tanh", loss="poisson", alpha=0.02, n_init=5, random_state=0, tol=1e-8)
    yield "5-6-1 tanh, Poisson, alpha 0.02", model.fit(X, counts)
    iris = data.iris()
    model = DeepClassifier((10,), link="sigmoid", alpha=0.02, n_init=5, random_state=0, tol=1e-8)
    yield "Iris 4-10-3 sigmoid, softmax, alpha 0.02", model.fit(iris.X, iris.y)


def around(model, n_draws=100) -> tuple[float, float]:
    """The mean of the exact degrees of freedom over responses drawn from the fit, and its standard error.

    For squared loss it is what the bootstrap estimates, as long as no refit jumps to another minimum.
    """
    with precision(np.float64):
        problem, W, n, rng = (
            model.fitted_.problem(),
            model.fitted_.W,
            model.fitted_.n,
            np.random.default_rng(1),
        )
        mu = np.asarray(problem.loss.mean(refits.eta_of(problem, W)))
        df = model.degrees_of_freedom("exact").value
        sigma = np.sqrt(2 * n * model.loss_ / (n - df)) if problem.loss.free_scale else 1.0
        counts = np.maximum(n * np.asarray(problem.weight)[:, None], 1.0)
        found = []
        for _ in range(n_draws):
            again = replace(problem, y=mu + sigma * (problem.loss.draw(rng, mu, counts) - mu))
            end, solved = refits.refit(again, W, again.y, model.tol, near=False)
            found.append(degrees_of_freedom(again, end, n, "exact", tol=1e-6).value if solved else np.nan)
    found = np.array(found)[np.isfinite(found)]
    return found.mean(), found.std(ddof=1) / np.sqrt(len(found))


def main() -> None:
    """Two tables."""
    rows = []
    for name, model, known in closed_forms():
        df = model.degrees_of_freedom("exact").value
        rows.append([name, known, f"{df:.10g}", abs(df - known), show.met(abs(df - known) < 1e-8)])
    show.table("Closed forms", ["", "known", "exact", "difference", ""], rows)

    rows, seconds = [], dict.fromkeys(DRAWS, 0.0)
    for name, model in networks():
        exact = model.degrees_of_freedom("exact")
        found = {}
        for method, n_draws in DRAWS.items():
            began = time.perf_counter()
            df = model.degrees_of_freedom(method, n_draws=n_draws, random_state=0)
            found[method] = df.value, df.standard_error if df.defined else np.nan
            seconds[method] += time.perf_counter() - began
        found["around"] = around(model)
        here = [
            abs(found[m][0] - exact.value) <= ERRORS * found[m][1] for m in ("hutchinson", "perturbation")
        ]
        gap, error = (
            found["bootstrap"][0] - found["around"][0],
            np.hypot(found["bootstrap"][1], found["around"][1]),
        )
        agree = all(here) and (not model.fitted_.loss.free_scale or abs(gap) <= ERRORS * error)
        live = f"{exact.n_live}" + (f", {exact.n_held} held" if exact.n_held else "")
        cells = [f"{value:.2f} +- {error:.2f}" for value, error in found.values()]
        rows.append([name, live, f"{exact.value:.2f}", *cells, show.met(agree)])
    drawn = (f"{method} ({n})" for method, n in DRAWS.items())
    columns = ["", "live", "exact", *drawn, "exact, mean over draws", ""]
    show.table(f"Four methods, agreement within {ERRORS} standard errors", columns, rows)
    show.console.print(
        "Hutchinson and perturbation are compared with exact; the bootstrap, for squared loss, with the mean "
        "of exact over responses drawn from the fit."
    )
    show.console.print("seconds: " + ", ".join(f"{name} {t:.0f}" for name, t in seconds.items()))
