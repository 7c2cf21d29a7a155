"""A system in a process of its own: ``python -m benchmarks.suites.worker JOB.json`` answers in JSON.

The job names the module and function of the system, the file of the task, the seeds and the efforts, how
often a run is repeated and how many threads it may use.
"""

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

LONG = 0.5  # seconds from which a run is not repeated


def keep_to(threads: int) -> None:
    """This many cores for the process, and no more threads than that in the libraries loaded after this."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)


def run(fit: Any, clock: Any, task: Any, seed: int, effort: float, repeats: int) -> dict[str, float]:
    """The judgement of one run and its seconds.

    A system in another language times itself, and judges itself where its network is not ours.
    """
    from benchmarks.suites.tasks import judge

    seconds: list[float] = []
    told: dict[str, Any] = {}
    while len(seconds) < repeats and sum(seconds) < LONG:
        began = clock()
        found = fit(task, seed, effort)
        seconds.append(clock() - began)
        if isinstance(found, dict):
            told = found
            if "seconds" in found:
                seconds = found["seconds"][-repeats:] if repeats > 1 else found["seconds"][:1]
                break
    judged = told["judged"] if "judged" in told else judge(task, told.get("W", found))
    # the wall's clock is only ever late
    typical = median(seconds) if clock is time.process_time else min(seconds)
    return {"seed": seed, "effort": effort, "seconds": typical} | judged


def main(path: str) -> None:
    """Every effort for every seed.

    A warm job begins with a run that does not count, and one that compiles does so before every run.
    """
    job = json.loads(Path(path).read_text())
    keep_to(job["threads"])
    from benchmarks.suites.tasks import load

    fit = getattr(import_module(f"benchmarks.suites.systems.{job['module']}"), job["function"])
    task, points = load(Path(job["task"])), []
    # one thread: what the process itself used, which a busy machine does not change
    alone = job["threads"] == 1
    clock = time.process_time if alone else time.perf_counter
    os.environ["CLOCK"] = "CPU" if alone else "wall"  # for those that time themselves
    began = time.perf_counter()
    for seed in job["seeds"]:
        for effort in job["efforts"]:
            if job["compiles"] or (job["warm"] and not points):
                run(fit, clock, task, seed, effort, 1)
            points.append(run(fit, clock, task, seed, effort, job["repeats"]))
            print(json.dumps(points[-1]), flush=True)
            if time.perf_counter() - began > job["budget"]:
                return


if __name__ == "__main__":
    main(sys.argv[1])
