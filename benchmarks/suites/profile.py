"""Where the time of a fit goes: compiled programs, the host, and the floor that matrix products set."""

import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.gpu import gradient_flops, sweep_flops
from benchmarks.suites import sparse_nets
from benchmarks.suites.one_block import tasks
from benchmarks.suites.report import Table, write
from benchmarks.suites.systems.ours import estimator
from benchmarks.suites.tasks import Task

ABOUT = (
    "Warm fits at tol 1e-6, the median of several, in milliseconds of the process on all its threads. "
    "Every compiled program is waited for, so that its time is its own; the host is what is left. The "
    "floor is the operations of the matrix products of the sweeps and gradients on the whole network, "
    "over the measured rate of a large product. An empty program is one that does nothing: what a call "
    "costs."
)


class Meter:
    """Times every compiled program of the package while it is on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._found = [
            (module, name, function)
            for key, module in list(sys.modules.items())
            if key.startswith("deepprox") and isinstance(module, ModuleType)
            for name, function in vars(module).items()
            if callable(function)
            # only compiled programs have one of these
            and (getattr(function, "_cache_size", None) or getattr(function, "compiled", None))
        ]

    def __enter__(self) -> "Meter":
        for module, name, function in self._found:
            setattr(module, name, self._timed(function))
        return self

    def __exit__(self, *_: object) -> None:
        for module, name, function in self._found:
            setattr(module, name, function)

    def _timed(self, function: Any) -> Callable:
        label = f"{function.__module__.removeprefix('deepprox.')}.{function.__name__}"

        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            out = jax.block_until_ready(function(*args, **kwargs))
            self.seconds[label] += time.process_time() - began
            self.calls[label] += 1
            return out

        return call


def product_rate(dtype: Any = np.float64, size: int = 1024) -> float:
    """Operations a second of one large product, by the processor's clock."""
    with jax.enable_x64(True):
        A = jnp.asarray(np.random.default_rng(0).normal(size=(size, size)), dtype)
        multiply = jax.jit(jnp.matmul)
        multiply(A, A).block_until_ready()
        times = []
        for _ in range(5):
            began = time.process_time()
            multiply(A, A).block_until_ready()
            times.append(time.process_time() - began)
    return 2 * size**3 / min(times)


def empty_call() -> float:
    """Seconds of a call of a program that does nothing."""
    nothing, x = jax.jit(lambda x: x), jnp.zeros(())
    nothing(x)
    began = time.process_time()
    for _ in range(200):
        nothing(x).block_until_ready()
    return (time.process_time() - began) / 200


def measured(task: Task, repeats: int) -> tuple[Meter, float, Any]:
    """Programs, seconds and the model of the median fit."""
    turns: list[tuple[float, Meter, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for turn in range(repeats + 2):
            model = estimator(task, 0, tol=1e-6)
            with Meter() as meter:
                began = time.process_time()
                model.fit(task.X, task.y)
                seconds = time.process_time() - began
            if turn >= 2:  # two to compile
                turns.append((seconds, meter, model))
    seconds, meter, model = sorted(turns, key=lambda turn: turn[0])[len(turns) // 2]
    return meter, seconds, model


def floor(task: Task, model: Any, rate: float) -> float:
    """Seconds that the matrix products need at the measured rate."""
    phases = [row["phase"] for row in model.fitted_.solution.history]
    n, sizes = len(task.X), task.sizes
    live = (sizes[0], *(int(mask.sum()) for mask in model.live_[1:]), sizes[-1])
    work = phases.count("split") * sweep_flops(n, sizes) if len(sizes) > 2 else 0.0
    work += phases.count("join") * gradient_flops(n, live)
    k = model.n_nonzero_
    units = sum(live[1:])
    # a Hessian: a pass for each live unit, and a factorisation of the live weights
    newton = units * gradient_flops(n, live) / 2 + k**3 / 3 + sum(2.0 * n * a * b for a, b in pairwise(live))
    return (work + phases.count("newton") * newton) / rate


def main(quick: bool = False, full: bool = False) -> None:
    """Two one-block fits and two digits networks."""
    rate, nothing = product_rate(), empty_call()
    cases = [*(t for t in tasks() if t.bias == "free"), *sparse_nets.tasks()]
    fits = []
    for task in cases[:1] if quick else cases:
        meter, seconds, model = measured(task, 3 if quick or task.hidden else 7)
        phases = [row["phase"] for row in model.fitted_.solution.history]
        fits.append({
            "task": task.name, "seconds": seconds, "programs": meter.seconds, "calls": meter.calls,
            "floor": floor(task, model, rate),
            "iterations": ", ".join(f"{phases.count(p)} {p}" for p in dict.fromkeys(phases)),
        })  # fmt: skip
    tell({"rate": rate, "empty call": nothing, "fits": fits})


def tell(raw: dict[str, Any]) -> None:
    """One table of all, then one for each fit."""
    tables, summary, nothing = [], [], raw["empty call"]
    for fit in raw["fits"]:
        seconds, programs = fit["seconds"], fit["programs"]
        inside, calls = sum(programs.values()), sum(fit["calls"].values())
        rows = [
            [name, fit["calls"][name], 1000 * s, 1000 * s / fit["calls"][name], 100 * s / seconds]
            for name, s in sorted(programs.items(), key=lambda item: -item[1])
        ]
        host = seconds - inside
        rows.append(["host: Python, NumPy, SciPy", "", 1000 * host, "", 100 * host / seconds])
        columns = ["program", "calls", "ms", "ms a call", "% of the fit"]
        tables.append(Table(f"{fit['task']}: {1000 * seconds:.1f} ms, {fit['iterations']}", columns, rows))
        numbers = (seconds, inside, host, calls * nothing, fit["floor"])
        whole, within, left, empty, least = (1000 * number for number in numbers)
        summary.append([fit["task"], whole, within, left, calls, empty, least, whole / least])
    columns = ["fit", "ms", "programs ms", "host ms", "calls", "as empty calls ms", "floor ms", "ms / floor"]
    speeds = f"products at {raw['rate'] / 1e9:.1f} GFLOP/s a core, {1e6 * nothing:.0f} us an empty call"
    write(
        "profile", ABOUT, [Table(f"Fits against their floor: {speeds}", columns, summary), *tables], [], raw
    )
