"""How the time of a fit grows with observations, width and depth: exponents fitted on logarithmic scales."""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import show
from benchmarks.suites.report import Table, Target, picture, write
from deepprox import DeepClassifier

ITERATIONS, ABOUT_ONE = 140, (0.8, 1.25)
GRID = {
    "observations": [2048, 4096, 8192, 16384, 32768],
    "width": [32, 64, 128, 256],
    "depth": [1, 2, 4, 8],
}
ABOUT = (
    f"A teacher network of ten classes on 64 Gaussian inputs; every fit takes {ITERATIONS} iterations, 40 "
    "of them sweeps (no batches at any n), in double precision and is warm. n = 2048, width 64 and depth 1 "
    "where they do not vary. Seconds are those of the process on all its threads, so that a busy machine "
    "does not change them."
)


def seconds_of(n: int, width: int, depth: int) -> float:
    """A warm fit: the least of two."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 64))
    y = (np.maximum(X @ rng.normal(size=(64, 32)), 0) @ rng.normal(size=(32, 10))).argmax(1)
    # so little penalty that nothing is cut away: the whole network is worked on
    model = DeepClassifier(
        (width,) * depth, alpha=1e-5, batch_size=None, tol=1e-12, max_iter=ITERATIONS, random_state=0
    )
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(3):
            began = time.process_time()
            model.fit(X, y)
            times.append((time.process_time() - began) * ITERATIONS / model.n_iter_)
    return min(times[1:])


def exponent(xs: list[int], ys: list[float]) -> float:
    """The slope of ``log y`` over ``log x``."""
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])


def main(quick: bool = False, full: bool = False) -> None:
    """Three lines and their slopes."""
    base, raw = {"n": 2048, "width": 64, "depth": 1}, {}
    for what, values in GRID.items():
        grid, name, times = values[:2] if quick else values, "n" if what == "observations" else what, []
        for value in grid:
            show.console.print(f"[dim]growth: {what} {value}[/]")
            times.append(seconds_of(**base | {name: value}))
        raw[what] = {"values": grid, "seconds": times}
    tell(raw)


def tell(raw: dict[str, Any]) -> None:
    """The table, the target and the picture of stored times."""
    slopes = {what: exponent(grown["values"], grown["seconds"]) for what, grown in raw.items()}
    rows = [
        [
            what,
            ", ".join(map(str, grown["values"])),
            ", ".join(f"{t:.3g}" for t in grown["seconds"]),
            slopes[what],
        ]
        for what, grown in raw.items()
    ]
    (low, high), found = ABOUT_ONE, slopes["observations"]
    target = Target(f"exponent in n about 1 ({low:g} to {high:g})", f"{found:.2f}", low <= found <= high)
    write("growth", ABOUT, [Table("Growth", ["", "values", "CPU s", "exponent"], rows)], [target], raw)
    panels = [
        {"title": f"{what}: exponent {slopes[what]:.2f}", "x": what, "y": "CPU seconds of a fit",
         "curves": [("deepprox", grown["values"], grown["seconds"])], "xscale": "log", "yscale": "log",
         "plain": True, "ticks": grown["values"]}
        for what, grown in raw.items()
    ]  # fmt: skip
    picture("growth", panels)
