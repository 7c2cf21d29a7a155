"""Draw ``convergence.png``, one fit phase by phase, and ``path.png``, one regularisation path.

Run with ``.venv/bin/python docs/images/make.py``. The data of the fit and the strength are those of
``python -m benchmarks digits``: a 64-50-10 ReLU network on 1257 digits, gamma 1 on the sum of the losses.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

import deepprox
import deepprox.selection
from deepprox import DeepClassifier

PICTURE = Path(__file__).with_name("convergence.png")
PATH_PICTURE = Path(__file__).with_name("path.png")
SHADES = {"split": "#E6EDF7", "join": "#FBF3E6", "prune": "#F9E9EC", "newton": "#E0F0E4"}
NAMES = {"split": "split: ADMM", "join": "join: quasi-Newton", "prune": "prune", "newton": "Newton"}
BLUE, GREEN, RED, GREY, INK = "#1F4E9C", "#1E7F5C", "#C2502E", "#6B7480", "#1C2430"
TOL = 1e-8


def fit() -> tuple[DeepClassifier, int]:
    """One start, every weight and bias penalised, inputs as they are; and the number of rows."""
    X, y = load_digits(return_X_y=True)
    X = X / 16 - (X / 16).mean(0)
    rows = np.random.default_rng(1).permutation(1797)[:1257]
    model = DeepClassifier(
        hidden_layer_sizes=(50,),
        link="relu",
        alpha=1 / len(rows),
        penalize_bias=True,
        standardize=False,
        tol=TOL,
        random_state=0,
    )
    return model.fit(X[rows], y[rows]), len(rows)


def draw(history: Any, n: int, n_weights: int, status: str) -> None:
    """Objective on the sum scale, residuals and share of non-zeros, from the first iteration to the last."""
    import matplotlib.pyplot as plt

    quiet = {"axes.edgecolor": "#B5BBC4", "xtick.color": GREY, "ytick.color": GREY}
    mpl.rcParams.update({"font.size": 11.5, "axes.labelcolor": INK, "text.color": INK, **quiet})
    figure, axes = plt.subplots(
        3, 1, sharex=True, figsize=(8.8, 6.8), height_ratios=(5, 5, 3), layout="constrained"
    )
    x, spans = stretch(history)
    top, middle, bottom = axes

    objective = n * history.objective
    top.plot(x, n * history.split_objective, color=GREY, lw=1.5, ls=(0, (4, 2)), label="split objective")
    top.plot(x, objective, color=BLUE, lw=2.4, label="objective of the network")
    scale(top, "objective", [200, 400, 800, 1600], "{:g}")
    end(top, x[-1], objective.iloc[-1], f"{objective.iloc[-1]:.2f}", BLUE)
    top.legend(frameon=False, loc="upper right", bbox_to_anchor=(0.88, 1.0))

    middle.plot(x, history.primal, color=RED, lw=1.8)
    middle.plot(x, history.certificate, color=GREEN, lw=2.0)
    newton = (history.phase == "newton").to_numpy()
    middle.plot(x[newton], history.certificate[newton], "o", color=GREEN, ms=4.5)
    middle.axhline(TOL, color=GREY, lw=1.2, ls=":")
    middle.text(0.01 * x[-1], 1.4 * TOL, "tol", color=GREY, va="bottom")
    middle.text(x[2], 0.25, "primal residual", color=RED, va="top")
    middle.text(x[int(0.45 * len(x))], 6e-3, "certificate", color=GREEN, va="bottom")
    scale(middle, "residuals", [1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10], "")
    last = history.certificate.iloc[-1]
    end(middle, x[-1], last, f"{last:.0e}", GREEN)

    share = 100 * history.n_nonzero / n_weights
    bottom.plot(x, share, color=INK, lw=2.2)
    scale(bottom, "non-zeros", [5, 10, 20], "{:g} %")
    bottom.set_ylim(top=1.3 * share.max())
    end(bottom, x[-1], share.iloc[-1], f"{share.iloc[-1]:.1f} %", INK)

    for ax in axes:
        shade(ax, spans, named=ax is top)
    ends = [last for *_, last in spans]
    marks = [at for at in history.iteration if at % 100 == 0 or at in ends]
    room = 0.04 * x[-1]  # of two marks that would touch, the later stays
    marks = [
        at for at, after in zip(marks, [*marks[1:], None]) if after is None or x[after - 1] - x[at - 1] > room
    ]
    bottom.set_xticks([x[at - 1] for at in marks], marks)
    bottom.set_xlabel("iteration (every phase on its own scale)")
    title = f"Digits, 64-50-10 ReLU, lasso on all weights: {status} after {len(history)} iterations"
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    figure.savefig(PICTURE, dpi=200)


def stretch(history: Any) -> tuple[np.ndarray, list[tuple[str, float, float, int]]]:
    """A place for every iteration, and (phase, left, right, last iteration) of every run of a phase.

    A run of k iterations gets a width of sqrt(k), so that a few Newton steps can be seen.
    """
    runs = history.groupby((history.phase != history.phase.shift()).cumsum())
    x, spans, left = [], [], 0.0
    for _, run in runs:
        width = np.sqrt(len(run))
        x.append(left + width * np.arange(1, len(run) + 1) / len(run))
        spans.append((run.phase.iloc[0], left, left + width, int(run.iteration.iloc[-1])))
        left += width
    return np.concatenate(x), spans


def scale(ax: Any, name: str, ticks: list[float], form: str) -> None:
    """A logarithmic axis with these ticks alone, written out where a form is given."""
    ax.set_yscale("log")
    ax.set_ylabel(name)
    ax.set_yticks(ticks, [form.format(tick) for tick in ticks] if form else None)
    ax.minorticks_off()


def end(ax: Any, x: float, y: float, text: str, color: str) -> None:
    """A dot at the end of a curve, and its value."""
    ax.plot(x, y, "o", color=color, ms=7, clip_on=False, zorder=5)
    style = {"ha": "right", "va": "bottom", "color": color, "fontweight": "bold"}
    ax.annotate(text, (x, y), (-10, 7), textcoords="offset points", **style)


def shade(ax: Any, spans: list[tuple[str, float, float, int]], named: bool) -> None:
    """A background for every run of a phase; the name of each phase over its longest run."""
    for name, left, right, _ in spans:
        ax.axvspan(left, right, color=SHADES[name], lw=0, zorder=0)
    ax.set_xlim(0, spans[-1][2])
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="white", lw=1.0)
    ax.set_axisbelow(True)
    for name in dict.fromkeys(span[0] for span in spans) if named else ():
        _, left, right, _ = max((span for span in spans if span[0] == name), key=lambda s: s[2] - s[1])
        style = {"ha": "center", "va": "bottom", "color": GREY}
        ax.text((left + right) / 2, 1.02, NAMES[name], transform=ax.get_xaxis_transform(), **style)


def main() -> None:
    """Fit and draw."""
    mpl.use("agg")
    model, n = fit()
    n_weights = sum(w.size for w in (*model.coefs_, *model.intercepts_))
    draw(model.history_, n, n_weights, model.solution_.status)
    certificate = model.solution_.certificate
    print(f"{PICTURE.name}: objective {n * model.objective_:.4f}, certificate {certificate:.1e}")
    print(f"{PATH_PICTURE.name}: {draw_path()}")


def draw_path() -> deepprox.selection.Path:
    """The path of 30-10-2 tanh on the breast cancer data, a quarter of them kept for validation."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, X_new, y, y_new = train_test_split(X, y, stratify=y, random_state=0)
    model = DeepClassifier((10,), link="tanh", random_state=0)
    path = deepprox.path(model, X, y, 50, eps=1e-2, validation=(X_new, y_new))
    mpl.rcParams.update(mpl.rcParamsDefault)
    path.plot().figure_.savefig(PATH_PICTURE, dpi=150)
    return path


if __name__ == "__main__":
    main()
