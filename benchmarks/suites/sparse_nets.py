"""Networks with exact zeros: time to within 1 % of the best objective, and accuracy at equal non-zeros."""

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks import data, show
from benchmarks.suites import measure
from benchmarks.suites.race import NEVER, Race, race
from benchmarks.suites.report import Table, Target, picture, write
from benchmarks.suites.systems import AT_LEVELS, DENSE, LEVELS, SPARSE, System
from benchmarks.suites.tasks import Task

GAP, FASTER, ACCURATE = 0.01, 5.0, 0.96
ABOUT = (
    "ReLU networks, every weight and bias penalised with gamma 1 on the sum of the losses. First, "
    "seconds to within 1 % of the best objective that any system found from any start: all seconds over "
    "the starts that came there, so that those that end elsewhere count as what they cost. Then the "
    "test accuracy of models with at least 90, 95 and 98 % zeros, biases counted, and of dense networks "
    "beside them; deepprox and proximal Adam raise the strength until the zeros are there, and that is "
    "part of their time. With batches, deepprox judges five strengths on a fifth of the rows first, and "
    "that is part of its time too. Accuracies are means over the starts; a level that took more than the "
    "budget has none. One thread is timed by the processor's own clock, two by the wall's; everything is "
    "warm but the column that says cold."
)


def tasks() -> list[Task]:
    """Digits with one and two hidden layers."""
    split = data.digits()
    return [
        Task("digits 64-50-10", *split, (50,), 1.0, "penalised"),
        Task("digits 64-50-50-10", *split, (50, 50), 1.0, "penalised"),
    ]


def at_levels(task: Task, seeds: range, budget: float) -> list[dict[str, Any]]:
    """For every system and level the means over the starts."""
    rows = []
    # nnet has one hidden layer and keeps a square matrix over all weights
    dense = [s for s in DENSE if s.function != "nnet" or (len(task.hidden) == 1 and task.X.shape[1] < 100)]
    # of so few rows 512 are hardly a batch
    sparse = [s for s in AT_LEVELS if s.function != "deepprox_batches_at" or len(task.X) >= 2000]
    for system in (*sparse, *dense):
        show.console.print(f"[dim]{task.name}: {system.name}[/]")
        found = measure.warm(system, task, seeds, 1, budget)
        if found.trouble:
            show.console.print(f"  {found.trouble}")
        by_effort = defaultdict(list)
        for point in found.points:
            by_effort[point["effort"]].append(point)
        for effort, points in by_effort.items():
            mean = {
                k: float(np.mean([p[k] for p in points])) for k in ("seconds", "zeros", "accuracy", "nonzero")
            }
            level = effort if effort in LEVELS else 0.0
            rows.append({"system": system.name, "level": level, "starts": len(points), **mean})
    return rows


def level_table(task: str, rows: list[dict[str, Any]]) -> Table:
    """A row for each system: accuracy and seconds at every level."""
    cells, names = [], list(dict.fromkeys(row["system"] for row in rows))
    for name in names:
        mine = {row["level"]: row for row in rows if row["system"] == name}
        of = [mine.get(level) for level in (0.0, *LEVELS)]
        seconds = [row["seconds"] for row in of if row]
        cells.append([
            name, *(None if row is None else 100 * row["accuracy"] for row in of),
            " / ".join("-" if row is None else str(round(row["nonzero"])) for row in of[1:]), max(seconds),
        ])  # fmt: skip
    shares = [f"{level:.0%}" for level in LEVELS]
    columns = ["system", "dense", *(f"{s} zeros" for s in shares), "non-zeros", "slowest, CPU s"]
    return Table(f"{task}: % test accuracy at equal zeros, one thread", columns, cells)


def against_gradients(result: Race) -> Target:
    """At least five times faster than the best of them."""
    (theirs, name), ours = result.fastest(), result.seconds("deepprox")
    wanted = f"at least {FASTER:g} times faster than the best gradient peer"
    text = f"{result.task}, {result.threads} thread(s): {wanted}"
    if ours == NEVER:
        return Target(text, "deepprox did not come within 1 %", False)
    if theirs == NEVER:
        tried = [len({p["seed"] for p in row["points"]}) for row in result.rows]
        enough = max(tried[1:]) >= tried[0]  # a peer that was stopped early has not lost
        return Target(text, f"no peer came within 1 % in {max(tried[1:])} starts", enough)
    return Target(text, f"{theirs / ours:.1f} times {name}", theirs >= FASTER * ours)


def accurate_enough(task: str, rows: list[dict[str, Any]]) -> list[Target]:
    """On digits, 96 % at 95 % zeros."""
    ours = [r["accuracy"] for r in rows if r["system"] == "deepprox" and r["level"] == 0.95]
    text = f"{task}: at least {ACCURATE:.0%} test accuracy at 95 % zeros"
    return [Target(text, f"{100 * a:.2f} %", a >= ACCURATE) for a in ours if task.startswith("digits")]


def run(
    suite: str, given: list[tuple[Task, int]], starts: int, budget: float, quick: bool,
    systems: tuple[System, ...] = SPARSE,
) -> None:  # fmt: skip
    """Races of the tasks with so many threads; then, with one, accuracies at equal zeros."""
    raw: list[dict[str, Any]] = []
    for task, threads in given:
        raw.append(race(task, systems, range(starts), threads, budget, GAP)._asdict())
        tell(raw, suite)  # as soon as there is something: a long run may be cut short
        if threads == 1:
            raw.append({"task": task.name, "levels": at_levels(task, range(1 if quick else 2), budget)})
            tell(raw, suite)


def main(quick: bool = False, full: bool = False) -> None:
    """Digits; the smaller network also with two threads."""
    small, deep = tasks()
    given = [(small, 1)] if quick else [(small, 1), (deep, 1), (small, 2)]
    run("sparse_nets", given, 1 if quick else 3, 20 if quick else 120, quick)


def tell(raw: list[dict[str, Any]], suite: str = "sparse_nets") -> None:
    """Tables, targets and pictures of stored numbers."""
    tables, targets, races, levels = [], [], [], []
    for found in raw:
        if "levels" in found:
            tables.append(level_table(found["task"], found["levels"]))
            targets += accurate_enough(found["task"], found["levels"])
            levels.append(accuracy_panel(found["task"], found["levels"]))
        else:
            result = Race(**found)
            tables.append(result.table("1 %"))
            targets.append(against_gradients(result))
            races += [result.panel("1 %", 1e-5)] if result.threads == 1 else []
    write(suite, ABOUT, tables, targets, raw)
    for kind, panels in [("objective", races), ("accuracy", levels)]:
        if panels:
            picture(f"{suite}_{kind}", panels)


def accuracy_panel(title: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Non-zeros against accuracy, a curve for each system."""
    curves = []
    for name in dict.fromkeys(row["system"] for row in rows if row["level"]):
        mine = sorted((r["nonzero"], 100 * r["accuracy"]) for r in rows if r["system"] == name)
        curves.append((name, [a for a, _ in mine], [b for _, b in mine]))
    dense = max((100 * r["accuracy"] for r in rows if not r["level"]), default=None)
    lines = [] if dense is None else [(dense, "best dense network")]
    return {"title": title, "x": "non-zero weights", "y": "% test accuracy", "curves": curves,
            "xscale": "log", "lines": lines}  # fmt: skip
