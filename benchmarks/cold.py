"""What the first fit ever costs: a new process with an empty and with a filled compilation cache."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

from benchmarks import show

SCRIPT = """
import json, sys, time
began = time.perf_counter()
import numpy as np
import sklearn.base
sklearn_ = time.perf_counter() - began
import jax
jax_ = time.perf_counter() - began - sklearn_
from deepprox import DeepClassifier
imports = time.perf_counter() - began
Xy = np.load(sys.argv[1])
X, y = Xy[:, :-1], Xy[:, -1].astype(int)
model = DeepClassifier((10,), link="sigmoid", alpha=0.67 / 150, random_state=0).fit(X, y)
first = time.perf_counter() - began - imports
model.set_params(random_state=1).fit(X, y)
second = time.perf_counter() - began - imports - first
print(json.dumps([sklearn_, jax_, imports, first, second]))
"""


def run(cache: str, clock: str = "perf_counter") -> list[float]:
    """Seconds of one new process by a clock of the module ``time``."""
    environment = os.environ | {"XDG_CACHE_HOME": cache, "JAX_PLATFORMS": "cpu"}
    file = Path(cache, "iris.npy")  # scikit-learn's data sets take a tenth of a second to import
    np.save(file, np.column_stack(load_iris(return_X_y=True)))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("perf_counter", clock), file], env=environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Cold once, warm three times."""
    with tempfile.TemporaryDirectory() as cache:
        cold = run(cache)
        warm = list(np.median([run(cache) for _ in range(3)], axis=0))
    rows = []
    for name, row, target in [("empty cache", cold, 3.0), ("filled cache", warm, 1.0)]:
        total = row[2] + row[3]
        rows.append(
            [name, row[0], row[1], row[2], row[3], total, f"< {target}", row[4], show.met(total < target)]
        )
    show.table(
        "First fit of Iris in a new process (seconds)",
        ["", "import sklearn", "import jax", "all imports", "first fit", "total", "target", "second fit", ""],
        rows,
    )
