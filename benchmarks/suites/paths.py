"""Whole paths: networks against LassoNet, one block against glmnet."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import deepprox
from benchmarks import paths, show
from benchmarks.suites import measure
from benchmarks.suites.one_block import tasks
from benchmarks.suites.report import Table, Target, picture, write
from benchmarks.suites.systems import OURS, PEERS, System
from benchmarks.suites.systems.ours import estimator
from benchmarks.suites.tasks import Task

RATIO = 20.0
LENGTH = 50
ABOUT = (
    "A path is every model from dense to empty. Against LassoNet: one hidden layer of 100 units, the "
    "settings of `python -m benchmarks paths` on its first split (that command has five splits); the "
    "scores of the models are part of both times. Against glmnet: the same 50 strengths without hidden "
    "layers, both at the tolerance that they come with. One thread, the processor's own clock."
)
PATHS = (
    System("deepprox", "paths", "deepprox_path", OURS, (35,)),
    System("LassoNet", "paths", "lassonet_path", PEERS, (0,)),
)


def against_lassonet(name: str) -> list[dict[str, Any]]:
    """Seconds and (inputs, accuracy) of the models of both on a data set."""
    X, X_test, y, y_test = paths.split(name, 0)
    task, out = Task(name, X, y, X_test, y_test, (100,), 0.0, "free"), []
    for system in PATHS:
        show.console.print(f"[dim]paths: {name}, {system.name}[/]")
        found = measure.warm(system, task, range(1), 1, 300)
        if found.trouble:
            raise RuntimeError(f"{system.name}: {found.trouble}")
        (point,) = found.points
        first = measure.cold(system, task, 0, system.efforts[0], 1, 300) if system.home == OURS else None
        told = {"warm": point["seconds"], "cold": first, "models": point["models"]}
        out.append({"data": name, "system": system.name, **told})
    return out


def against_glmnet(quick: bool) -> list[dict[str, Any]]:
    """The same strengths without hidden layers, and the objective at the weakest."""
    out = []
    for task in [t for t in tasks() if t.bias == "free"][: 1 if quick else 2]:
        show.console.print(f"[dim]paths: {task.name}, one block[/]")
        peer = System("glmnet (R)", "linear", "glmnet_path", PEERS, (LENGTH,))
        theirs = measure.warm(peer, task, range(1), 1, 120)
        if theirs.trouble:
            show.console.print(theirs.trouble)
            continue
        (point,) = theirs.points
        alphas, seconds = np.geomspace(point["strongest"], point["weakest"], LENGTH), []
        for _ in range(3):
            began = time.process_time()
            found = deepprox.path(estimator(task, 0), task.X, task.y, alphas)
            seconds.append(time.process_time() - began)
        last = found[int(np.argmin(found.alphas))]
        out += [
            {"data": task.name, "system": "deepprox", "warm": min(seconds[1:]), "cold": seconds[0],
             "models": len(found), "objective": len(task.X) * float(last.objective_)},
            {"data": task.name, "system": "glmnet (R)", "warm": point["seconds"], "cold": None,
             "models": LENGTH, "objective": point["objective"]},
        ]  # fmt: skip
    return out


def main(quick: bool = False, full: bool = False) -> None:
    """One block, then networks."""
    linear, nets = against_glmnet(quick), []
    for name in ["iris"] if quick else paths.SETS:
        nets += against_lassonet(name)
        tell({"one block": linear, "networks": nets})  # as it goes: a long run may be cut short


def rows_of(found: list[dict[str, Any]], last: Callable[[dict[str, Any]], list[Any]]) -> list[list[Any]]:
    """Seconds of every path, and their ratio to ours on the same data."""
    ours = {f["data"]: f["warm"] for f in found if f["system"] == "deepprox"}
    return [
        [f"{f['data']}: {f['system']}", f["warm"], f["cold"], f["warm"] / ours[f["data"]], *last(f)]
        for f in found
    ]


def tell(raw: dict[str, Any]) -> None:
    """Two tables, the target and the picture of stored paths."""
    nets = raw["networks"]
    half = {f["data"]: max(count for count, _ in f["models"]) // 2 for f in nets if f["system"] == "LassoNet"}
    at_half = lambda f: [len(f["models"]), 100 * paths.at_most(f["models"], half[f["data"]])]  # noqa: E731
    columns = ["", "warm s", "cold s", "ratio", "models"]
    tables = [
        Table(
            "Paths of networks, 100 hidden units (CPU s)",
            [*columns, "% test with half of the inputs"],
            rows_of(nets, at_half),
        ),
        Table(
            "Paths of one block (CPU s)",
            [*columns, "objective at the weakest"],
            rows_of(raw["one block"], lambda f: [f["models"], f["objective"]]),
        ),
    ]
    ours, theirs = (sum(f["warm"] for f in nets if f["system"] == name) for name in ("deepprox", "LassoNet"))
    text = f"paths at least {RATIO:g} times faster than LassoNet"
    write("paths", ABOUT, tables, [Target(text, f"{theirs / ours:.1f}", theirs >= RATIO * ours)], raw)
    panels = [
        {"title": name, "x": "inputs kept", "y": "% test accuracy", "whole": True,
         "curves": [_first_of_every_count(f) for f in nets if f["data"] == name]}
        for name in half
    ]  # fmt: skip
    picture("paths", panels)


def _first_of_every_count(found: dict[str, Any]) -> tuple[str, list[int], list[float]]:
    """The first model that a path has for every number of inputs, from dense to sparse."""
    # of those with as many inputs the first, the least penalised
    pairs = sorted({count: 100 * a for count, a in reversed(found["models"]) if count}.items())
    return found["system"], [count for count, _ in pairs], [accuracy for _, accuracy in pairs]
