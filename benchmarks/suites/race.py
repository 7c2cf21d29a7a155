"""Who is within a share of the best objective first: every system from the same data, at every effort."""

from typing import Any, NamedTuple

from benchmarks import show
from benchmarks.suites import measure
from benchmarks.suites.report import Table
from benchmarks.suites.systems import System
from benchmarks.suites.tasks import Task

NEVER = float("inf")
SETTLED = 1.01  # a start that ends elsewhere is given up within 1 % of where it ends
COLUMNS = [
    "system", "warm s", "cold s", "ratio", "starts there", "best objective", "above best", "non-zeros",
    "% test",
]  # fmt: skip


class Standing(NamedTuple):
    """Expected seconds to the goal, how many starts of how many came there, and the quickest that did."""

    seconds: float
    there: int
    starts: int
    quickest: dict[str, Any] | None


def standing(points: measure.Points, goal: float) -> Standing:
    """``(seconds of all starts) / (starts that came there)``: what it takes to start anew until one does.

    A start that came there counts until then, one that ends elsewhere until it had settled there (the
    expected running time of Hansen et al., 2010).
    """
    seeds, spent, hits = sorted({p["seed"] for p in points}), 0.0, []
    for seed in seeds:
        mine = [p for p in points if p["seed"] == seed]
        reached = [p for p in mine if p["objective"] <= goal]
        level = min(p["objective"] for p in mine) * SETTLED
        first = min(reached or [p for p in mine if p["objective"] <= level], key=lambda p: p["seconds"])
        spent += first["seconds"]
        hits += [first] if reached else []
    quickest = min(hits, key=lambda p: p["seconds"], default=None)
    return Standing(spent / len(hits) if hits else NEVER, len(hits), len(seeds), quickest)


class Race(NamedTuple):
    """A task, how many threads, how near the goal is, and every system's points and cold seconds."""

    task: str
    threads: int
    gap: float
    rows: list[dict[str, Any]]

    @property
    def best(self) -> float:
        """The lowest objective of all."""
        return min(p["objective"] for row in self.rows for p in row["points"])

    @property
    def goal(self) -> float:
        """What counts as being there."""
        return self.best + self.gap * abs(self.best)

    def seconds(self, name: str) -> float:
        """Expected warm seconds of a system."""
        points = [p for row in self.rows if row["system"] == name for p in row["points"]]
        return standing(points, self.goal).seconds

    def fastest(self, *names: str) -> tuple[float, str]:
        """The fastest of some, or of all but deepprox."""
        wanted = names or [row["system"] for row in self.rows if row["system"] != "deepprox"]
        return min((self.seconds(name), name) for name in wanted)

    def table(self, share: str) -> Table:
        """The rows for people; ratio is their seconds over those of deepprox."""
        clock = "CPU s" if self.threads == 1 else "s"
        threads = "one thread" if self.threads == 1 else f"{self.threads} threads"
        columns = [name.replace(" s", f" {clock}") if name.endswith(" s") else name for name in COLUMNS]
        title = f"{self.task}: {clock} to {share} of {self.best:.8g}, {threads}"
        return Table(title, columns, [self._cells(row) for row in self.rows])

    def _cells(self, row: dict[str, Any]) -> list[Any]:
        if not row["points"]:
            return [row["system"], row["trouble"], *[""] * (len(COLUMNS) - 2)]
        at, lowest = standing(row["points"], self.goal), min(row["points"], key=lambda p: p["objective"])
        return [
            row["system"], at.seconds, row["cold"], at.seconds / self.seconds("deepprox"),
            f"{at.there} of {at.starts}", lowest["objective"], f"{lowest['objective'] / self.best - 1:.1e}",
            lowest["nonzero"], 100 * lowest["accuracy"],
        ]  # fmt: skip

    def panel(self, words: str, floor: float) -> dict[str, Any]:
        """Seconds against the share above the best of the first start of every system, where it falls."""
        curves = []
        for row in self.rows:
            points = [p for p in row["points"] if p["seed"] == row["points"][0]["seed"]]
            pairs = sorted((p["seconds"], max(p["objective"] / self.best - 1, floor)) for p in points)
            falls = [pair for k, pair in enumerate(pairs) if pair[1] <= min(b for _, b in pairs[: k + 1])]
            if falls:
                curves.append((row["system"], [a for a, _ in falls], [b for _, b in falls]))
        return {"title": self.task, "x": "CPU seconds, one thread", "y": "objective above the best, relative",
                "curves": curves, "xscale": "log", "yscale": "log", "lines": [(self.gap, words)]}  # fmt: skip


def race(
    task: Task, systems: tuple[System, ...], seeds: range, threads: int, budget: float, gap: float
) -> Race:
    """All systems, one after the other; then each once more from cold, at the effort that was quickest."""
    runs = []
    for system in systems:
        show.console.print(f"[dim]{task.name}, {threads} thread(s): {system.name}[/]")
        runs.append(measure.warm(system, task, seeds, threads, budget))
        if runs[-1].trouble:
            show.console.print(f"  {runs[-1].trouble}")
    rows = [
        {"system": run.system.name, "points": run.points, "trouble": run.trouble, "cold": None}
        for run in runs
    ]
    found = Race(task.name, threads, gap, rows)
    for run, row in zip(runs, rows):
        quickest = standing(run.points, found.goal).quickest
        if quickest is not None:
            seed, effort = quickest["seed"], quickest["effort"]
            row["cold"] = measure.cold(run.system, task, seed, effort, threads, budget)
    return found
