"""All 60 000 images of Fashion-MNIST on the processor, in single precision: half an hour on two cores."""

from typing import Any

from benchmarks.suites import measure
from benchmarks.suites.report import Table, picture, write
from benchmarks.suites.systems import OURS, PEERS, System
from benchmarks.suites.tasks import FASHION, NO_FASHION, fashion_task

SYSTEMS = (
    System("deepprox", "ours", "deepprox_rough", OURS, (8, 15, 30, 60, 110, 210)),
    System("SciPy L-BFGS-B on W+ - W-", "ours", "l_bfgs_b_single", OURS, (50, 150, 300)),
    System("PyTorch proximal Adam", "gradient", "proximal_adam", PEERS, (2, 5, 15, 45)),
    System("PyTorch Adam", "gradient", "adam", PEERS, (2, 5, 15)),
    System("scikit-learn MLP adam", "gradient", "mlp_adam", PEERS, (15,)),
)
ABOUT = (
    "784-100-10 ReLU, gamma 1 on the sum of the losses, 60 000 rows to train and 10 000 to test. An "
    "effort is a number of iterations or epochs, each run from the beginning (up to 60, iterations of "
    "deepprox are 50 steps of its batch phase each), one thread, by the processor's own clock."
)


def main(quick: bool = False, full: bool = False) -> None:
    """One table and one picture; ``quick`` takes 3000 images."""
    if not FASHION.exists():
        raise SystemExit(NO_FASHION)
    task = fashion_task(3000 if quick else 60_000, (100,), 1.0)
    runs = [measure.warm(system, task, range(1), 1, 60 if quick else 600) for system in SYSTEMS]
    told = [{"system": run.system.name, "points": run.points, "trouble": run.trouble} for run in runs]
    tell({"task": task.name, "runs": told})


def tell(raw: dict[str, Any]) -> None:
    """The table, and objective and accuracy against time."""
    rows = []
    for run in raw["runs"]:
        for p in run["points"]:
            numbers = p["seconds"], p["objective"], p["nonzero"], 100 * p["accuracy"]
            rows.append([run["system"], int(p["effort"]), *numbers])
        if run["trouble"]:
            rows.append([run["system"], run["trouble"], "", "", "", ""])
    columns = ["system", "effort", "warm CPU s", "objective", "non-zeros", "% test"]
    write("fashion_full", ABOUT, [Table(raw["task"], columns, rows)], [], raw)
    panels = []
    for y, words, scale in [("objective", "objective (sum)", "log"), ("accuracy", "test accuracy", "linear")]:
        curves = [
            (run["system"], [p["seconds"] for p in run["points"]], [p[y] for p in run["points"]])
            for run in raw["runs"]
            if run["points"]
        ]
        panels.append({"title": raw["task"], "x": "CPU seconds, one thread", "y": words, "curves": curves,
                       "xscale": "log", "yscale": scale})  # fmt: skip
    picture("fashion_full", panels)
