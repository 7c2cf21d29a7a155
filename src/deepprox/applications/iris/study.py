"""The whole study: run it, print it, save it."""

import json
import platform
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from deepprox.applications.iris import figures, ours, plain, rivals, tables
from deepprox.applications.iris.plain import Curves, Lane, Runs, Track
from deepprox.applications.iris.setting import CELLS, GAMMAS, MUS, PENALISED, PRINTED, draw_split
from deepprox.applications.iris.tables import Study
from deepprox.applications.iris.verdicts import Verdict, judge
from deepprox.files import write_text
from deepprox.report.table import Table
from deepprox.runtime import keep_programs, precision

BETWEEN = (0.2, 0.3, 0.5)  # values of mu between the paper's: from where on do the curves meet?
FEW = 5  # splits on which the reasons for a difference are looked for
COLORS = {"met": "green", "missed": "red", "not judged": "yellow"}


class Result(NamedTuple):
    """What was measured, its tables and verdicts, and the files they are in."""

    study: Study
    tables: list[Table]
    verdicts: list[Verdict]
    notes: list[str]
    files: list[Path]


def run(
    splits: int = 20,
    quick: bool = False,
    out: Path = Path("build/iris"),
    seed: int = 0,
    console: Console | None = None,
) -> Result:
    """Reproduce section 4.2 of Polson, Willard and Heidari (2015).

    Parameters
    ----------
    splits : int, default=20
        Random splits into 105 training and 45 test flowers.
    quick : bool, default=False
        Fewer iterations and starts, and no search for the reasons of a difference: for a first look.
    out : Path, default=build/iris
        Folder of the tables and pictures; made if it is not there.
    seed : int, default=0
        Seed of the splits, the starts and the rivals.
    console : rich Console, default=None
        Where to print; a new one otherwise.

    Returns
    -------
    result : Result
        The study, its tables, verdicts and files.
    """
    if splits < 1:
        raise ValueError(f"splits must be at least 1, but is {splits}.")
    console = console or Console()
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, but {out} is a file.")
    out.mkdir(parents=True, exist_ok=True)
    keep_programs()
    rscript = rivals.find_r()
    with precision(np.float64), Progress(console=console, transient=True) as progress:
        study = measure(splits, quick, seed, rscript, progress.track)
    shown = [tables.table_2(study), tables.rates(study), tables.early_stopping(study)]
    shown += [tables.meeting(study), tables.comparison(study)]
    notes = [*([] if rscript else [rivals.ABSENT]), *remarks(study)]
    verdicts = judge(study)
    show(console, shown, notes, verdicts)
    files = save(study, shown, notes, verdicts, out)
    console.print(f"\nSaved in {out}: " + ", ".join(path.name for path in files), highlight=False)
    return Result(study, shown, verdicts, notes, files)


def measure(n_splits: int, quick: bool, seed: int, rscript: str | None, track: Track) -> Study:
    """Run both methods and the rivals."""
    sweeps, n_starts, few = (200, 2, 0) if quick else (1000, 10, min(n_splits, FEW))
    cells = [Lane(*cell, k, True) for cell in CELLS for k in range(n_splits)]
    raw = [Lane(*cell, k, False) for cell in CELLS for k in range(few)]
    between = [Lane(*cell, k, True) for cell in product(GAMMAS, BETWEEN) for k in range(few)]
    runs = plain.run([*cells, *raw, *between], seed, sweeps, track)
    one_prox_step = None
    if few:
        lanes = [*(lane for lane in cells if lane.split < few), *raw]
        one_prox_step = plain.run(lanes, seed, sweeps, track, plain.ONE_PROX_STEP)
    rows = [*ends(runs, cells)]
    for k in track(range(n_splits), description="split, then join: all cells of a split"):
        fits = ours.fit_cells(draw_split(seed, k), seed + k, n_starts)
        rows += [
            {"method": "ours", **_cell(cell), "split": k, **fit._asdict()} for cell, fit in zip(CELLS, fits)
        ]
    of_r = rivals.with_r(rscript, seed, n_splits) if rscript else rivals.stored()
    others = pd.concat([of_r, rivals.with_sklearn(seed, n_splits)], ignore_index=True)
    return Study(seed, n_splits, n_starts, runs, one_prox_step, pd.DataFrame(rows), others)


def ends(runs: Runs, lanes: list[Lane]) -> list[dict]:
    """The last iterates of the first lanes, a row for each."""
    last = Curves(*(column[:, -1] for column in runs.curves))
    return [
        {"method": "plain", "gamma": lane.gamma, "mu": lane.mu, "split": lane.split, "share": last.share[k],
         "train": last.train[k], "test": last.test[k], "objective": last.primal[k]}
        for k, lane in enumerate(lanes)
    ]  # fmt: skip


def _cell(cell: tuple[float, float]) -> dict[str, float]:
    return {"gamma": cell[0], "mu": cell[1]}


def remarks(study: Study) -> list[str]:
    """What a reader should know about the fits, and about where they differ from the paper."""
    fits = study.cells[study.cells.method == "ours"]
    dense, sparse = fits[fits.gamma == 0], fits[fits.gamma > 0]
    certified = (sparse.status == "converged").sum()
    means = sparse.groupby(["gamma", "mu"]).share.mean().unstack()
    return [
        f"Ours, gamma_w 0: {(dense.train == 1).sum()} of {len(dense)} networks separate their training "
        f"flowers. Where that can be done the loss has no minimum and the weights grow without end; a fit "
        f"then stops where its gradient is below {ours.TOL:.0e}, here with a largest weight of "
        f"{dense.largest.median():.0f} in the median.",
        f"Ours, gamma_w > 0: {certified} of {len(sparse)} fits are certified at {ours.TOL:.0e}, each the "
        f"best of {study.n_starts} starts. mu is only where rho starts: between the three mu the mean shares "
        f"differ by {np.ptp(means, axis=1).max():.3f} at most.",
        *beside_the_paper(study),
    ]


def beside_the_paper(study: Study) -> list[str]:
    """Which way of running the plain ADMM comes nearest to the printed shares, and when."""
    ways = tables.variants(study)
    stops = {name: [tables.common_stop(shares, (mu,)) for mu in MUS] for name, shares in ways.items()}
    name = min(stops, key=lambda name: sum(off**2 for _, off in stops[name]))
    when = "; ".join(
        f"mu {mu:g}: iteration {at}, off by {off:.2f}" for mu, (at, off) in zip(MUS, stops[name])
    )
    below = [study.mean("share", "plain", *cell) <= PRINTED[cell] for cell in PENALISED]
    told = [
        f"Plain ADMM beside the paper: run to the end its share is at or below the printed one in "
        f'{sum(below)} of 9 cells. Of the ways in the table of early stopping, "{name}" with one stop for '
        f"each mu comes nearest ({when})."
    ]
    if study.one_prox_step is not None:
        few = len(study.plain.cell(*CELLS[0], standardize=False).share)
        told.append(
            f"Inputs in centimetres, one prox step in a W-step, and mu other than the paper's were run on "
            f"{few} splits."
        )
    return told


def show(console: Console, shown: list[Table], notes: list[str], verdicts: list[Verdict]) -> None:
    """Print tables, notes and verdicts."""
    for table in shown:
        console.print(table.text(width=110) + "\n", highlight=False, markup=False, soft_wrap=True)
    for note in notes:
        console.print(note, highlight=False, markup=False)
    console.print()
    for verdict in verdicts:
        word = f"[{COLORS[verdict.outcome]}]{verdict.outcome:<10}[/]"
        console.print(f"{word} {escape(verdict.claim)}: {escape(verdict.evidence)}", highlight=False)


def save(
    study: Study, shown: list[Table], notes: list[str], verdicts: list[Verdict], out: Path
) -> list[Path]:
    """Tables as Markdown, every fit as CSV, verdicts and settings as JSON, and the pictures."""
    lines = [f"- **{v.outcome}** {v.claim}: {v.evidence}" for v in verdicts]
    page = [
        *map(tables.markdown, shown),
        "\n".join(f"- {note}" for note in notes),
        "### Verdicts\n\n" + "\n".join(lines),
    ]
    files = {name: out / name for name in ("tables.md", "cells.csv", "rivals.csv", "result.json")}
    write_text(files["tables.md"], "\n\n".join(page) + "\n")
    write_text(files["cells.csv"], study.cells.to_csv(index=False))
    write_text(files["rivals.csv"], study.rivals.to_csv(index=False))
    settings = {"seed": study.seed, "splits": study.n_splits, "starts": study.n_starts}
    settings["iterations"] = study.plain.curves.primal.shape[1]
    versions = {name: version(name) for name in ("deepprox", "jax", "numpy", "scikit-learn")}
    record = {
        "settings": settings,
        "versions": versions | {"python": platform.python_version()},
        "tables": [
            {"title": t.title, "header": list(t.header), "rows": [list(r) for r in t.rows]} for t in shown
        ],
        "notes": notes,
        "verdicts": [verdict._asdict() for verdict in verdicts],
    }
    write_text(files["result.json"], json.dumps(record, indent=2) + "\n")
    return [*files.values(), *figures.save_all(study, out)]
