"""What the estimators share: validate, pose the problem, solve it, say what came out."""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

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


def whole(method: Callable) -> Callable:
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

    return all_or_nothing


class DeepBase(
    AttributesMixin, StatisticsMixin, PosteriorMixin, ReportMixin, CallbackSupportMixin, BaseEstimator
):
    """``(1/n) sum_i loss(eta_i, y_i) + sum_l penalty_l(W_l)``, minimised; the front's half of it."""

    def __init__(
        self,
        hidden_layer_sizes,
        link,
        loss,
        penalty,
        alpha,
        penalize_bias,
        activity,
        splits,
        join,
        rho,
        batch_size,
        n_init,
        standardize,
        max_iter,
        tol,
        warm_start,
        random_state,
        dtype,
        verbose,
        devices=None,
        checkpoint=None,
        resume=False,
        fit_intercept=True,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.link = link
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.penalize_bias = penalize_bias
        self.activity = activity
        self.splits = splits
        self.join = join
        self.rho = rho
        self.batch_size = batch_size
        self.n_init = n_init
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.dtype = dtype
        self.verbose = verbose
        self.devices = devices
        self.checkpoint = checkpoint
        self.resume = resume
        self.fit_intercept = fit_intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @classmethod
    @cache
    def _get_param_names(cls):
        """Names of the parameters: to read them from the signature takes longer than many a step of a fit."""
        return super()._get_param_names()

    @with_callbacks
    @whole
    def fit(self, X, y, sample_weight=None):
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

    def __getstate__(self):
        """Without the data of the fit: a pickle is as large as the model."""
        state = super().__getstate__()
        kept = {"fitted_": self.fitted_.without_data()} if "fitted_" in state else {}
        return {**state, **kept}


def fits_alone(model: Any) -> bool:
    """Whether it is a plain estimator: those that choose a strength or fit by a cluster know no streams."""
    return type(model).fit is DeepBase.fit
