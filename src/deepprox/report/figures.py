"""Pictures of a report: matplotlib's SVG, its colours handed over to the page."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from deepprox.plotting import ConvergenceDisplay, RegularizationPathDisplay
from deepprox.plotting.colours import FAINT, INK, MUTED
from deepprox.plotting.convergence import MEASURES, PHASES

SIZE = (5.4, 3.5)  # inches: at the width of a phone the letters can still be read
GROUPS = 10  # of observations in a calibration curve
CLOUD = "#4A7BD0"
MANY = 3000  # points from which on a cloud is drawn as an image
PATH_CURVES = {"bic": "BIC", "fold_loss": "loss of folds", "validation_loss": "validation loss"}
PATH_MARKS = ("bic", "aic", "ebic", "1se", "min", "validation")
NO_METADATA = ("Date", "Creator", "Format", "Type")
THEME = {
    INK: "--ink",
    MUTED: "--soft",
    "#000000": "--fg",
    "#ffffff": "--grid",
    FAINT: "--grid",
    **{color: f"--{phase}" for phase, (color, _) in PHASES.items()},
    MEASURES["primal"][0]: "--red",
    MEASURES["dual"][0]: "--amber",
    MEASURES["certificate"][0]: "--green",
}


def inline_svg(drawn: Any) -> str:
    """A figure as an SVG element in the colours of the page, its letters as text."""
    import matplotlib

    # names of parts are made from the salt: two pictures of a page must not share them
    salt = f"{len(drawn.axes)}-{[ax.get_ylabel() + ax.get_xlabel() for ax in drawn.axes]}"
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        drawn.savefig(buffer, format="svg", transparent=True, metadata=dict.fromkeys(NO_METADATA))
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    for color, variable in THEME.items():
        svg = svg.replace(color.lower(), f"var({variable})")
    return svg


def of_draws(drawn: Any) -> str:
    """A figure of the posterior as an SVG element, and the figure closed."""
    import matplotlib.pyplot as plt

    svg = inline_svg(drawn)
    plt.close(drawn)
    return svg


@contextmanager
def panel(height: float = SIZE[1]) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, plain and without a frame on top and right."""
    from matplotlib.figure import Figure

    drawn = Figure((SIZE[0], height), layout="constrained")
    ax = drawn.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    yield drawn, ax


def convergence(model: Any) -> str:
    """Objective and residuals over the iterations."""
    import matplotlib.pyplot as plt

    drawn = ConvergenceDisplay(model.history_, tol=model.tol).plot().figure_
    drawn.set_size_inches(6.2, 4.8)
    if drawn.axes[0].get_yscale() == "linear":
        drawn.axes[0].ticklabel_format(useOffset=False)
    plt.close(drawn)  # it belongs to the page, not to the screen
    return inline_svg(drawn)


def calibration(predicted: np.ndarray, observed: np.ndarray, of: str) -> str:
    """Means of the observed against means of the predicted, in groups of equal size, with standard errors."""
    order = np.argsort(predicted, kind="stable")
    groups = [part for part in np.array_split(order, GROUPS) if len(part)]
    x = np.array([predicted[part].mean() for part in groups])
    y = np.array([observed[part].mean() for part in groups])
    error = np.array([observed[part].std() / np.sqrt(len(part)) for part in groups])
    with panel() as (drawn, ax):
        low, high = min(x.min(), y.min()), max(x.max(), y.max())
        ax.plot([low, high], [low, high], color=MUTED, lw=1, ls=":", label="perfect")
        ax.errorbar(x, y, error, fmt="o-", color=INK, lw=1.4, ms=5, capsize=2, label="groups of equal size")
        ax.set_xlabel(f"mean predicted {of}")
        ax.set_ylabel(f"mean observed {of}")
        ax.legend(frameon=False, fontsize=9, loc="best")
        return inline_svg(drawn)


def fitted_and_observed(fitted: np.ndarray, observed: np.ndarray) -> str:
    """Every observation against its prediction."""
    with panel() as (drawn, ax):
        low, high = min(fitted.min(), observed.min()), max(fitted.max(), observed.max())
        ax.plot([low, high], [low, high], color=MUTED, lw=1, ls=":")
        _cloud(ax, fitted, observed)
        ax.set_xlabel("predicted")
        ax.set_ylabel("observed")
        return inline_svg(drawn)


def residuals(fitted: np.ndarray, observed: np.ndarray) -> str:
    """What is left of every observation against its prediction."""
    with panel() as (drawn, ax):
        ax.axhline(0, color=MUTED, lw=1, ls=":")
        _cloud(ax, fitted, observed - fitted)
        ax.set_xlabel("predicted")
        ax.set_ylabel("observed less predicted")
        return inline_svg(drawn)


def path(record: Mapping[str, Any]) -> str:
    """Inputs, sizes and criteria along a path, and where every rule chooses."""
    import matplotlib.pyplot as plt

    frame = record["frame"]
    sizes = {"live inputs": frame["n_inputs"], "non-zero weights": frame["n_nonzero"]}
    curves = {words: {words: _numbers(frame[name])} for name, words in PATH_CURVES.items() if name in frame}
    drawn = RegularizationPathDisplay(
        _numbers(frame["alpha"]),
        np.array([*record["norms"].values()], float).T,
        [*record["norms"]],
        {name: _numbers(values) for name, values in sizes.items()},
        curves,
        {rule: pick["alpha"] for rule, pick in record["picks"].items() if rule in PATH_MARKS},
    ).plot()
    drawn.figure_.set_size_inches(6.6, 3.4 + 1.5 * (1 + len(curves)))
    plt.close(drawn.figure_)
    return inline_svg(drawn.figure_)


def _numbers(values: Sequence[Any]) -> np.ndarray:
    """Numbers of a file, where null is not a number."""
    return np.array([np.nan if value is None else value for value in values], float)


def _cloud(ax: Any, x: np.ndarray, y: np.ndarray) -> None:
    # an image keeps its colour on a dark page
    many = len(x) > MANY
    ax.plot(x, y, "o", color=CLOUD if many else INK, ms=3.2, alpha=0.45, mew=0, rasterized=many)
