"""Models side by side as a picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepprox.plotting.colours import INK, SEQUENCE

TITLES = {"evidence": "log evidence"}


class ComparisonDisplay:
    """How much each model counts by each measure: one panel of bars for every measure.

    Parameters
    ----------
    names : sequence of str
        Names of the models.
    weights : dict of str to ndarray of shape (n_models,)
        Weights of the models, by measure.
    behind : dict of str to ndarray of shape (n_models,)
        By how much each is worse than the best.

    Attributes
    ----------
    axes_ : list of Axes
        The panels.
    figure_ : Figure
        The figure that holds them.
    """

    def __init__(
        self, names: Sequence[str], weights: dict[str, np.ndarray], behind: dict[str, np.ndarray]
    ) -> None:
        self.names = names
        self.weights = weights
        self.behind = behind

    @classmethod
    def from_comparison(cls, comparison: Any, by: Sequence[str]) -> "ComparisonDisplay":
        """Draw a comparison by those of the measures that are defined.

        Parameters
        ----------
        comparison : Comparison
            What :func:`deepprox.compare` returned.
        by : sequence of str
            Criteria, or "evidence".

        Returns
        -------
        display : ComparisonDisplay
            The drawing.
        """
        values = {name: comparison.values(name) for name in by}
        known = {name: value for name, value in values.items() if np.isfinite(value).any()}
        if not known:
            raise ValueError(f"None of {', '.join(by)} is defined for any of the models.")
        weights = {name: comparison.weights(name) for name in known}
        behind = {name: value - np.nanmin(value) for name, value in known.items()}
        return cls(comparison.names, weights, behind).plot()

    def plot(self) -> "ComparisonDisplay":
        """Draw into a new figure.

        Returns
        -------
        display : ComparisonDisplay
            This object, with ``axes_`` and ``figure_``.
        """
        import matplotlib.pyplot as plt

        count, places = len(self.weights), np.arange(len(self.names))[::-1]
        self.figure_, axes = plt.subplots(
            1,
            count,
            sharey=True,
            squeeze=False,
            figsize=(2.6 + 2.4 * count, 1.3 + 0.42 * len(places)),
            layout="constrained",
        )
        self.axes_ = list(axes[0])
        for ax, (name, weight), colour in zip(self.axes_, self.weights.items(), SEQUENCE):
            ax.barh(places, weight, color=colour, height=0.6)
            for place, share, gap in zip(places, weight, self.behind[name]):
                words = "not defined" if np.isnan(gap) else "best" if gap == 0 else f"+{gap:.3g}"
                ax.text(share + 0.02, place, words, va="center", fontsize=8, color=INK)
            ax.set_xlim(0, 1.28)
            ax.set_xticks([0, 0.5, 1])
            ax.set_xlabel("weight")
            ax.set_title(TITLES.get(name, name.upper()), fontsize=10, loc="left")
            ax.spines[["top", "right"]].set_visible(False)
        self.axes_[0].set_yticks(places, [name.replace("$", r"\$") for name in self.names])
        return self
