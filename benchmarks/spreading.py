"""What it costs and gains to spread observations: one and two processes on pinned cores, on this machine.

Strong scaling keeps the rows, weak scaling keeps the rows of a process. Runs that are compared take turns,
and the least of each counts. Messages are read from the compiled program and held against
``sum_l (d_l^2 + m_l d_l)``. ``python -m benchmarks spreading --faults`` also ends processes and counts the
seconds.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import show
from deepprox.cli.launching import free_port, pin
from deepprox.spreading import Spread
from deepprox.spreading.processes import COORDINATOR, RANK, WORLD

SIZES = (784, 256, 256, 10)
ROWS, SWEEPS, REPEATS = 60_000, 2, 3


def worker(rows: int, world: int) -> None:
    """Time sweeps, by turns; the first process prints.

    One process alone: its plain program, and the one with sums over its one device. Two processes: all rows
    in the first of them while the other waits, half of them in each, and all of them in each.
    """
    from deepprox.spreading.processes import connect

    if world > 1:
        connect()
    import jax

    from deepprox.splitting import admm
    from deepprox.spreading import Devices, same

    spread = Devices(jax.devices())
    plan = {"plain": (rows, same), "spread": (rows, spread)}
    if world > 1:
        plan = {"plain": (rows, same), "half": (rows // 2, spread), "all": (rows, spread)}
    if spread.rank:
        del plan["plain"]
    runs = {name: sweeps(*given) for name, given in plan.items()}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(REPEATS):
        for name, run in runs.items():
            began = time.perf_counter(), time.process_time()
            run()
            ended = time.perf_counter(), time.process_time()
            seconds[name].append(((ended[0] - began[0]) / SWEEPS, (ended[1] - began[1]) / SWEEPS))
    record: dict[str, object] = {name: np.min(times, axis=0).tolist() for name, times in seconds.items()}
    if world == 1:
        program = spread.compile(admm.chunk.__wrapped__, ("inner", "sweeps", "lanes"))
        text = program.lower(**given(rows, spread)).compile().as_text()
        record["lengths"] = [int(n) for n in re.findall(r"= f32\[(\d+)\]\S* all-reduce", text)]
    else:
        record["sums"] = {str(size): one_sum(spread, size) for size in (1, message())}
    if spread.rank == 0:
        sys.__stdout__.write("\n" + json.dumps(record) + "\n")  # type: ignore[union-attr]


def message() -> int:
    """``sum_l (d_l^2 + m_l d_l)``: the numbers that a sweep sends for the weights."""
    return sum((1 + n_in) ** 2 + n_out * (1 + n_in) for n_in, n_out in pairwise(SIZES))


def one_sum(spread: Any, size: int) -> float:
    """The median of seconds of a sum of so many numbers over all processes, in a program."""
    import jax
    from jax.sharding import PartitionSpec

    whole = PartitionSpec()
    add = jax.jit(jax.shard_map(spread, mesh=spread.mesh, in_specs=whole, out_specs=whole, check_vma=False))
    vector, seconds = np.ones(size, np.float32), []
    for _ in range(21):
        began = time.perf_counter()
        jax.block_until_ready(add(vector))
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[1:]))


def sweeps(rows: int, allsum: Spread) -> Callable[[], None]:
    """A function that does some sweeps and waits for them, compiled."""
    import jax

    from deepprox.splitting import admm

    arguments = given(rows, allsum)

    def run() -> None:
        arguments["state"], info = admm.chunk(**arguments)
        jax.block_until_ready((arguments["state"], info))

    run()
    return run


def given(rows: int, allsum: Spread) -> dict[str, Any]:
    """The arguments of a chunk of sweeps: a network on random rows."""
    from deepprox import links, losses, penalties
    from deepprox.blocks import Dense
    from deepprox.problem import Network, Problem
    from deepprox.splitting import admm, state

    between = [links.ReLU()] * (len(SIZES) - 2) + [links.Identity()]
    network = Network(tuple(Dense(k, link, penalties.L1(1e-4)) for k, link in zip(SIZES[1:], between)))
    W = tuple(w.astype(np.float32) for w in network.init(np.random.default_rng(0), SIZES[0]))
    X = np.random.default_rng(1 + allsum.rank).normal(size=(rows, SIZES[0])).astype(np.float32)
    y = np.eye(SIZES[-1], dtype=np.float32)[np.arange(rows) % SIZES[-1]]
    weight = np.full(rows, 1 / (rows * allsum.world), np.float32)
    Z = tuple(np.asarray(z) for z in network.forward(W, X))
    return {
        "problem": Problem(network, losses.Softmax(), X, y, weight, allsum),
        "state": state.start(W, Z, tuple(np.float32(0.1) for _ in W)),
        "pace": admm.Pace(*(np.float32(number) for number in admm.Pace())),
        "inner": admm.Inner(),
        "sweeps": SWEEPS,
        "lanes": False,
    }


def measure(world: int, rows: int) -> dict[str, Any]:
    """The record of so many processes, each on cores of its own."""
    where = {COORDINATOR: f"127.0.0.1:{free_port()}", WORLD: str(world)}
    command = [sys.executable, "-m", "benchmarks.spreading", str(rows), str(world)]
    running = []
    for rank in range(world):
        environment = os.environ | where | {RANK: str(rank), "JAX_PLATFORMS": "cpu"}
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        pin(running[rank].pid, rank, 2)
    said = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"a process ended with {[process.returncode for process in running]}")
    return json.loads(said[0].strip().splitlines()[-1])


def scaling() -> None:
    """Seconds for a sweep at one and two processes, and what spreading over one device costs."""
    alone, both = measure(1, ROWS), measure(2, ROWS)
    rows: list[list[object]] = []
    for name, found, plain, share in [
        ("one process, plain program", alone["plain"], alone["plain"], 1.0),
        ("one process, sums over its one device", alone["spread"], alone["plain"], 1.0),
        ("one of two processes works, plain program", both["plain"], both["plain"], 1.0),
        ("two processes, half the rows each (strong)", both["half"], both["plain"], 0.5),
        ("two processes, all rows each (weak)", both["all"], both["plain"], 1.0),
    ]:
        rows.append([name, 1e3 * found[0], 1e3 * found[1], f"{plain[0] * share / found[0]:.0%}", "", ""])
    for row, over in (
        (rows[1], alone["spread"][1] / alone["plain"][1]),
        (rows[4], both["all"][1] / both["plain"][1]),
    ):
        row[4:] = [f"CPU {over - 1:+.1%}, at most 5 %", show.met(over < 1.05)]
    network, load = "-".join(map(str, SIZES)), os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0)) // 2
    show.table(
        f"A sweep of {network}, {ROWS} rows in float32, {cores} core(s) for each process "
        f"(ms, least of {REPEATS}), at load average {load:.1f}",
        ["", "wall", "CPU of a process", "of the best possible", "target", ""],
        rows,
    )
    lengths, formula = sorted(alone["lengths"]), message()
    cells = [network, f"{lengths[-1]}", f"{formula}", f"{len(lengths) - 1}", f"{sum(lengths[:-1])}"]
    show.table(
        "Numbers that a process sends in a sweep",
        ["", "message for the weights", "sum_l (d_l^2 + m_l d_l)", "other messages", "their numbers", ""],
        [[*cells, show.met(lengths[-1] == formula and len(lengths) == 2)]],
    )
    model(both)


def model(both: dict[str, Any]) -> None:
    """``T(H) = a N / H + b + c (2 - 2 / H) + 2 (H - 1) s``, from CPU seconds of a sweep, wall ones of a sum.

    ``a`` is for a row and ``b`` for the steps on the weights, on the cores of one process; ``c`` for a sum of
    the message and ``s`` of one number, between two processes.
    """
    half, whole = both["half"][1], both["all"][1]
    a = (whole - half) / (ROWS / 2)
    b = whole - a * ROWS
    s, c = both["sums"]["1"], both["sums"][str(message())]
    rows: list[list[object]] = []
    for n, hosts in ((10**6, 1), (10**6, 64), (10**9, 64)):
        sums = c * (2 - 2 / hosts) + 2 * (hosts - 1) * s
        parts = [a * n / hosts, b, sums if hosts > 1 else 0.0]
        rows.append([f"{n:.0e}", hosts, *parts, sum(parts), f"{(a * n + b) / sum(parts) / hosts:.0%}"])
    show.table(
        f"The model: a = {1e6 * a:.3g} us a row, b = {1e3 * b:.3g} ms, c = {1e3 * c:.3g} ms, "
        f"s = {1e3 * s:.3g} ms",
        ["rows", "hosts", "rows (s)", "weights (s)", "sums (s)", "sweep (s)", "of the best possible"],
        rows,
    )


def faults() -> None:
    """Seconds from a fault to the end of all processes of a launch."""
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_table(folder / "table.csv")
        for what, rank, number in [
            ("SIGKILL of process 0", 0, signal.SIGKILL),
            ("SIGKILL of process 1", 1, signal.SIGKILL),
            ("SIGSTOP of process 0", 0, signal.SIGSTOP),
            ("SIGSTOP of process 1", 1, signal.SIGSTOP),
            ("SIGTERM of the launcher", None, signal.SIGTERM),
        ]:
            seconds, said = _ended_by(folder, rank, number)
            rows.append([what, seconds, said[-1] if said else "", "< 30", show.met(seconds < 30)])
    show.table("From a fault to the end of all (seconds)", ["", "seconds", "last words", "target", ""], rows)


def _write_table(path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 8))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,f,g,h,y", comments="")


def _ended_by(folder: Path, rank: int | None, number: signal.Signals) -> tuple[float, list[str]]:
    for file in folder.glob("run/*"):
        file.unlink()
    fit = ["fit", str(folder / "table.csv"), "-t", "y", "--task", "regression", "--alpha", "1e-3"]
    fit += ["--hidden", "20,20", "--tol", "1e-13", "--max-iter", "100000", "--out", str(folder / "model")]
    command = [sys.executable, "-m", "deepprox", "launch", "--", *fit, "--checkpoint", str(folder / "run")]
    launched = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not (folder / "run" / "checkpoint-1-of-2.npz").exists():
        time.sleep(0.1)
    children = Path(f"/proc/{launched.pid}/task/{launched.pid}/children").read_text().split()
    began = time.perf_counter()
    os.kill(launched.pid if rank is None else int(children[rank]), number)
    said = launched.communicate()[1].strip().splitlines()
    return time.perf_counter() - began, [line[:60] for line in said if line.startswith("deepprox:")]


def main() -> None:
    """All of it; the faults where they are asked for."""
    scaling()
    if "--faults" in sys.argv:
        faults()


if __name__ == "__main__":
    worker(int(sys.argv[1]), int(sys.argv[2]))
