"""Selection frequencies as a picture."""

from typing import Any

import numpy as np

from deepprox.plotting.axes import need_axes
from deepprox.plotting.colours import FAINT, INK, MUTED, SEQUENCE

MOST = 25  # bars


class StabilityDisplay:
    """How often every input is alive on half of the observations.

    Parameters
    ----------
    stability : Stability
        What :func:`deepprox.stability_selection` returned.

    Attributes
    ----------
    ax_ : Axes
        The panel.
    figure_ : Figure
        The figure that holds it.
    """

    def __init__(self, stability: Any) -> None:
        self.stability = stability

    def plot(self, ax: Any = None) -> "StabilityDisplay":
        """Draw, lines against the strength, or bars where there is one strength.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; a new figure otherwise.

        Returns
        -------
        display : StabilityDisplay
            This object, with ``ax_`` and ``figure_``.
        """
        import matplotlib.pyplot as plt

        need_axes(ax)
        one = len(self.stability.alphas) == 1
        bars = min(len(self.stability.names), MOST)
        if ax is None:
            size = (6.4, 1.2 + 0.26 * bars) if one else (7.2, 4.2)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        (self._bars if one else self._lines)(ax)
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def _bars(self, ax: Any) -> None:
        frame = self.stability.frame().head(MOST).iloc[::-1]
        colours = np.where(frame.selected, INK, FAINT)
        ax.barh(np.arange(len(frame)), frame.frequency, color=colours, height=0.7)
        ax.set_yticks(np.arange(len(frame)), [str(name).replace("$", r"\$") for name in frame.input])
        ax.axvline(self.stability.threshold, color=MUTED, lw=1, ls=":")
        ax.set_xlim(0, 1)
        ax.set_xlabel(f"share of {self.stability.n_halves} half-samples that keep the input")

    def _lines(self, ax: Any) -> None:
        found = self.stability
        order = np.argsort(-found.highest, kind="stable")
        named = [j for j in order if found.selected[j]][: len(SEQUENCE)]
        for j in order:
            if j not in named:
                ax.plot(found.alphas, found.frequencies[:, j], color=FAINT, lw=0.9, zorder=1)
        for j, colour in zip(named, SEQUENCE):
            label = found.names[j].replace("$", r"\$")
            ax.plot(found.alphas, found.frequencies[:, j], color=colour, lw=1.6, label=label)
        ax.axhline(found.threshold, color=MUTED, lw=1, ls=":")
        ax.set_xscale("log")
        ax.set_ylim(-0.02, 1.02)
        ax.set_xlabel("strength of the penalty, alpha")
        ax.set_ylabel(f"share of {found.n_halves} half-samples that keep the input")
        if named:
            ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
