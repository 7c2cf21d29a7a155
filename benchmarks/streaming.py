"""Rows that do not fit in memory: gigabytes of Parquet within ``max_memory``, and what a row costs.

``python -m benchmarks streaming --gigabytes=5 --memory=2GB`` says how much; 0.25 otherwise.
The rows are written to the folder of temporary files, and the fit needs twice as much again there.
The last table is one pass of ``partial_fit`` over a stream, against fits of all rows and of the first batch.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks import show
from deepprox import DeepClassifier, DeepRegressor
from deepprox.estimators._predict import losses_of

COLUMNS, UNITS = 50, 12  # the rows are those of a network with so many hidden units, and noise
ALPHA = 1e-3  # weak enough for more than ten units to live
SMALL = 0.25  # gigabytes that are fitted both ways
GROUP = 2**16  # rows of a row group
STREAMS = [
    ("numbers", (20,), "relu", 200, 100),
    ("classes", (20,), "relu", 200, 100),
    ("classes", (10, 10), "tanh", 500, 40),
    ("numbers", (20, 10), "relu", 500, 100),
]
SCRIPT = """
import json, resource, sys, time
import deepprox
from deepprox.streaming import fit_stream, fitting
folder, kind, memory, alpha = sys.argv[1:]
model = deepprox.DeepRegressor((20,), alpha=float(alpha), random_state=0)
began = time.perf_counter()
if kind == "streamed":
    fit_stream(model, folder, "y", max_memory=memory, scratch=folder)
    passes = model.n_passes_
else:
    import pandas as pd
    table = pd.read_parquet(folder)
    model.fit(table.drop(columns="y"), table.y)
    passes = 0
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([seconds, peak, passes, model.n_iter_, model.objective_, model.solution_.certificate,
                  model.solution_.status, model.fitted_.n, int(model.live_[1].sum())]))
"""


def write(folder: Path, gigabytes: float) -> int:
    """Rows of numbers in double precision, so many gigabytes of them; the number of rows."""
    n = max(int(gigabytes * 2**30 / (8 * (COLUMNS + 1))) // GROUP, 1) * GROUP
    rng, names = np.random.default_rng(0), [f"x{k}" for k in range(COLUMNS)]
    reads = np.array([rng.choice(COLUMNS, 3, replace=False) for _ in range(UNITS)])
    slopes, shifts = rng.normal(size=reads.shape), rng.normal(size=UNITS) / 2
    sides = rng.choice([-1, 1], UNITS)
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    with parquet.ParquetWriter(
        folder / "rows.parquet", schema, compression="none", use_dictionary=False
    ) as file:
        for _ in range(n // GROUP):
            X = rng.normal(size=(GROUP, COLUMNS))
            units = np.maximum(np.einsum("nuk,uk->nu", X[:, reads], slopes) + shifts, 0)
            y = units @ sides + 0.3 * rng.normal(size=GROUP)
            file.write_table(pa.table([*X.T.copy(), y], schema=schema), row_group_size=GROUP)
    return n


def fit(folder: Path, kind: str, memory: str) -> list:
    """Seconds, peak of memory in GB, passes and the rest of one fit in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), kind, memory, str(ALPHA)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def stream(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 10 inputs, and a number or one of three classes that four of them make."""
    X = rng.normal(size=(n, 10))
    signal = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.normal(size=n)
    return X, signal if kind == "numbers" else np.digitize(signal - 0.8, [-0.7, 0.7])


def streams() -> None:
    """The objective over all rows and the mean loss of new ones, fitted and streamed."""
    rows: list[list[object]] = []
    for kind, hidden, link, batch, count in STREAMS:
        rng = np.random.default_rng(0)
        X, y = stream(kind, batch * count, rng)
        new = stream(kind, 5000, rng)
        settings = {
            "hidden_layer_sizes": hidden,
            "link": link,
            "alpha": 0.003,
            "random_state": 0,
            "tol": 1e-4,
        }
        estimator, classes = (
            (DeepRegressor, {}) if kind == "numbers" else (DeepClassifier, {"classes": [0, 1, 2]})
        )
        moving = estimator(**settings)
        began = time.perf_counter()
        for k in range(0, len(X), batch):
            moving.partial_fit(X[k : k + batch], y[k : k + batch], **classes)
        seconds = time.perf_counter() - began
        models = estimator(**settings).fit(X, y), estimator(**settings).fit(X[:batch], y[:batch]), moving
        cells = [
            f"{losses_of(m, X, y).mean() + m.solution_.penalty:.3f} / {losses_of(m, *new).mean():.3f}"
            for m in models
        ]
        name = f"{kind}, {'-'.join(map(str, hidden))} {link}, {count} of {batch}"
        rows.append([name, *cells, 1e3 * seconds / count])
    columns = ["", "fit of all rows", "fit of the first batch", "partial_fit", "ms a batch"]
    show.table("One pass over a stream: objective over all rows / mean loss of 5000 new ones", columns, rows)


def main() -> None:
    """A quarter of a gigabyte in memory and streamed, then all of it."""
    options = dict(one[2:].split("=") for one in sys.argv if one.startswith(("--gigabytes=", "--memory=")))
    gigabytes, memory = float(options.get("gigabytes", SMALL)), options.get("memory", "2GB")
    cases = [("in memory", min(SMALL, gigabytes)), ("streamed", min(SMALL, gigabytes))]
    rows, costs = [], []
    for kind, size in cases + [("streamed", gigabytes)] * (gigabytes > SMALL):
        with tempfile.TemporaryDirectory() as folder:
            n = write(Path(folder), size)
            seconds, peak, *facts, certificate, status, seen, live = fit(Path(folder), kind, memory)
        assert n == seen
        costs.append(1e6 * seconds / n)
        within = show.met(peak <= float(memory.removesuffix("GB"))) if kind == "streamed" else ""
        cells = [
            f"{kind}, {size:g} GB",
            n,
            seconds,
            costs[-1],
            *facts,
            live,
            f"{certificate:.1e}",
            status,
            peak,
        ]
        rows.append([*cells, within])
    columns = [
        "rows",
        "seconds",
        "µs a row",
        "passes",
        "steps",
        "objective",
        "live units",
        "certificate",
        "status",
        "peak GB",
    ]
    show.table(f"Rows of {COLUMNS} inputs, 20 hidden units, within {memory}", ["", *columns, ""], rows)
    ratio = costs[1] / costs[0]
    verdict = [["seconds a row", ratio, "< 3", show.met(ratio < 3)]]
    show.table("A streamed row against one in memory", ["", "times", "target", ""], verdict)
    streams()
