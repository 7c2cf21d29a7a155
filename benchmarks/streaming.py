"""Rows that do not fit in memory: gigabytes of Parquet within ``max_memory``, and what a row costs.

``python -m benchmarks streaming --gigabytes=5 --memory=2GB`` says how much; 0.25 otherwise.
The rows are written to the folder of temporary files, and the fit needs twice as much again there.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks import show

COLUMNS = 50
SMALL = 0.25  # gigabytes that are fitted both ways
GROUP = 2**16  # rows of a row group
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
                  model.solution_.status, model._n]))
"""


def write(folder: Path, gigabytes: float) -> int:
    """Rows of numbers in double precision, so many gigabytes of them; the number of rows."""
    n = max(int(gigabytes * 2**30 / (8 * (COLUMNS + 1))) // GROUP, 1) * GROUP
    rng, names = np.random.default_rng(0), [f"x{k}" for k in range(COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    with parquet.ParquetWriter(
        folder / "rows.parquet", schema, compression="none", use_dictionary=False
    ) as file:
        for _ in range(n // GROUP):
            X = rng.normal(size=(GROUP, COLUMNS))
            y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.normal(size=GROUP)
            file.write_table(pa.table([*X.T.copy(), y], schema=schema), row_group_size=GROUP)
    return n


def fit(folder: Path, kind: str, memory: str) -> list:
    """Seconds, peak of memory in GB, passes and the rest of one fit in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), kind, memory, "0.002"], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """A quarter of a gigabyte in memory and streamed, then all of it."""
    options = dict(one[2:].split("=") for one in sys.argv if one.startswith(("--gigabytes=", "--memory=")))
    gigabytes, memory = float(options.get("gigabytes", SMALL)), options.get("memory", "2GB")
    cases = [("in memory", min(SMALL, gigabytes)), ("streamed", min(SMALL, gigabytes))]
    rows, costs = [], []
    for kind, size in cases + [("streamed", gigabytes)] * (gigabytes > SMALL):
        with tempfile.TemporaryDirectory() as folder:
            n = write(Path(folder), size)
            seconds, peak, *facts, certificate, status, seen = fit(Path(folder), kind, memory)
        assert n == seen
        costs.append(1e6 * seconds / n)
        within = show.met(peak <= float(memory.removesuffix("GB"))) if kind == "streamed" else ""
        cells = [f"{kind}, {size:g} GB", n, seconds, costs[-1], *facts, f"{certificate:.1e}", status, peak]
        rows.append([*cells, within])
    columns = [
        "rows",
        "seconds",
        "µs a row",
        "passes",
        "steps",
        "objective",
        "certificate",
        "status",
        "peak GB",
    ]
    show.table(f"Rows of {COLUMNS} inputs, 20 hidden units, within {memory}", ["", *columns, ""], rows)
    ratio = costs[1] / costs[0]
    verdict = [["seconds a row", ratio, "< 3", show.met(ratio < 3)]]
    show.table("A streamed row against one in memory", ["", "times", "target", ""], verdict)
