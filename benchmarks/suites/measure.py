"""Systems in processes of their own: warm, and cold (a new process with nothing compiled)."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.suites.systems import OURS, System
from benchmarks.suites.tasks import Task, save

ROOT = Path(__file__).parents[2]
PYTHONS = {OURS: Path(sys.executable), "peers": ROOT / ".venv-peers" / "bin" / "python"}
NO_PEERS = "The environment of the peers is not there: run `make peers` first."
# whose every effort may be another program; all others compile with their first run
COMPILED = {
    "deepprox", "deepprox_to", "deepprox_rough", "deepprox_at", "deepprox_refitted_at",
    "deepprox_batches_at", "deepprox_path", "skglm",
}  # fmt: skip

Points = list[dict[str, Any]]


class Run(NamedTuple):
    """What a system gave: a point for every seed and effort, and why there is none."""

    system: System
    points: Points
    trouble: str = ""


def _work(system: System, task: Task, job: dict[str, Any]) -> Run:
    """One process, its lines of JSON, and the last line of what it complained about."""
    with tempfile.TemporaryDirectory() as folder:
        save(task, Path(folder) / "task.npz")
        job |= {"module": system.module, "function": system.function, "task": f"{folder}/task.npz"}
        Path(folder, "job.json").write_text(json.dumps(job))
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        if not job["warm"]:
            environment["XDG_CACHE_HOME"] = folder  # no program that an earlier process compiled
        command = [PYTHONS[system.home], "-m", "benchmarks.suites.worker", f"{folder}/job.json"]
        with (
            open(Path(folder, "out"), "w+") as out,
            open(Path(folder, "err"), "w+") as err,
            subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=err) as process,
        ):
            trouble = ""
            try:
                if code := process.wait(4 * job["budget"] + 60):
                    err.seek(0)
                    trouble = (err.read().strip().splitlines() or [f"it ended with code {code}"])[-1]
            except subprocess.TimeoutExpired:
                process.kill()
                trouble = "it was stopped: a run took more than four times its budget"
            out.seek(0)
            points = [json.loads(line) for line in out.read().splitlines() if line.startswith("{")]
    return Run(system, points, trouble)


def warm(system: System, task: Task, seeds: range, threads: int, budget: float, efforts: Any = None) -> Run:
    """Every effort for every seed, after one that compiles; what takes longer than ``budget`` is left out."""
    return _work(
        system,
        task,
        {
            "seeds": list(seeds),
            "efforts": list(efforts or system.efforts),
            "repeats": 5,
            "threads": threads,
            "budget": budget,
            "warm": True,
            "compiles": system.function in COMPILED,
        },
    )


def cold(system: System, task: Task, seed: int, effort: float, threads: int, budget: float) -> float:
    """Seconds of the first call ever; imports are not counted."""
    found = _work(
        system,
        task,
        {
            "seeds": [seed],
            "efforts": [effort],
            "repeats": 1,
            "threads": threads,
            "budget": budget,
            "warm": False,
            "compiles": False,
        },
    )
    return found.points[0]["seconds"] if found.points else float("nan")
