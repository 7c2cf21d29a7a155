"""A regularisation path as a picture."""

from typing import Any

import numpy as np

from deepprox.plotting.axes import need_axes
from deepprox.plotting.colours import FAINT, INK, MUTED, SEQUENCE

NAMED = len(SEQUENCE)  # inputs that get a colour and a name; the others are drawn faintly


class RegularizationPathDisplay:
    """Norms of the inputs' weights, sizes, a criterion and scores against the strength of the penalty.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Strengths.
    norms : ndarray of shape (n_alphas, n_inputs)
        Norms of the first-block weights of every input.
    names : list of str
        Names of the inputs.
    sizes : dict of str to ndarray of shape (n_alphas,)
        Counts to draw: live inputs, non-zero weights.
    curves : dict of str to dict of str to ndarray of shape (n_alphas,)
        Panels below, by the name of their axis: lines by their name.
    chosen : dict of str to float, default=None
        Strengths to mark, by the rule that chose them.

    Attributes
    ----------
    ax_ : Axes
        The panel of the norms.
    axes_ : list of Axes
        All panels.
    figure_ : Figure
        The figure that holds them.
    """

    def __init__(
        self,
        alphas: np.ndarray,
        norms: np.ndarray,
        names: list[str],
        sizes: dict[str, np.ndarray],
        curves: dict[str, dict[str, np.ndarray]],
        chosen: dict[str, float] | None = None,
    ) -> None:
        self.alphas = alphas
        self.norms = norms
        self.names = names
        self.sizes = sizes
        self.curves = curves
        self.chosen = chosen or {}

    @classmethod
    def from_path(cls, path: Any, criterion: str = "bic", ax: Any = None) -> "RegularizationPathDisplay":
        """Draw a path.

        Parameters
        ----------
        path : Path
            What :func:`deepprox.path` returned.
        criterion : str, default="bic"
            The criterion to draw and whose choice to mark, for a loss that is a likelihood.
        ax : Axes, default=None
            Where to draw the norms alone; a new figure of several panels otherwise.

        Returns
        -------
        display : RegularizationPathDisplay
            The drawing.
        """
        frame = path.frame()
        sizes = {"live inputs": frame.n_inputs.to_numpy(), "non-zero weights": frame.n_nonzero.to_numpy()}
        curves, chosen = {}, {}
        if criterion in frame and frame[criterion].notna().any():
            curves[criterion.upper()] = {criterion.upper(): frame[criterion].to_numpy()}
            chosen[criterion.upper()] = path.select(criterion).alpha
        scores = {
            name: frame[f"{name}_score"].to_numpy()
            for name in ("train", "validation")
            if f"{name}_score" in frame
        }
        curves["score"] = scores
        if "validation" in scores:
            chosen["1se"] = path.select("1se").alpha
        return cls(path.alphas, path.input_norms, path.input_names, sizes, curves, chosen).plot(ax=ax)

    def plot(self, ax: Any = None) -> "RegularizationPathDisplay":
        """Draw, into ``ax`` the norms alone or into a new figure all panels.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw the norms.

        Returns
        -------
        display : RegularizationPathDisplay
            This object, with ``ax_``, ``axes_`` and ``figure_``.
        """
        import matplotlib.pyplot as plt

        need_axes(ax)
        if ax is None:
            count = 2 + len(self.curves)
            self.figure_, axes = plt.subplots(
                count,
                1,
                sharex=True,
                figsize=(7.4, 2.6 + 1.7 * (count - 1)),
                height_ratios=[1.8] + [1] * (count - 1),
                layout="constrained",
            )
            self.axes_ = list(axes)
        else:
            self.figure_, self.axes_ = ax.figure, [ax]
        self.ax_ = self.axes_[0]
        self._draw_norms(self.ax_)
        if len(self.axes_) > 1:
            self._draw_sizes(self.axes_[1])
        for panel, (label, lines) in zip(self.axes_[2:], self.curves.items()):
            self._draw_lines(panel, label, lines)
        for panel in self.axes_:
            self._mark(panel, named=panel is self.ax_)
        self.axes_[-1].set_xscale("log")
        self.axes_[-1].set_xlabel("strength of the penalty, alpha")
        return self

    def _draw_norms(self, ax: Any) -> None:
        top = self.norms.max(axis=0)
        # the inputs that live longest get the colours; among those, the largest first
        lives = (self.norms > 0).sum(axis=0)
        order = np.lexsort((-top, -lives))
        for j in order[NAMED:]:
            ax.plot(self.alphas, self.norms[:, j], color=FAINT, lw=0.9, zorder=1)
        for j, colour in zip(order[:NAMED], SEQUENCE):
            ax.plot(self.alphas, self.norms[:, j], color=colour, lw=1.6, label=_short(self.names[j]))
        ax.set_ylabel("norm of an input's weights")
        more = f"and {len(order) - NAMED} more, faint" if len(order) > NAMED else None
        ax.legend(
            frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), title=more,
            title_fontsize=8,
        )  # fmt: skip
        _tidy(ax)

    def _draw_sizes(self, ax: Any) -> None:
        (first, inputs), (second, weights) = self.sizes.items()
        ax.step(self.alphas, inputs, where="mid", color=INK, lw=1.5)
        ax.set_ylabel(first, color=INK)
        ax.set_ylim(bottom=0)
        twin = ax.twinx()
        twin.step(self.alphas, weights, where="mid", color=SEQUENCE[1], lw=1.2, ls="--")
        twin.set_ylabel(second, color=SEQUENCE[1])
        twin.set_ylim(bottom=0)
        twin.spines[["top", "left"]].set_visible(False)
        _tidy(ax)

    def _draw_lines(self, ax: Any, label: str, lines: dict[str, np.ndarray]) -> None:
        for (name, values), colour in zip(lines.items(), SEQUENCE):
            ax.plot(self.alphas, values, color=colour, lw=1.5, label=name)
        ax.set_ylabel(label)
        if len(lines) > 1:
            ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        _tidy(ax)

    def _mark(self, ax: Any, named: bool) -> None:
        marks: dict[float, list[str]] = {}
        for rule, alpha in self.chosen.items():
            marks.setdefault(alpha, []).append(rule)
        for alpha, rules in marks.items():
            ax.axvline(alpha, color=MUTED, lw=1, ls=":")
            if named:
                style = {"ha": "center", "va": "bottom", "fontsize": 8, "color": MUTED}
                ax.text(alpha, 1.01, ", ".join(rules), transform=ax.get_xaxis_transform(), **style)


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.01)


def _short(name: str, most: int = 24) -> str:
    """A name that fits beside a picture; text that would be read as mathematics is not."""
    return (name if len(name) <= most else name[: most - 1] + "…").replace("$", r"\$")
