"""What a suite found: tables on the screen, ``results/*.json`` and ``*.md``, and pictures."""

import json
import math
import os
import platform
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

from benchmarks import show

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib import ticker

RESULTS = Path(__file__).parents[1] / "results"
OURS_COLOUR, OURS_PALE = "#c1272d", "#e58a8d"
OURS_LINES = {"deepprox": "-", "deepprox, batches, validated": ":"}
OTHERS = ("#1f5fa8", "#e08a00", "#3b8f4d", "#7a4fa3", "#5a5a5a", "#15a0a0", "#9c6b3f")
MARKS = "osD^vP*X"


class Target(NamedTuple):
    """What was wanted, what came out, and whether that is it."""

    text: str
    found: str
    met: bool


class Table(NamedTuple):
    """A title, names of columns, and rows of cells."""

    title: str
    columns: list[str]
    rows: list[list[Any]]


def cell(value: Any) -> str:
    """A number to four digits; nothing where there is none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def machine() -> str:
    """The processor, how many cores of it are ours, and how busy they are."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor()
    return f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def write(
    suite: str, about: str, tables: list[Table], targets: list[Target], raw: Any, where: str = ""
) -> None:
    """Print the tables, and keep them with the numbers that they came from, and the machine they are from."""
    RESULTS.mkdir(exist_ok=True)
    told = [target._asdict() for target in targets]
    kept = _finite({"suite": suite, "machine": where or machine(), "targets": told, "raw": raw})
    file = RESULTS / f"{suite}.json"
    if file.exists() and (before := json.loads(file.read_text()))["raw"] == kept["raw"]:
        kept["machine"] = before["machine"]  # the same numbers, told again
    file.write_text(json.dumps(kept, indent=1) + "\n")
    lines = [f"# {suite}", "", about, "", f"Machine: {kept['machine']}.", ""]
    for title, columns, rows in tables:
        show.table(title, columns, [[cell(value) for value in row] for row in rows])
        lines += [
            f"## {title}",
            "",
            f"| {' | '.join(columns)} |",
            "|---" + "|---:" * (len(columns) - 1) + "|",
        ]
        lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows] + [""]
    if targets:
        show.table(
            f"{suite}: targets", ["", "found", ""], [[t.text, t.found, show.met(t.met)] for t in targets]
        )
        lines += ["## Targets", "", "| target | found | |", "|---|---:|---|"]
        lines += [f"| {t.text} | {t.found} | {'met' if t.met else 'missed'} |" for t in targets]
    (RESULTS / f"{suite}.md").write_text("\n".join(lines).rstrip() + "\n")


def _finite(tree: Any) -> Any:
    """The same with nothing in place of what JSON has no number for."""
    if isinstance(tree, dict):
        return {str(key): _finite(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_finite(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


def _small_ticks(x: float, _: Any) -> str:
    """Twos and fives between the powers of ten."""
    return f"{x:g}" if f"{x:e}"[0] in "25" else ""


def read(suite: str) -> Any:
    """The numbers that a suite kept."""
    return json.loads((RESULTS / f"{suite}.json").read_text())["raw"]


def picture(name: str, panels: list[dict[str, Any]]) -> None:
    """A panel for each: ``title``, ``x``, ``y``, scales, ``lines``, and ``curves`` of (name, xs, ys)."""
    wide = 2 if len(panels) == 4 else len(panels)
    figure, axes = plt.subplots(
        -(-len(panels) // wide),
        wide,
        figsize=(5.8 * wide, 0.8 + 4.2 * -(-len(panels) // wide)),
        squeeze=False,
    )
    names = list(dict.fromkeys(curve[0] for panel in panels for curve in panel["curves"]))
    others = [n for n in names if not n.startswith("deepprox")]
    for ax, panel in zip(axes.flat, panels):
        _draw(ax, panel, others)
    seen = {label: line for ax in axes.flat for line, label in zip(*ax.get_legend_handles_labels())}
    room = 0.0
    if len(seen) > 1:
        columns = min(2 * wide, 4, len(seen))
        figure.legend(seen.values(), seen, loc="lower center", ncol=columns, frameon=False, fontsize=9)
        room = 0.25 * (0.5 + -(-len(seen) // columns)) / figure.get_figheight()
    figure.tight_layout(rect=(0, room, 1, 1))
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png", dpi=110)
    plt.close(figure)


def _draw(ax: Any, panel: dict[str, Any], others: list[str]) -> None:
    """The curves of one panel: deepprox in red, each of the others in a colour of its own."""
    for label, xs, ys in panel["curves"]:
        ours = label.startswith("deepprox")
        at = 0 if ours else others.index(label)
        line = OURS_LINES.get(label, "--") if ours else "-"
        colour = OTHERS[at % len(OTHERS)] if not ours else OURS_COLOUR if line == "-" else OURS_PALE
        ax.plot(
            xs, ys, marker="o" if ours else MARKS[(at + 1) % len(MARKS)], ms=5, lw=2.2 if ours else 1.3,
            ls=line, color=colour, label=label, zorder=3 if ours else 2,
        )  # fmt: skip
    for level, words in panel.get("lines", []):
        ax.axhline(level, color="#888888", lw=0.8, ls=":")
        ax.annotate(
            words, (0.01, level), xycoords=("axes fraction", "data"), ha="left", va="top", fontsize=8,
            color="#555555",
        )  # fmt: skip
    ax.set(title=panel["title"], xlabel=panel["x"], ylabel=panel["y"])
    ax.set_xscale(panel.get("xscale", "linear"))
    ax.set_yscale(panel.get("yscale", "linear"))
    plain = [ax.xaxis] if panel.get("xscale") == "log" else []
    for axis in plain + ([ax.yaxis] if panel.get("plain") else []):
        axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_minor_formatter(ticker.FuncFormatter(_small_ticks))
    if panel.get("whole"):
        ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    if "ticks" in panel:
        ax.set_xticks(panel["ticks"], [str(tick) for tick in panel["ticks"]])
        ax.set_xticks([], minor=True)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
