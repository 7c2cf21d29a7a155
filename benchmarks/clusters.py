"""Fits by a Dask cluster on this machine: what a sum costs, what a second worker gains, and what a lost one.

Every worker is pinned to a core of its own. Sums are those of a Gram matrix and of one number.
"""

import os
import signal
import time
from typing import Any
from uuid import uuid4

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, get_worker

from benchmarks import show
from deepprox import DeepRegressor
from deepprox.dask import driver
from deepprox.dask.meeting import Meeting, Seat
from deepprox.dask.parts import parts_of

SIZES = {"one number": 1, "Gram matrix of 785 inputs": 785 * 785}
REPEATS = 30
ROWS, INPUTS = 40_000, 100
STEPS = {"max_iter": 100, "tol": 1e-12}


def pinned(n: int) -> LocalCluster:
    """So many workers, each on its core, with the memory allocator as it is without Dask."""
    key = "distributed.nanny.pre-spawn-environ"
    rest = {name: value for name, value in dask.config.get(key).items() if name != "MALLOC_TRIM_THRESHOLD_"}
    with dask.config.set({key: rest}):
        return LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0")


def pin() -> None:
    """Keep this worker on the core of its number."""
    os.sched_setaffinity(0, {int(get_worker().name) % (os.cpu_count() or 1)})


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


def table(n: int) -> Any:
    """Rows of a network with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, INPUTS))
    y = np.sin(X[:, 0]) + np.abs(X[:, 1]) + 0.3 * rng.normal(size=n)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(INPUTS)]).assign(y=y)
    return dd.from_pandas(frame, npartitions=8)


def fit(client: Client, data: Any, topic: str | None = None, **settings: Any) -> tuple[float, driver.Fit]:
    """Seconds of a fit whose programs are compiled, and the fit."""
    model = DeepRegressor((50,), link="tanh", alpha=0.002, random_state=0, **settings)
    began = time.perf_counter()
    done = driver.fit(client, model, parts_of(data, "y", None), topic)
    return time.perf_counter() - began, done


def scaling() -> None:
    """Seconds of a step with one worker and with two, the rows kept and the rows of a worker kept."""
    seconds, rows = {}, []
    for workers, n in ((1, ROWS), (2, ROWS), (2, 2 * ROWS)):
        with pinned(workers) as cluster, Client(cluster) as client:
            client.run(pin)
            data = table(n)
            fit(client, data, **STEPS)
            took, done = fit(client, data, **STEPS)
            seconds[workers, n] = took / done.model.n_iter_
            rows.append(
                [f"{workers} of {n} rows", 1e3 * seconds[workers, n], done.bytes / done.model.n_iter_]
            )
            if (workers, n) == (2, ROWS):
                round_trips(client)
    alone, strong, weak = (seconds[key] for key in ((1, ROWS), (2, ROWS), (2, 2 * ROWS)))
    show.table(
        f"A step of a network of {INPUTS} inputs and 50 units, by workers",
        ["workers", "ms", "bytes sent by a worker"],
        [
            *rows,
            ["strong scaling", f"{alone / strong:.2f} times", ""],
            ["weak scaling", f"{alone / weak:.2f}", ""],
        ],
    )


def faults() -> None:
    """Seconds from a signal to the next row of the history."""
    rows, data = [], table(ROWS // 4)
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with pinned(2) as cluster, Client(cluster) as client:
            fit(client, data)
            told: list[tuple[float, int]] = []

            def strike(event: Any, told: Any = told, number: int = number, cluster: Any = cluster) -> None:
                told.append((time.perf_counter(), event[1]["iteration"]))
                if len(told) == 2:
                    os.kill([*cluster.workers.values()][-1].process.pid, number)

            topic = f"bench-{uuid4().hex}"
            client.subscribe_topic(topic, strike)
            _, done = fit(client, data, topic)
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
