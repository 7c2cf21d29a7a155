"""The tables of the study, beside what the paper prints."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from deepprox.applications.iris.plain import Curves, Runs
from deepprox.applications.iris.setting import CELLS, GAMMAS, MUS, PENALISED, PRINTED
from deepprox.report.table import Table

TOGETHER = 0.01  # relative gap between primal and dual below which the curves have met


class Study(NamedTuple):
    """Everything measured. ``cells`` and ``rivals`` have one row for each fit."""

    seed: int
    n_splits: int
    n_starts: int
    plain: Runs
    one_prox_step: Runs | None
    cells: pd.DataFrame
    rivals: pd.DataFrame

    def cell(self, method: str, gamma: float, mu: float) -> pd.DataFrame:
        """The fits of one method to one cell, in the order of the splits."""
        cells = self.cells
        return cells[(cells.method == method) & (cells.gamma == gamma) & (cells.mu == mu)]

    def mean(self, column: str, method: str, gamma: float, mu: float) -> float:
        """A mean over the splits."""
        return float(self.cell(method, gamma, mu)[column].mean())


def standard_error(values: Any) -> float:
    """Standard deviation over the square root of the number; not a number for a single one."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def with_error(values: Any, digits: int, scale: float = 1.0) -> str:
    """Mean and standard error over splits, as in ``95.6 ± 0.5``; the mean alone of a single split."""
    mean = f"{scale * np.mean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {scale * standard_error(values):.{digits}f}"


def table_2(study: Study) -> Table:
    """Share of non-zero weights: the paper's, the plain ADMM's and ours."""
    rows = []
    for cell in CELLS:
        shares = [with_error(study.cell(method, *cell).share, 3) for method in ("plain", "ours")]
        rows.append((*_name(cell), f"{PRINTED[cell]:.2f}", *shares))
    header = ("gamma_w", "mu", "paper", "plain ADMM", "ours: split, then join")
    return Table(rows, header, "Table 2: share of non-zero weights" + _over(study), numeric=range(5))


def rates(study: Study) -> Table:
    """Training and test classification rates and objectives of both methods: the ends of Figure 2."""
    rows = []
    for cell in CELLS:
        row = [*_name(cell)]
        for method in ("plain", "ours"):
            fits = study.cell(method, *cell)
            row += [
                with_error(fits.train, 1, 100),
                with_error(fits.test, 1, 100),
                f"{fits.objective.mean():.2f}",
            ]
        rows.append(row)
    header = (
        "gamma_w",
        "mu",
        *(f"{m} {what}" for m in ("plain", "ours") for what in ("train", "test", "objective")),
    )
    return Table(rows, header, "Classification rates in %, and objectives" + _over(study), numeric=range(8))


def variants(study: Study) -> dict[str, list[np.ndarray]]:
    """Ways to run the plain ADMM; of each the mean share over the iterations in every penalised cell."""
    ways = {"standardised": (study.plain, True)}
    if study.one_prox_step is not None:
        ways["centimetres"] = study.plain, False
        ways["standardised, one prox step"] = study.one_prox_step, True
        ways["centimetres, one prox step"] = study.one_prox_step, False
    return {
        name: [runs.cell(*cell, scale).share.mean(0) for cell in PENALISED]
        for name, (runs, scale) in ways.items()
    }


def passes(share: np.ndarray, printed: float) -> int | None:
    """The first iteration at which the share is at or below the printed value."""
    below = np.flatnonzero(share <= printed)
    return int(below[0]) + 1 if len(below) else None


def common_stop(shares: list[np.ndarray], mus: Sequence[float]) -> tuple[int, float]:
    """The iteration at which the shares of these ``mu`` suit the printed ones best, and the distance left.

    The distance is a root mean square.
    """
    some = [k for k, (_, mu) in enumerate(PENALISED) if mu in mus]
    off = np.sqrt(np.mean([(shares[k] - PRINTED[PENALISED[k]]) ** 2 for k in some], axis=0))
    return int(off.argmin()) + 1, float(off.min())


def early_stopping(study: Study) -> Table:
    """When the plain ADMM, run in different ways, passes the printed shares."""

    def told(share: np.ndarray, printed: float) -> str:
        when = passes(share, printed)
        return str(when) if when else f"not by {len(share)} ({share[-1]:.2f})"

    ways = variants(study)
    rows: list[tuple[str, ...]] = []
    for k, cell in enumerate(PENALISED):
        whens = (told(shares[k], PRINTED[cell]) for shares in ways.values())
        rows.append((*_name(cell), f"{PRINTED[cell]:.2f}", *whens))
    for name, mus in (*((f"{mu:g}", (mu,)) for mu in MUS), ("every mu", MUS)):
        stops = (common_stop(shares, mus) for shares in ways.values())
        rows.append(("one stop", name, "", *(f"{at} (off by {off:.2f})" for at, off in stops)))
    header = ("gamma_w", "mu", "paper", *ways)
    title = "Early stopping: iteration of the plain ADMM at which the mean share passes the printed value"
    return Table(rows, header, title, numeric=range(len(header)))


def meeting(study: Study) -> Table:
    """In how many runs primal and dual objective of the plain ADMM end within 1 % of each other."""
    mus = sorted({lane.mu for lane in study.plain.lanes})
    rows = [(f"{mu:g}", *(_met(study.plain.cell(gamma, mu)) for gamma in GAMMAS)) for mu in mus]
    header = ("mu", *(f"gamma_w {gamma:g}" for gamma in GAMMAS))
    n = study.plain.curves.primal.shape[1]
    when = f"from iteration {n - n // 10 + 1} to {n}"
    title = f"Runs whose primal and dual objective stay within {TOGETHER:.0%} of each other {when}"
    return Table(rows, header, title, numeric=range(5))


def _met(curves: Curves) -> str:
    gap = curves.gap()
    return f"{(gap <= TOGETHER).sum()} of {len(gap)}"


def comparison(study: Study, mu: float = 1.0) -> Table:
    """Our rates and the plain ADMM's at one ``mu`` beside those of the rivals, best test rate first."""
    rows = []
    for method, name in (("ours", "deepprox"), ("plain", "plain ADMM")):
        for gamma in GAMMAS:
            fits = study.cell(method, gamma, mu)
            label = f"{name}, gamma_w {gamma:g}"
            rows.append((label, fits.train, fits.test, f"{100 * fits.share.mean():.0f} %", "this run"))
    for (method, source), fits in study.rivals.groupby(["method", "source"], sort=False):
        rows.append((method, fits.train, fits.test, "", source))
    rows.sort(key=lambda row: -row[2].mean())
    cells = [(name, with_error(a, 1, 100), with_error(b, 1, 100), *rest) for name, a, b, *rest in rows]
    header = ("method", "train %", "test %", "non-zeros", "source")
    title = f"Comparison on the same splits (mu {mu:g}{_over(study)}); the paper prints 92 % for nnet"
    return Table(cells, header, title, numeric=(1, 2, 3))


def markdown(table: Table) -> str:
    """A table for a page."""
    rule = ["---:" if k in table.numeric else "---" for k in range(len(table.header))]
    lines = [" | ".join(row) for row in (table.header, rule, *table.rows)]
    return f"### {table.title}\n\n" + "\n".join(f"| {line} |" for line in lines)


def _name(cell: tuple[float, float]) -> tuple[str, str]:
    return f"{cell[0]:g}", f"{cell[1]:g}"


def _over(study: Study) -> str:
    return f", mean ± standard error over {study.n_splits} splits" if study.n_splits > 1 else ", one split"
