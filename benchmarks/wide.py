"""Networks of many inputs, sparse ones: seconds and memory of a fit in a new process, and what it ends at."""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks import show

TASKS = [
    (5000, 20_000, "l1", 0.02),
    (5000, 20_000, "group_inputs", 0.05),
    (2000, 100_000, "l1", 0.05),
    (2000, 100_000, "group_inputs", 0.1),
]
STORED = 0.005  # share of the entries
SCRIPT = """
import json, sys, time, warnings
from pathlib import Path
import numpy as np, scipy.sparse
from deepprox import DeepRegressor
warnings.simplefilter("ignore")
n, p, stored, penalty, alpha = *map(int, sys.argv[1:3]), float(sys.argv[3]), sys.argv[4], float(sys.argv[5])
rng = np.random.default_rng(0)
columns = np.sort(rng.integers(p, size=(n, int(stored * p))), axis=1)
X = scipy.sparse.csr_array(
    (rng.lognormal(size=columns.size), columns.ravel(), np.arange(n + 1) * columns.shape[1]), shape=(n, p)
)
X.sum_duplicates()
Z = X[:, rng.choice(p, 20, replace=False)].toarray()
Z = (Z - Z.mean(0)) / Z.std(0)
y = np.maximum(Z @ rng.normal(size=(20, 3)), 0) @ [1.0, -1.0, 1.5] + Z @ rng.normal(size=20) / 2
y = y / y.std() + 0.3 * rng.normal(size=n)
def memory(name):
    return int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0]) / 1024
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before, began = memory("VmRSS"), time.process_time()
model = DeepRegressor((20,), penalty=penalty, alpha=alpha, random_state=0).fit(X, y)
seconds, found = time.process_time() - began, model.solution_
data = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
print(json.dumps([seconds, data, memory("VmHWM") - before, found.status, found.certificate,
                  int(model.selected_features_.sum()), found.n_iter]))
"""


def run(task: tuple[int, int, str, float], cache: str) -> list:
    """What one fit in a new process says of itself."""
    environment = os.environ | {"XDG_CACHE_HOME": cache, "JAX_PLATFORMS": "cpu"}
    n, p, penalty, alpha = map(str, task)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, n, p, str(STORED), penalty, alpha], env=environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Every task with nothing cached and then with its programs cached."""
    rows = []
    for task in TASKS:
        with tempfile.TemporaryDirectory() as cache:
            for name in ("empty", "filled"):
                seconds, data, peak, *end = run(task, cache)
                fits = peak <= 3 * data + 300
                rows.append(
                    [f"{task[0]} x {task[1]}", *task[2:], name, seconds, data, peak, *end, show.met(fits)]
                )
    show.table(
        f"Sparse tables ({STORED:.1%} stored), 20 ReLU units, one response",
        [
            "table", "penalty", "alpha", "cache", "CPU s", "data MB", "peak MB", "status", "certificate",
            "inputs", "steps", "within 3 x data + 300 MB",
        ],
        rows,
    )  # fmt: skip
