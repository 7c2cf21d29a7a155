"""What the first fit to a table costs in a new process: with nothing cached, and warm from other tables."""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.suites.report import Table, Target, write

WARM, COLD, PROGRAMS = 3.0, 10.0, 6
OTHERS = [(2000, 50, 3), (1200, 20, 4)]
UNSEEN = [(1800, 44, 3), (1500, 38, 3), (1500, 38, 4), (1100, 33, 3)]
ABOUT = (
    "A classifier with 50 ReLU units and default settings on tables of random numbers; CPU seconds of all "
    "threads in the first `fit` of a new process, over imports, and in a second one from another start. With "
    f"nothing cached, and with a cache that holds the programs of fits to {OTHERS} (rows, inputs, classes). "
    "Programs are those that were compiled, and those that were read from the cache."
)
SCRIPT = """
import json, sys, time
import numpy as np
import jax
from deepprox import DeepClassifier
told = []
jax.monitoring.register_event_listener(lambda event, **_: told.append(event))
jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: told.append(event))
n, p, k = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
X, W = rng.normal(size=(n, p)), rng.normal(size=(p, k))
y = (np.tanh(X) @ W + rng.gumbel(size=(n, k))).argmax(1)
began = time.process_time()
DeepClassifier((50,), random_state=0).fit(X, y)
first = time.process_time()
every = told.count("/jax/core/compile/backend_compile_duration")
read = told.count("/jax/compilation_cache/cache_hits")
DeepClassifier((50,), random_state=1).fit(X, y)
print(json.dumps([first - began, time.process_time() - first, every - read, read]))
"""


def run(table: tuple[int, int, int], cache: str) -> list[float]:
    """CPU seconds of the first fit and of a second, and how many programs the first compiled and read."""
    environment = os.environ | {"XDG_CACHE_HOME": cache, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, table)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def main(quick: bool = False, full: bool = False) -> None:
    """Each table with nothing cached, and with a cache that knows the others."""
    rows = []
    for table in UNSEEN[:2] if quick else UNSEEN:
        with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as cache:
            for other in OTHERS:
                run(other, cache)
            rows.append([table, run(table, empty), run(table, cache)])
    tell({"tables": rows})


def tell(raw: dict[str, Any]) -> None:
    """A table and targets of stored numbers."""
    rows = [
        [" x ".join(map(str, table[:2])) + f", {table[2]} classes", *cold[:3], *warm[:1], *warm[2:]]
        for table, cold, warm in raw["tables"]
    ]
    cold, warm = (max(row[k][0] for row in raw["tables"]) for k in (1, 2))
    programs = max(int(row[1][2]) for row in raw["tables"])
    write(
        "first_fits",
        ABOUT,
        [
            Table(
                "First fits (CPU s)",
                ["table", "nothing cached", "second fit", "compiled", "warm cache", "compiled", "read"],
                rows,
            )
        ],
        [
            Target(f"unseen shape, warm cache, under {WARM:g} CPU s", f"at most {warm:.1f} s", warm < WARM),
            Target(f"nothing cached under {COLD:g} CPU s", f"at most {cold:.1f} s", cold < COLD),
            Target(f"at most {PROGRAMS} programs", f"{programs}", programs <= PROGRAMS),
        ],
        raw,
    )
