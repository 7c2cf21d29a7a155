"""What a small fit costs: Iris warm, and in a new process with an empty and with a filled cache."""

import tempfile
import time
from typing import Any

import numpy as np

from benchmarks import cold, data
from benchmarks.suites.report import Table, Target, write
from deepprox import DeepClassifier

WARM, COLD = 0.050, 2.0
ABOUT = (
    "Iris 4-10-3 sigmoid with one start. Warm: the median of 20 fits with different seeds in one process, "
    "after one of each. New process: imports (of deepprox and all that it needs), first fit to data from a "
    "file, and their sum, with an empty and with a filled cache of programs (the median of three). Both "
    "clocks: the wall's, which a busy machine makes "
    "longer, and the processor's, which adds up two threads. A target is judged by the shorter."
)
CLOCKS = {"wall": "perf_counter", "CPU": "process_time"}


def warm_fits(repeats: int) -> dict[str, list[float]]:
    """Seconds of fits whose programs are compiled, by both clocks."""
    split, seconds = data.iris(), {name: [] for name in CLOCKS}
    for counted in (False, True):
        for seed in range(repeats):
            model = DeepClassifier((10,), link="sigmoid", alpha=0.67 / 105, random_state=seed)
            began = {name: getattr(time, clock)() for name, clock in CLOCKS.items()}
            model.fit(split.X, split.y)
            if counted:
                for name, clock in CLOCKS.items():
                    seconds[name].append(getattr(time, clock)() - began[name])
    return seconds


def new_processes(repeats: int, clock: str) -> dict[str, list[float]]:
    """Imports, first fit and both, with an empty and with a filled cache."""
    with tempfile.TemporaryDirectory() as cache:
        runs = [cold.run(cache, clock) for _ in range(1 + repeats)]
    parts = [[imports, first, imports + first] for _, _, imports, first, _ in runs]
    return {"empty cache": parts[0], "filled cache": np.median(parts[1:], axis=0).tolist()}


def main(quick: bool = False, full: bool = False) -> None:
    """Warm fits, then new processes."""
    warm = warm_fits(5 if quick else 20)
    tell(
        {
            "warm": warm,
            "new process": {name: new_processes(1 if quick else 3, clock) for name, clock in CLOCKS.items()},
        }
    )


def tell(raw: dict[str, Any]) -> None:
    """Two tables and two targets of stored times."""
    warm, new = raw["warm"], raw["new process"]
    middle = min(float(np.median(seconds)) for seconds in warm.values())
    total = min(found["filled cache"][-1] for found in new.values())
    write(
        "start_up",
        ABOUT,
        [
            Table(
                "Iris, new process (s)",
                ["", "imports", "first fit", "both"],
                [[f"{cache}, {name}", *row] for name, found in new.items() for cache, row in found.items()],
            ),
            Table(
                "Iris, warm fits (s)",
                ["", "least", "median", "most"],
                [[name, min(s), float(np.median(s)), max(s)] for name, s in warm.items()],
            ),
        ],
        [
            Target(f"warm Iris fit under {1000 * WARM:g} ms", f"{1000 * middle:.0f} ms", middle < WARM),
            Target(f"cold start with a filled cache under {COLD:g} s", f"{total:.2f} s", total < COLD),
        ],
        raw,
    )
