"""Processes that take tasks until there are none or time is over; results as lines of JSON."""

import json
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.defaults.tasks import KINDS, RUN, Task, all_tasks
from benchmarks.tables.record import Table

ONE = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
HOST = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
TRIES = 4  # tasks that fail before any is done, and an accelerator is not used
DEVICE = "--xla_gpu_autotune_level=0"  # to compile sooner


def options() -> dict[str, str]:
    """What stands after ``--``."""
    given = [one[2:] for one in sys.argv if one.startswith("--")]
    return {name: value for name, _, value in (one.partition("=") for one in given)}


def work(tables: dict[str, Table], tasks: Any, results: Any, gpu: bool, cache: str) -> None:
    """One process: one task after another, until it is ended."""
    import jax

    jax.config.update("jax_compilation_cache_dir", cache)  # what one compiled, others take
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    if gpu and jax.default_backend() != "gpu":
        print("no accelerator", flush=True)
        return
    while True:
        task = tasks.get()
        began, rows, failed = time.perf_counter(), [], ""
        try:
            for row in RUN[task.work](task, tables[task.table]):
                rows.append(row)
        except Exception:
            failed = traceback.format_exc()
        results.put((task, rows, failed or time.perf_counter() - began))


def begin(count: int, gpu: bool, *given: Any) -> list[Any]:
    """Processes with one thread each, on the host or sharing the accelerator."""
    spawn = multiprocessing.get_context("spawn")
    settings = ONE | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    settings |= {"XLA_FLAGS": DEVICE if gpu else HOST}
    before = dict(os.environ)
    os.environ.update(settings)
    if not gpu:
        os.environ["JAX_PLATFORMS"] = "cpu"
    else:
        os.environ.pop("JAX_PLATFORMS", None)
    tables, tasks, results, cache = given
    args = tables, tasks, results, gpu, cache
    made = [spawn.Process(target=work, args=args, daemon=True) for _ in range(count)]
    for process in made:
        process.start()
    os.environ.clear()
    os.environ.update(before)
    return made


def names_of(task: Task) -> list[str]:
    """What stands in the results once a task is done."""
    told = f"{task.work}/{task.table}/{task.split}/{task.variant}/{task.batched}"
    return [f"{told}/{kind}" for kind in task.kinds or "-"]


def main() -> None:
    """Run, or report."""
    given = options()
    out = Path(given.get("out") or os.environ.get("OUT") or ".study/results")
    if "report" in given:
        from benchmarks.defaults.choices import report

        return report(out)
    if given.get("export"):
        from benchmarks.tables.sets import store

        return store(list(chosen(given).values()), Path(given["export"]))
    out.mkdir(parents=True, exist_ok=True)
    run(given, out)


def chosen(given: dict[str, str]) -> dict[str, Table]:
    """The tables asked for."""
    from benchmarks.tables.sets import load, stored

    names = given["tables"].split(",") if given.get("tables") else None
    if given.get("data"):
        found = [table for table in stored(Path(given["data"])) if names is None or table.name in names]
    else:
        found, missing = load(names)
        if missing:
            print("not on this machine:", ", ".join(missing))
    return {table.name: table for table in sorted(found, key=lambda table: table.X.size)}


def ordered(
    given: dict[str, str], names: list[str], gpus: int, done: set[str]
) -> tuple[list[Task], list[Task]]:
    """Tasks for the accelerator, or for the lanes, and the others; without those that are done."""
    works = given.get("works", "lanes,fit,peers").split(",")
    lanes, others = all_tasks(names, int(given.get("splits", 5)), together=gpus > 0)
    kinds = given.get("kinds", ",".join(KINDS)).split(",")

    def left(tasks: list[Task]) -> list[Task]:
        wanted = [task for task in tasks if task.work in works]
        wanted = [
            task._replace(kinds=tuple(k for k in task.kinds if k in kinds)) if task.work == "lanes" else task
            for task in wanted
        ]
        wanted = [task for task in wanted if task.kinds or task.work == "peers"]
        return [task for task in wanted if not set(names_of(task)) <= done]

    return left(lanes), left(others)


def mixed(lanes: list[Task], others: list[Task]) -> list[Task]:
    """One list for processes that do both: peers first, then two of lanes for one fit."""
    peers = [task for task in others if task.work == "peers"]
    fits = [task for task in others if task.work == "fit"]
    out, k = peers, 0
    while lanes[2 * k : 2 * k + 2] or fits[k : k + 1]:
        out = out + lanes[2 * k : 2 * k + 2] + fits[k : k + 1]
        k += 1
    return out


def run(given: dict[str, str], out: Path) -> None:
    """Until all is done or time is over."""
    ends = time.monotonic() + 60 * float(given.get("minutes", 60))
    tables = chosen(given)
    cores = int(given.get("processes", len(os.sched_getaffinity(0))))
    gpus = int(given.get("gpus", cores // 2 if shutil.which("nvidia-smi") else 0))
    finished = Path(given.get("done") or out / "done.txt")
    done = set(finished.read_text().split()) if finished.exists() else set()
    spawn = multiprocessing.get_context("spawn")
    on_gpu, on_host, results = spawn.Queue(), spawn.Queue(), spawn.Queue()
    lanes, others = ordered(given, list(tables), gpus, done)
    first, second = (lanes, others) if gpus else ([], mixed(lanes, others))
    for tasks, where in ((first, on_gpu), (second, on_host)):
        for task in tasks:
            where.put(task)
    cache = tempfile.mkdtemp()
    quick = begin(gpus, True, tables, on_gpu, results, cache)
    processes = quick + begin(cores - gpus, False, tables, on_host, results, cache)
    left, well = len(first) + len(second), TRIES
    print(f"{len(tables)} tables, {len(first)} + {len(second)} tasks, {gpus} + {cores - gpus} processes")
    try:
        while left and time.monotonic() < ends and any(process.is_alive() for process in processes):
            if quick and (well <= 0 or not any(process.is_alive() for process in quick)):
                for process in quick:  # without an accelerator the host does it, in smaller pieces
                    process.terminate()
                quick, lanes = [], ordered(given, list(tables), 0, done)[0]
                left, instead = left + len(lanes) - len(first), spawn.Queue()
                for one in lanes:
                    instead.put(one)
                processes += begin(gpus, False, tables, instead, results, cache)
            try:
                task, rows, told = results.get(timeout=1)
            except queue.Empty:
                continue
            left -= 1
            if task.work == "lanes":
                well = well - 1 if isinstance(told, str) else len(first)
            keep(out, task, rows, told)
    finally:
        for process in processes:
            process.terminate()
        shutil.rmtree(cache, ignore_errors=True)
    print(f"{left} tasks are left", flush=True)


def keep(out: Path, task: Task, rows: list[dict], told: Any) -> None:
    """Results in the file of their split; what failed is told and not done."""
    name = f"split{task.split}" if task.variant == "plain" else "variants"
    with open(out / f"{name}.jsonl", "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    if isinstance(told, str):
        print(f"failed: {task}\n{told}", flush=True)
        return
    with open(out / "done.txt", "a") as file:
        file.write("\n".join(names_of(task)) + "\n")
    print(f"{told:7.1f} s {' '.join(names_of(task))}", flush=True)
