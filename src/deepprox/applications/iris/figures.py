"""The pictures of the study: Figures 1 and 2 of the paper, and the share of non-zeros over the iterations."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from deepprox.applications.iris.setting import CELLS, GAMMAS, MUS, PRINTED
from deepprox.applications.iris.tables import Study, passes, standard_error
from deepprox.files import replacing

# Okabe and Ito's colours, which all eyes tell apart
BLUE, ORANGE, GREEN, INK, MUTED = "#0072B2", "#D55E00", "#009E73", "#222222", "#6B7280"


def save_all(study: Study, out: Path) -> list[Path]:
    """Draw and save every picture."""
    pictures = {
        "figure1.png": objectives(study),
        "figure2.png": rates(study),
        "shares.png": shares(study),
    }
    for name, figure in pictures.items():
        with replacing(out / name) as file:
            figure.savefig(file, dpi=150)
    return [out / name for name in pictures]


def objectives(study: Study) -> Figure:
    """Figure 1: primal and dual objective of the plain ADMM, median and middle 80 % of the splits."""
    title = "Figure 1: primal and dual objective of the plain ADMM, median and middle 80 % of the splits"
    figure, axes = _grid(title, "objective (sum scale)")
    for cell, ax in axes.items():
        curves = study.plain.cell(*cell)
        ax.set_yscale("log")
        for values, color, label, style in (
            (curves.dual, ORANGE, "dual: augmented Lagrangian", "-"),
            (curves.primal, BLUE, "primal: objective of the network", (0, (5, 2))),
        ):
            middle, low, high = np.percentile(values, [50, 10, 90], axis=0)
            _band(ax, middle, low, high, color, label, style)
        at_end = f"gap at the end {np.median(curves.gap()):.1%}"
        ax.text(0.97, 0.95, at_end, transform=ax.transAxes, ha="right", va="top", fontsize=9, color=MUTED)
    for gamma in GAMMAS:
        ax, lowest = axes[gamma, MUS[0]], min(study.plain.cell(gamma, mu).primal.min() for mu in MUS)
        ax.set_ylim(bottom=0.8 * lowest)  # a Lagrangian may be negative, which has no logarithm
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5) if gamma else (1,)))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.minorticks_off()
    _finish(figure, axes)
    return figure


def rates(study: Study) -> Figure:
    """Figure 2: classification rates of the plain ADMM over its iterations; ours at the right edge."""
    title = "Figure 2: classification rates over the iterations of the plain ADMM, and ours at the right edge"
    figure, axes = _grid(title, "classification rate")
    for cell, ax in axes.items():
        curves, fits = study.plain.cell(*cell), study.cell("ours", *cell)
        end = curves.train.shape[1]
        for name, color, at in (("train", BLUE, 1.35), ("test", ORANGE, 1.9)):
            values = getattr(curves, name)
            mean, error = values.mean(0), _errors(values)
            _band(ax, mean, mean - error, mean + error, color, f"{name}, plain ADMM", "-")
            ours = fits[[name]].to_numpy()
            style = {"fmt": "D", "ms": 4, "capsize": 2, "color": color, "label": f"{name}, ours"}
            ax.errorbar(end * at, ours.mean(), _errors(ours), **style)
        ax.axvline(end * 1.12, color=MUTED, lw=0.6)
        ax.set_xlim(1, end * 2.4)
        ax.set_ylim(0.8, 1.01)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    _finish(figure, axes)
    return figure


def _errors(values: np.ndarray) -> np.ndarray:
    """The standard error of every column; none to draw for a single row."""
    return np.nan_to_num([standard_error(column) for column in values.T])


def shares(study: Study) -> Figure:
    """Share of non-zeros over the iterations: where the plain ADMM passes the printed value, where we end."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots(1, len(MUS), sharey=True)
    for mu, ax in zip(MUS, axes):
        for gamma, color, at in zip(GAMMAS[1:], (BLUE, GREEN, ORANGE), (1.3, 1.5, 1.73)):
            share, printed = study.plain.cell(gamma, mu).share.mean(0), PRINTED[gamma, mu]
            end = len(share)
            ax.plot(np.arange(1, end + 1), share, color=color, lw=1.5, label=rf"$\gamma_w$ = {gamma:g}")
            ax.plot([1, end], [printed, printed], color=color, lw=0.9, ls=":")
            if when := passes(share, printed):
                ax.plot(when, printed, "o", mfc="white", color=color, ms=6)
            ax.plot(end * at, study.mean("share", "ours", gamma, mu), "D", color=color, ms=5)
        ax.axvline(end * 1.12, color=MUTED, lw=0.6)
        ax.set(xscale="log", xlim=(1, end * 2.1), ylim=(0, 1.02), xlabel="iteration")
        ax.set_title(rf"$\mu$ = {mu:g}", fontsize=10, color=INK)
        _quiet(ax)
    axes[0].set_ylabel("share of non-zeros")
    axes[0].legend(frameon=False, loc="upper right", bbox_to_anchor=(0.92, 1.0))
    title = "Share of non-zeros: plain ADMM (lines), the paper's (dotted; circle: passed), ours (diamonds)"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure


def _grid(title: str, unit: str) -> tuple[Figure, dict[tuple[float, float], Any]]:
    """A panel for each cell: rows are gamma_w, columns are mu."""
    figure = Figure(figsize=(10, 10), layout="constrained")
    panels = figure.subplots(len(GAMMAS), len(MUS), sharex=True, sharey="row")
    axes = {(gamma, mu): panels[i, j] for i, gamma in enumerate(GAMMAS) for j, mu in enumerate(MUS)}
    for (gamma, mu), ax in axes.items():
        ax.set_title(rf"$\gamma_w$ = {gamma:g},  $\mu$ = {mu:g}", fontsize=10, color=INK)
        ax.set_xscale("log")
    for ax in panels[-1]:
        ax.set_xlabel("iteration")
    for ax in panels[:, 0]:
        ax.set_ylabel(unit)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure, axes


def _band(ax: Any, middle: Any, low: Any, high: Any, color: str, label: str, style: Any) -> None:
    at = np.arange(1, len(middle) + 1)
    ax.fill_between(at, low, high, color=color, alpha=0.2, lw=0)
    ax.plot(at, middle, color=color, lw=1.4, ls=style, label=label)


def _finish(figure: Figure, axes: dict) -> None:
    for ax in axes.values():
        _quiet(ax)
    handles, labels = axes[CELLS[0]].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)


def _quiet(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#E5E7EB", lw=0.6)
    ax.set_axisbelow(True)
