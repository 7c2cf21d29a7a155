"""What the estimators share: validate, pose the problem, solve it, say what came out."""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from deepprox.estimators._checkpoint import checkpointing
from deepprox.estimators._fitted import AttributesMixin
from deepprox.estimators._partial import learn
from deepprox.estimators._posterior import PosteriorMixin
from deepprox.estimators._report import ReportMixin
from deepprox.estimators._statistics import StatisticsMixin
from deepprox.estimators._watch import CallbackSupportMixin, watching, with_callbacks
from deepprox.estimators.session import Session
from deepprox.runtime import precision

E = TypeVar("E", bound="DeepBase")
F = TypeVar("F", bound=Callable[..., Any])


def store(model: Any, given: dict[str, Any]) -> None:
    """Keep the arguments of a constructor as they are."""
    vars(model).update((name, value) for name, value in given.items() if name != "self")


def whole(method: F) -> F:
    """A method that leaves the estimator as it was where an error or Ctrl-C ends it."""

    @wraps(method)
    def all_or_nothing(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(F, all_or_nothing)


class DeepBase(
    AttributesMixin, StatisticsMixin, PosteriorMixin, ReportMixin, CallbackSupportMixin, BaseEstimator
):
    """``(1/n) sum_i loss(eta_i, y_i) + sum_l penalty_l(W_l)``, minimised; the front's half of it."""

    n_features_in_: int
    feature_names_in_: np.ndarray

    if TYPE_CHECKING:  # scikit-learn has no types

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of the parameters: to read them from the signature takes longer than many a step of a fit."""
        names: list[str] = super()._get_param_names()
        return names

    @with_callbacks
    @whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the network.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs. Sparse ones are made dense.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Response.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the observations; only their ratios count.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        given = {"estimator": self, "X": X, "y": y}
        if sample_weight is not None:
            given["metadata"] = {"sample_weight": sample_weight}
        session = Session(self)
        rows = session.read(X, y, sample_weight)
        task = self._init_callback_context(max_subtasks=None)
        task.call_on_fit_task_begin(**given)
        with precision(rows.X.dtype), watching(self, task, self.verbose, self.max_iter) as watch:
            posed = session.pose(rows)
            with checkpointing(self.checkpoint, self.resume, posed.problem, session.settings) as stages:
                found = session.run(posed, watch, stages=stages)
            session.keep(found, posed)
        if not found.done:
            warnings.warn(f"{type(self).__name__} {found.message}.", ConvergenceWarning, stacklevel=4)
        task.call_on_fit_task_end(**given, reconstruction_attributes={})
        return self

    @whole
    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        """A batch of a stream; the first one makes the network, and the others must be like it."""
        learn(self, X, y, sample_weight)

    def __getstate__(self) -> dict[str, Any]:
        """Without the data of the fit: a pickle is as large as the model."""
        state = super().__getstate__()
        kept = {"fitted_": self.fitted_.without_data()} if "fitted_" in state else {}
        return {**state, **kept}


def fits_alone(model: Any) -> bool:
    """Whether it is a plain estimator: those that choose a strength or fit by a cluster know no streams."""
    return type(model).fit is DeepBase.fit
