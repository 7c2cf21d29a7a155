"""R's packages: data go over as raw numbers, weights come back the same way; R times itself."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np

from benchmarks.suites.tasks import Task

SCRIPTS = Path(__file__).parent


def write(folder: Path, task: Task) -> None:
    """Columns one after the other, as R stores a matrix."""
    np.asarray(task.X, float).ravel(order="F").tofile(folder / "X.bin")
    np.asarray(task.y, np.int32).tofile(folder / "y.bin")


def run(script: str, *arguments: object) -> list[float]:
    """Seconds of the first call and of later ones, as R measured them."""
    if shutil.which("Rscript") is None:
        raise RuntimeError("R is not installed: apt-get install r-base-core r-cran-glmnet r-cran-nnet.")
    done = subprocess.run(
        ["Rscript", "--vanilla", SCRIPTS / script, *map(str, arguments)], capture_output=True, text=True
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it ended without a word"]
        raise RuntimeError(f"{script}: {next((line for line in lines if 'Error' in line), lines[-1])}")
    return json.loads(done.stdout.splitlines()[-1])
