"""Stability selection: how often an input is selected when half of the observations are drawn anew.

``frequency_j = (1/B) sum_b 1[input j is alive on half-sample b]`` (Meinshausen and Buehlmann 2010), in
complementary pairs of halves (Shah and Samworth 2013). Under their assumptions the expected number of
superfluous inputs among those of frequency at least ``threshold`` is at most ``q^2 / ((2 threshold - 1) p)``,
with ``q`` the mean number of inputs that a half-sample keeps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples, check_consistent_length

from deepprox.checks import is_number, is_whole, need_jobs, shown
from deepprox.estimators._given import need_inputs, read_new_response
from deepprox.estimators._plain import copied, need_plain
from deepprox.estimators._resolve import DEFAULT_ALPHA, by_name, resolve_network
from deepprox.estimators._seeds import seed_of
from deepprox.estimators.session import Session
from deepprox.memory import need, of_parts
from deepprox.runtime import precision
from deepprox.selection.paths import strengths, whole_path


@dataclass(frozen=True)
class Stability:
    """How often every input was alive on half of the observations.

    ``frequencies`` has a row for every strength and a column for every input; ``mean_kept`` is the mean
    number of inputs that a half keeps at any strength; ``threshold`` says how often is often enough.
    """

    alphas: np.ndarray
    frequencies: np.ndarray
    names: tuple[str, ...]
    n_halves: int
    mean_kept: float
    threshold: float

    @property
    def highest(self) -> np.ndarray:
        """The highest frequency of every input over the strengths."""
        return np.asarray(self.frequencies.max(axis=0))

    @property
    def selected(self) -> np.ndarray:
        """Mask of the inputs whose highest frequency reaches the threshold."""
        return self.highest >= self.threshold

    @property
    def expected_errors(self) -> float:
        """The bound on the expected number of superfluous inputs among those selected."""
        return self.mean_kept**2 / ((2 * self.threshold - 1) * len(self.names))

    def frame(self) -> Any:
        """One row for every input, the most frequent first."""
        import pandas as pd

        rows = {"input": self.names, "frequency": self.highest, "selected": self.selected}
        ordered = pd.DataFrame(rows).sort_values("frequency", ascending=False, kind="stable")
        return ordered.reset_index(drop=True)

    def plot(self, ax: Any = None) -> Any:
        """Draw the frequencies: against the strength, or as bars where there is one.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; a new figure otherwise.

        Returns
        -------
        display : deepprox.plotting.StabilityDisplay
            The drawing, with its ``figure_`` and ``ax_``.
        """
        from deepprox.plotting import StabilityDisplay

        return StabilityDisplay(self).plot(ax=ax)


def stability_selection(
    estimator: Any,
    X: Any,
    y: Any,
    alphas: Any = None,
    *,
    n_pairs: int = 25,
    threshold: float = 0.6,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Stability:
    """Fit an estimator, or its path, on random halves of the observations, and count the inputs selected.

    Parameters
    ----------
    estimator : DeepClassifier or DeepRegressor
        What to fit.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Response; halves keep the proportions of classes.
    alphas : array-like, default=None
        Strengths of a path on each half; by default the estimator's own strength alone.
    n_pairs : int, default=25
        Pairs of complementary halves.
    threshold : float, default=0.6
        Share of the halves, above 0.5, in which a selected input is alive.
    random_state : int, RandomState or None, default=None
        Seed of the halves.
    n_jobs : int, default=None
        Halves that run at a time, in threads.

    Returns
    -------
    stability : Stability
        ``frequencies``, ``selected``, ``expected_errors``, ``frame()`` and ``plot()``.
    """
    need_plain(estimator, "stability_selection")
    if not is_whole(n_pairs):
        raise ValueError(f"n_pairs must be a whole number of at least 1, got {shown(n_pairs)}.")
    if not is_number(threshold) or not 0.5 < threshold <= 1:
        raise ValueError(f"threshold must be above 0.5 and at most 1, got {shown(threshold)}.")
    need_jobs(n_jobs)
    if estimator.checkpoint is not None:
        raise ValueError("stability_selection fits many halves and keeps no checkpoint: set checkpoint=None.")
    grid = None if alphas is None else strengths(alphas)
    if isinstance(grid, int):
        raise ValueError("alphas must be the strengths themselves, the same on every half: path(...).alphas.")
    estimator = copied(estimator)
    need_inputs(X)
    check_consistent_length(X, y)
    X, y = indexable(X, read_new_response(y, numbers=False))
    splitter = StratifiedShuffleSplit if is_classifier(estimator) else ShuffleSplit
    n = _num_samples(X)
    need(of_parts(2 * n_pairs, n // 2, "n_pairs"))
    draws = splitter(n_pairs, train_size=n // 2, test_size=n - n // 2, random_state=seed_of(random_state))
    halves = [half for pair in draws.split(X, y) for half in pair]
    if isinstance(estimator.alpha, str):  # halves are compared at one strength
        estimator = clone(estimator).set_params(alpha=DEFAULT_ALPHA)
    run = Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")
    alive = np.array(run(delayed(_alive)(estimator, X, y, grid, half) for half in halves))
    model = clone(estimator)
    n_out = Session(model).read(X, y).y.shape[1]
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    used = np.array([_strength(model, n_out)]) if grid is None else grid
    kept = float(alive.any(axis=1).sum(axis=1).mean())
    return Stability(used, alive.mean(axis=0), tuple(map(str, names)), len(halves), kept, float(threshold))


def _alive(estimator: Any, X: Any, y: Any, alphas: np.ndarray | None, half: np.ndarray) -> np.ndarray:
    """Which inputs are alive on these observations: a row for every strength."""
    X_half, y_half = _safe_indexing(X, half), _safe_indexing(y, half)
    model = clone(estimator).set_params(verbose=0)
    if alphas is None:
        return np.atleast_2d(model.fit(X_half, y_half).selected_features_)
    return whole_path(model, X_half, y_half, alphas).inputs


def _strength(model: Any, n_out: int) -> float:
    """The largest strength among the penalties that a path would vary; 0 where they have none."""
    settings = model.get_params(deep=False)
    with precision(np.float64):
        blocks = resolve_network(settings, model.n_features_in_, n_out, np.dtype(float)).blocks
    given = model.penalty if isinstance(model.penalty, tuple | list) else [model.penalty] * len(blocks)
    strengths = [(by_name(one), getattr(block.penalty, "alpha", 0.0)) for one, block in zip(given, blocks)]
    named = any(name for name, _ in strengths)
    return max(float(np.max(alpha)) for name, alpha in strengths if name == named)
