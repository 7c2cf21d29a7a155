"""Pictures of a fit, in the manner of scikit-learn's displays."""

from typing import Any

from deepprox.plotting.axes import need_axes
from deepprox.plotting.colours import INK, MUTED

PHASES = {
    "batch": ("#EEF0F2", "batch"),
    "split": ("#E8EEF7", "split"),
    "leaky": ("#F1F3E4", "leaky"),
    "join": ("#FBF1E3", "join"),
    "prune": ("#F9E9EC", "prune"),
    "newton": ("#E9F4EA", "Newton"),
    "stream": ("#F3EEF7", "stream"),
}
MEASURES = {
    "primal": ("#C8553D", "primal residual"),
    "dual": ("#E0A458", "dual residual"),
    "certificate": ("#2A7F62", "certificate"),
}


class ConvergenceDisplay:
    """Objective and residuals of every iteration, phase by phase.

    The forward objective counts; the split objective is drawn beside it while constraints are open. The
    certificate is the largest entry of the prox-gradient residual: zero at a stationary point.

    Parameters
    ----------
    history : DataFrame
        ``history_`` of a fitted estimator.
    tol : float, default=None
        The certificate that counts as converged, drawn as a line.
    title : str, default=None
        Title of the picture.

    Attributes
    ----------
    ax_ : Axes
        The panel of the objective.
    residual_ax_ : Axes or None
        The panel of residuals and certificate.
    figure_ : Figure
        The figure that holds them.
    """

    def __init__(self, history: Any, tol: float | None = None, title: str | None = None) -> None:
        self.history = history
        self.tol = tol
        self.title = title

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> "ConvergenceDisplay":
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : DeepClassifier or DeepRegressor
            A fitted estimator.
        ax : Axes, default=None
            Where to draw the objective alone; a new figure of two panels otherwise.

        Returns
        -------
        display : ConvergenceDisplay
            The drawing.
        """
        history = estimator.history_
        title = (
            f"{type(estimator).__name__}: objective {estimator.objective_:.6g}, {estimator.solution_.status}"
        )
        return cls(history, tol=estimator.tol, title=title).plot(ax=ax)

    def plot(self, ax: Any = None) -> "ConvergenceDisplay":
        """Draw, into ``ax`` the objective alone or into a new figure both panels.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw the objective.

        Returns
        -------
        display : ConvergenceDisplay
            This object, with ``ax_``, ``residual_ax_`` and ``figure_``.
        """
        import matplotlib.pyplot as plt

        need_axes(ax)
        self.residual_ax_ = None
        if ax is None:
            self.figure_, (self.ax_, self.residual_ax_) = plt.subplots(
                2, 1, sharex=True, figsize=(7.2, 5.4), height_ratios=(3, 2), layout="constrained"
            )
        else:
            self.figure_, self.ax_ = ax.figure, ax
        self._draw_objective(self.ax_)
        if self.residual_ax_ is not None:
            self._draw_residuals(self.residual_ax_)
        (self.residual_ax_ or self.ax_).set_xlabel("iteration")
        if self.title:
            self.ax_.set_title(self.title, loc="left", fontsize=11, color=INK, pad=20)
        return self

    def _draw_objective(self, ax: Any) -> None:
        history = self.history
        self._shade(ax, labelled=True)
        if "split_objective" in history:
            ax.plot(
                history.iteration,
                history.split_objective,
                color=MUTED,
                lw=1.1,
                ls="--",
                label="split objective",
            )
        ax.plot(history.iteration, history.objective, color=INK, lw=1.8, label="objective")
        ax.plot(history.iteration.iloc[-1], history.objective.iloc[-1], "o", color=INK, ms=5, clip_on=False)
        shown = history[[c for c in ("objective", "split_objective") if c in history]]
        if shown.min(axis=None) > 0 and shown.max(axis=None) > 20 * shown.min(axis=None):
            ax.set_yscale("log")
        ax.set_ylabel("objective")
        self._finish(ax)

    def _draw_residuals(self, ax: Any) -> None:
        self._shade(ax, labelled=False)
        for name, (color, label) in MEASURES.items():
            if name in self.history:
                # a residual that is exactly zero has no place on a logarithmic scale
                known = self.history[self.history[name] > 0]
                ax.plot(known.iteration, known[name], color=color, lw=1.5, label=label)
        if self.tol is not None:
            ax.axhline(self.tol, color=MUTED, lw=0.9, ls=":", label="tol")
        ax.set_yscale("log")
        ax.set_ylabel("residuals")
        self._finish(ax, n_columns=4)

    def _shade(self, ax: Any, labelled: bool) -> None:
        """A background for every run of one phase, named once over its longest run."""
        phase, iteration = self.history.phase, self.history.iteration
        runs = iteration.groupby((phase != phase.shift()).cumsum())
        spans = [(phase[run.index[0]], run.iloc[0] - 0.5, run.iloc[-1] + 0.5) for _, run in runs]
        for name, left, right in spans:
            ax.axvspan(left, right, color=PHASES[name][0], lw=0, zorder=0)
        ax.set_xlim(spans[0][1], spans[-1][2])
        for name in dict.fromkeys(span[0] for span in spans) if labelled else ():
            _, left, right = max((s for s in spans if s[0] == name), key=lambda s: s[2] - s[1])
            style = {"ha": "center", "va": "bottom", "fontsize": 9, "color": MUTED}
            ax.text((left + right) / 2, 1.015, PHASES[name][1], transform=ax.get_xaxis_transform(), **style)

    @staticmethod
    def _finish(ax: Any, n_columns: int = 1) -> None:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="white", lw=0.8)
        ax.set_axisbelow(True)
        ax.legend(frameon=False, fontsize=9, loc="upper right", ncols=n_columns)
