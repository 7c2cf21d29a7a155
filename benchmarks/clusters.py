"""Fits by a Dask cluster on this machine: what a sum costs, what a second worker gains, and what a lost one.

Every worker is pinned to a core of its own. One worker and two take turns on one cluster, and the least of
each counts; seconds are those between two chunks of sweeps, after everything is loaded and compiled.
"""

import os
import signal
import time
import warnings
from typing import Any
from uuid import uuid4

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from benchmarks import show
from deepprox import DeepRegressor
from deepprox.dask import driver
from deepprox.dask.meeting import Meeting, Seat
from deepprox.dask.parts import parts_of
from deepprox.solve import SWEEPS

SIZES = {"one number": 1, "Gram matrix of 785 inputs": 785 * 785, "784-256-256-10": 1_017_645}
REPEATS = 30
ROWS, INPUTS = 40_000, 100
SPLIT = {"join": False, "max_iter": 50, "tol": 1e-12}
ROUNDS = 3


def pinned(n: int) -> LocalCluster:
    """So many workers, each on its core, with the memory allocator as it is without Dask."""
    key = "distributed.nanny.pre-spawn-environ"
    rest = {name: value for name, value in dask.config.get(key).items() if name != "MALLOC_TRIM_THRESHOLD_"}
    with dask.config.set({key: rest}):
        return LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0")


def pin(dask_worker: Any) -> None:
    """Keep this worker, with the threads that it has, on the core of its number."""
    cores = sorted(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {cores[int(dask_worker.name) % len(cores)]})


def sums(name: str, rank: int, size: int) -> float:
    """The median of seconds of a sum."""
    seat, array, seconds = Seat(name, rank), np.ones(size, np.float32), []
    for _ in range(REPEATS):
        began = time.perf_counter()
        seat.reduce([array])
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def round_trips(client: Client) -> None:
    """What a sum over two workers costs."""
    addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
    rows = []
    for label, size in SIZES.items():
        name = f"bench-{uuid4().hex}"
        client.register_plugin(Meeting(name, client.id, addresses), name=name)
        futures = [
            client.submit(sums, name, rank, size, workers=[address], pure=False)
            for rank, address in enumerate(addresses)
        ]
        seconds = max(future.result() for future in futures)
        client.sync(getattr(client.scheduler, f"{name}_end"))
        rows.append([label, 4 * size, 1e3 * seconds, "< 20", show.met(seconds < 0.02)])
    show.table("A sum over two workers", ["", "bytes", "ms", "target", ""], rows)


def table(n: int, parts: int) -> Any:
    """Rows of a network with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, INPUTS))
    y = np.sin(X[:, 0]) + np.abs(X[:, 1]) + 0.3 * rng.normal(size=n)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(INPUTS)]).assign(y=y)
    return dd.from_pandas(frame, npartitions=parts)


def fit(client: Client, data: Any, topic: str | None = None, **settings: Any) -> driver.Fit:
    """A fit by as many workers as the data have partitions, at most."""
    model = DeepRegressor((50,), link="tanh", alpha=0.002, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it stops at max_iter
        return driver.fit(client, model, parts_of(data, "y", None), topic)


def sweep_seconds(done: driver.Fit) -> float:
    """Seconds of a sweep: the least between two chunks."""
    ends = done.model.history_.seconds.unique()
    return float(np.diff(ends).min()) / SWEEPS


def busy(client: Client) -> dict[str, float]:
    """Seconds of a core that every worker has used."""
    return client.run(time.process_time)


def scaling() -> None:
    """Seconds of a sweep with one worker and with two, the rows kept and the rows of a worker kept."""
    cases = {
        "one worker": (1, ROWS),
        "two, half the rows each": (2, ROWS),
        "two, all rows each": (2, 2 * ROWS),
    }
    best, sent, cpu = dict.fromkeys(cases, np.inf), dict.fromkeys(cases, 0.0), dict.fromkeys(cases, np.inf)
    with pinned(2) as cluster, Client(cluster) as client:
        client.run(pin)
        tables = {name: table(n, workers) for name, (workers, n) in cases.items()}
        for data in tables.values():
            fit(client, data, **SPLIT)  # compiles
        for _ in range(ROUNDS):
            for name, data in tables.items():
                before = busy(client)
                done = fit(client, data, **SPLIT)
                used = max(after - before[worker] for worker, after in busy(client).items())
                cpu[name] = min(cpu[name], used / done.model.n_iter_)
                best[name] = min(best[name], sweep_seconds(done))
                sent[name] = done.bytes / done.model.n_iter_
        round_trips(client)
    alone = best["one worker"]
    formula = 8 * ((1 + INPUTS) ** 2 + 50 * (1 + INPUTS) + 51**2 + 51)
    rows = [
        [
            name,
            1e3 * best[name],
            f"{alone * (n / ROWS) / workers / best[name]:.0%}",
            1e3 * cpu[name],
            sent[name],
            formula,
        ]
        for name, (workers, n) in cases.items()
    ]
    show.table(
        f"A sweep of {INPUTS}-50-1, {ROWS} rows in float64, at load average {os.getloadavg()[0]:.1f}",
        [
            "workers",
            "wall, ms",
            "of the best possible",
            "CPU of a worker, ms",
            "bytes sent by a worker",
            "8 sum_l (d_l^2 + m_l d_l)",
        ],
        rows,
    )


def faults() -> None:
    """Seconds from a signal to the next row of the history."""
    rows, data = [], table(ROWS // 4, 8)
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with pinned(2) as cluster, Client(cluster) as client:
            client.run(pin)
            fit(client, data)
            told: list[tuple[float, int]] = []

            def strike(event: Any, told: Any = told, number: int = number, cluster: Any = cluster) -> None:
                told.append((time.perf_counter(), event[1]["iteration"]))
                if len(told) == 2:
                    os.kill([*cluster.workers.values()][-1].process.pid, number)

            topic = f"bench-{uuid4().hex}"
            client.subscribe_topic(topic, strike)
            done = fit(client, data, topic)
            found = done.model.solution_
            again = told[2][0] - told[1][0]
            rows.append([number.name, again, len(done.lost), f"{found.certificate:.1e}", found.status])
    show.table("A worker is lost", ["signal", "seconds to go on", "lost", "certificate", "status"], rows)


def main() -> None:
    """All of it."""
    scaling()
    faults()


if __name__ == "__main__":
    main()
