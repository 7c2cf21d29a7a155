"""One block on wide, tall and sparse data: CPU seconds to a relative gap of 1e-6, in one thread.

Every system is timed over its tolerances, each time from the beginning, and judged by the same function. The
data are drawn here; skglm, celer and scikit-learn run in the environment that ``make peers`` makes.
"""

import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from benchmarks import show
from benchmarks.paths import PEERS
from deepprox import DeepClassifier, DeepRegressor

GAP, REPEATS = 1e-6, 5
TOLERANCES = [10.0**-k for k in range(3, 9)]
# data, what is fitted, share of the strength that leaves nothing, times the fastest that are near enough
TASKS = [
    ("wide", "lasso", 0.1, 2.0),
    ("wide", "elastic net", 0.1, 2.0),
    ("wide", "binary", 0.1, 2.0),
    ("tall", "lasso", 0.02, 2.0),
    ("tall", "mcp", 0.02, 2.0),
    ("tall", "binary", 0.02, 2.0),
    ("breast cancer", "lasso", 0.02, 2.0),
    ("breast cancer", "binary", 0.02, 2.0),
    ("sparse", "lasso", 0.2, 3.0),
    ("sparse", "binary", 0.02, 3.0),
]
NAMED = {"lasso": "l1", "binary": "l1", "elastic net": "elasticnet", "mcp": "mcp"}


def scaled(a):
    """Mean 0 and standard deviation 1, column by column."""
    return (a - a.mean(0)) / a.std(0)


def dense(rng, n, p, groups, live, noise):
    """Columns in groups that go together, and a response of some of them."""
    X = rng.normal(size=(n, groups))[:, rng.integers(0, groups, p)] + rng.normal(size=(n, p))
    eta = scaled(X)[:, rng.choice(p, live, replace=False)] @ rng.normal(size=live)
    return np.asfortranarray(scaled(X)), eta, noise * eta.std()


def drawn(name):
    """Inputs, a response, and classes."""
    rng = np.random.default_rng(0)
    if name == "breast cancer":
        X, classes = load_breast_cancer(return_X_y=True)
        return np.asfortranarray(scaled(X)), scaled(classes + 0.0), classes + 0.0
    if name == "sparse":
        n, p = 5000, 19_574
        entries = int(0.005 * n * p)
        columns = (p * rng.random(entries) ** 2).astype(np.int32)  # some words are frequent
        X = normalize(
            scipy.sparse.csr_array(
                (np.ones(entries), (rng.integers(0, n, entries, np.int32), columns)), (n, p)
            )
        )
        eta = X[:, rng.choice(p // 4, 200, replace=False)] @ rng.normal(size=200)
        noise = 0.5 * eta.std()
    else:
        X, eta, noise = dense(
            rng, *((500, 5000, 40, 50, 0.3) if name == "wide" else (20_000, 200, 20, 40, 1.0))
        )
    y = eta + noise * rng.normal(size=len(eta))
    return X, scaled(y), (y > np.median(y)) + 0.0


def objective(X, y, kind, alpha, w, b):
    """What all minimise."""
    eta, size = X @ w + b, np.abs(w)
    loss = np.logaddexp(0, eta) - y * eta if kind == "binary" else (eta - y) ** 2 / 2
    bent = np.where(size < 3 * alpha, size - size**2 / (6 * alpha), 1.5 * alpha)
    charge = {"elastic net": size / 2 + size**2 / 4, "mcp": bent}.get(kind, size)
    return float(loss.mean() + alpha * charge.sum())


def timed(fit):
    """The median of some calls after the first, by the processor's clock."""
    seconds, found = [], fit()
    for _ in range(REPEATS):
        began = time.process_time()
        found = fit()
        seconds.append(time.process_time() - began)
    return float(np.median(seconds)), found


def ours(X, y, kind, alpha):
    """Seconds and objective at every tolerance."""
    rows = []
    for tol in TOLERANCES:
        given = {"penalty": NAMED[kind], "alpha": alpha, "standardize": False, "tol": tol, "random_state": 0}
        model = (
            DeepClassifier((), loss="logistic", **given) if kind == "binary" else DeepRegressor((), **given)
        )
        with threadpool_limits(1):
            seconds, fitted = timed(lambda model=model: model.fit(X, y))
        w, b = fitted.coefs_[0][:, 0], fitted.intercepts_[0][0]
        rows.append((seconds, objective(X, y, kind, alpha, w, b)))
    return rows


def theirs(X, y, kind, alpha):
    """The same of the others, run by their own Python."""
    with tempfile.TemporaryDirectory() as folder:
        sparse = scipy.sparse.issparse(X)
        scipy.sparse.save_npz(f"{folder}/X.npz", X) if sparse else np.save(f"{folder}/X.npy", X)
        np.save(f"{folder}/y.npy", y)
        done = subprocess.run(
            [PEERS, "-m", "benchmarks.peer_columns", folder, kind, repr(alpha), *map(repr, TOLERANCES)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[1],
        )
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        name: [(seconds, objective(X, y, kind, alpha, np.array(w), b)) for seconds, w, b in rows]
        for name, rows in found.items()
    }


def main() -> None:
    """A row for every task."""
    if not PEERS.exists():
        raise SystemExit("skglm and celer are not installed: run `make peers` first.")
    rows = []
    for name, kind, share, near in TASKS:
        X, y, classes = drawn(name)
        y = classes if kind == "binary" else y
        alpha = share * float(np.abs(X.T @ (y - y.mean())).max()) / len(y)
        found = {"deepprox": ours(X, y, kind, alpha)} | theirs(X, y, kind, alpha)
        best = min(value for each in found.values() for _, value in each)
        reached = {
            system: min((s for s, value in each if value <= best * (1 + GAP)), default=np.inf)
            for system, each in found.items()
        }
        mine = reached.pop("deepprox")
        fastest = min(reached, key=lambda system: reached[system])
        ratio = mine / reached[fastest]
        rows.append([f"{name}, {kind}", mine, reached[fastest], fastest, ratio, show.met(ratio <= near)])
    show.table(
        f"One block, CPU seconds to a gap of {GAP:g}, one thread",
        ["", "deepprox", "fastest other", "which", "times", "within 2 (sparse: 3)"],
        rows,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    show.console.print(f"The largest memory of this process, all tasks together: {peak:.0f} MB.")


if __name__ == "__main__":
    main()
