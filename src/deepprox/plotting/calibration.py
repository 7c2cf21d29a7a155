"""What networks say of rows that they have not seen, against the truth."""

from typing import Any

import numpy as np

from deepprox.plotting.axes import need_axes
from deepprox.plotting.colours import FAINT, INK, MUTED, SEQUENCE

BINS = 10  # of probabilities
LEVEL = 0.9  # of the band around numbers


class CalibrationDisplay:
    """Probabilities out of fold against frequencies, or numbers out of fold against observed ones.

    Of two classes there is a line, of more a line for each: rows in ten bins by their probability, each a
    point of an area in proportion to its rows, with the range that its frequency may have by chance; of two
    classes with the number of its rows. Of numbers there is a point for each row, and the band that holds
    90 % of them.

    Parameters
    ----------
    predicted, truth : ndarray of shape (n_samples, n_classes) or (n_samples, n_outputs)
        Predictions out of fold, and what was observed: of classes their number, in one column.
    weight : ndarray of shape (n_samples,)
        How often every row counts.
    names : list of str, default=None
        Names of the classes; None for numbers.

    Attributes
    ----------
    ax_ : Axes
        The panel.
    figure_ : Figure
        The figure that holds it.
    """

    def __init__(
        self, predicted: np.ndarray, truth: np.ndarray, weight: np.ndarray, names: list[str] | None = None
    ) -> None:
        self.predicted, self.truth, self.weight, self.names = predicted, truth, weight, names

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> "CalibrationDisplay":
        """Draw what a fitted estimator said of the rows that its folds left out.

        Parameters
        ----------
        estimator : DeepClassifierCV or DeepRegressorCV
            Fitted; a classifier with a loss that is a likelihood.
        ax : Axes, default=None
            Where to draw; a new figure otherwise.

        Returns
        -------
        display : CalibrationDisplay
            The drawing.
        """
        held = vars(estimator).get("held_out_")
        if held is None:
            raise TypeError(
                f"Calibration needs predictions out of fold, which a fitted DeepClassifierCV or "
                f"DeepRegressorCV has, and not a {type(estimator).__name__}."
            )
        classes = vars(estimator).get("classes_")
        if classes is not None and not estimator.fitted_.loss.likelihood:
            raise ValueError(
                f"{type(estimator.fitted_.loss).__name__} gives no probabilities to compare with "
                f"frequencies: use loss='softmax' or 'logistic'."
            )
        rows, weight = held.counts()
        names = None if classes is None else [str(name) for name in classes]
        return cls(held.mean()[rows], held.mean_truth()[rows], weight, names).plot(ax)

    def plot(self, ax: Any = None) -> "CalibrationDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; a new figure otherwise.

        Returns
        -------
        display : CalibrationDisplay
            This object, with ``ax_`` and ``figure_``.
        """
        import matplotlib.pyplot as plt

        need_axes(ax)
        if ax is None:
            _, ax = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        (self._numbers if self.names is None else self._classes)(ax)
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def reliability(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean probability of class ``k``, its frequency and the weight of every bin."""
        p, hit = self.predicted[:, k], self.truth[:, 0] == k
        place = np.minimum((BINS * p).astype(int), BINS - 1)
        columns = np.ones_like(p), p, hit
        sizes, probable, hits = (np.bincount(place, self.weight * one, BINS) for one in columns)
        there = sizes > 0
        return probable[there] / sizes[there], hits[there] / sizes[there], sizes[there]

    def _classes(self, ax: Any) -> None:
        names = self.names or []
        shown = [1] if len(names) == 2 else [*range(len(names))][: len(SEQUENCE)]
        ax.plot([0, 1], [0, 1], color=MUTED, lw=1, ls=":", zorder=1)
        for k, colour in zip(shown, [INK] if len(names) == 2 else SEQUENCE):
            mean, share, sizes = self.reliability(k)
            chance = 1.96 * np.sqrt(mean * (1 - mean) / sizes)
            ax.vlines(mean, np.clip(mean - chance, 0, 1), np.clip(mean + chance, 0, 1), color=FAINT, lw=3)
            ax.plot(mean, share, color=colour, lw=1.2, label=names[k].replace("$", r"\$"))
            ax.scatter(mean, share, s=8 + 60 * sizes / sizes.max(), color=colour, zorder=3)
            for place in zip(mean, share, sizes) if len(shown) == 1 else ():
                ax.annotate(f"{place[2]:.0f}", place[:2], (6, -10), textcoords="offset points", fontsize=7)
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.set_xlabel("probability out of fold")
        ax.set_ylabel("share of rows that are of the class")
        ax.legend(frameon=False, fontsize=8, title=f"class ({len(self.truth)} rows)", title_fontsize=8)

    def _numbers(self, ax: Any) -> None:
        apart = np.abs(self.truth - self.predicted)
        both = np.stack([self.predicted, self.truth])
        ends = np.array([both.min(), both.max()])
        many = self.truth.shape[1] > 1
        for j, colour in zip(range(self.truth.shape[1]), SEQUENCE if many else [INK]):
            order = np.argsort(apart[:, j])
            reached = np.cumsum(self.weight[order]) >= LEVEL * self.weight.sum()
            half = apart[order[reached.argmax()], j]
            ax.fill_between(
                ends, np.array(ends) - half, np.array(ends) + half, color=colour, alpha=0.08, lw=0
            )
            label = f"output {j}" if many else f"{LEVEL:.0%} within {half:.3g}"
            ax.scatter(
                self.predicted[:, j], self.truth[:, j], s=8, color=colour, alpha=0.6, label=label, lw=0
            )
        ax.plot(ends, ends, color=MUTED, lw=1, ls=":")
        ax.set_xlabel("prediction out of fold")
        ax.set_ylabel("observed")
        ax.legend(frameon=False, fontsize=8, loc="upper left")
