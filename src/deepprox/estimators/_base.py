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
    """``(1/n) sum_i loss(eta_i, y_i) + sum_l penalty_l(W_l)``, minimised; the front's half of it.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or Block, default=(50,)
        Widths of the hidden layers, or blocks (:mod:`deepprox.blocks`); ``()`` is a generalised linear model.
    link : str, Link, or one per hidden layer, default="relu"
        Activation function of the hidden layers: "relu", "tanh", "sigmoid", "softplus", "leaky_relu", "elu",
        "silu", "gelu", "hard_sigmoid", "hard_tanh", "sine", "rbf", "identity"; of groups of units "softmax",
        "log_sum_exp", "lp_norm", "max_pool"; or an object from :mod:`deepprox.links` or of your own class.
    penalty : str, Penalty, or one per block, default="l1"
        "none", "l1" (or "lasso"), "l2" (or "ridge"), "elasticnet", "group_inputs" (whole inputs of a
        block leave together), "group_units", "sparse_group_inputs", "sparse_group_units", "mcp", "scad",
        "l0", "bridge", "log_sum", "capped_l1", "max_norm", "nuclear", "student_t", "horseshoe",
        "nonnegative", or an object from :mod:`deepprox.penalties` or of your own class, which carries its
        own strength.
    alpha : float or "auto", default="auto"
        Regularisation strength of a penalty given by name, on the scale of the mean loss: the same for any
        number of observations, and in any unit of what is standardised. "auto" chooses it in ``fit``: of ten
        strengths the one whose networks, fitted by batches without one fold of three each, predict that fold
        best. The network of all rows is then fitted by batches too, and joined. Where folds cannot be
        compared (streams, devices, clusters, inputs that stay sparse, a single row, halves of
        :func:`deepprox.stability_selection`) it is 0.01, and where a fit goes on (``warm_start``,
        ``partial_fit``) the strength of the last one.
    penalize_bias : bool, default=False
        Whether biases are penalised like other weights.
    activity : Activity, or one per hidden layer, default=None
        Activity regulariser, from :mod:`deepprox.activities`: ``ActivityL1(0.01)`` for few active units at
        each observation, ``ActivityGroup(0.01)`` for few active units in all.
    splits : {"all", "none"} or tuple of int, default="all"
        Where the split phase cuts the network: after every hidden layer, or after those numbered, from 1.
        Between two splits the network holds together; the output is always split, so ``()`` cuts nowhere
        else. "none" skips the split phase.
    join : bool, default=True
        Whether the split phase is followed by the join phase; False is plain ADMM.
    rho : "auto", float, or one per block, default="auto"
        Weights of the split constraints. "auto" starts them from the penalties and lets them grow;
        given ones stay, each a number or an array with one number for each observation. Blocks that
        ``splits`` leaves whole have no constraint, and their entries are not used.
    batch_size : "auto", int or None, default="auto"
        How many rows, drawn at random, each of 3000 proximal steps takes that a fit to many rows begins with,
        in place of the split phase. "auto" is 512 from 10 000 rows on, and None with fewer rows,
        without hidden layers, where ``splits``, ``rho`` or ``join`` ask for a split phase of their own, and
        where rows are not in memory.
    n_init : int, default=1
        Random starts, run side by side; the lowest objective is kept.
    standardize : bool, default=True
        Whether inputs, and responses of squared, Huber and quantile loss, are brought to level 0 and spread 1
        inside: means and standard deviations, of the responses of the last two losses medians and median
        deviations. Penalties, ``tol`` and the objective are then those of the standardised problem; weights
        are reported on both scales, predictions, statistics and draws in the units of the response.
    max_iter : int, default=2000
        Most iterations, all phases together.
    tol : float, default=1e-6
        Largest certificate of a solution that counts as converged.
    warm_start : bool, default=False
        Whether a new fit starts from the last solution, where the shapes agree, without a split phase.
    random_state : int, RandomState or None, default=None
        Seed of the random starts.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the fit and of the predictions.
    verbose : int, default=0
        1 shows a progress bar.
    devices : None, "all", int, Mesh or list, default=None
        Devices of JAX over which the observations are spread: all, the first so many, or those given. Where
        ``jax.distributed`` connects several processes, "all" are those of all processes, and each gives
        ``fit`` its own rows.
    checkpoint : str or path, default=None
        A folder in which a fit keeps where it is, so that it can go on after an interruption.
    resume : bool, default=False
        Whether a fit goes on from ``checkpoint``, to the same answer. Without a file there it begins anew;
        one of other data or other settings is refused.
    fit_intercept : bool, default=True
        Whether the outputs have a bias. Without one it is exactly zero. Without hidden layers either, inputs
        are then scaled and not centred, so that the outputs at inputs of zero are zero.
    n_nonzero : int, default=None
        At most so many weights that are not zero, biases included. The fit begins with batches, after every
        step of which the largest weights stay, fewer and fewer of them, down to this number in half of the
        steps. Where the penalty alone would let more weights in again, the others are held at zero to the
        end: the certificate is then that among networks with the same zeros, and ``solution_.message`` says
        so. ``alpha`` shrinks what is left.
    zeros : float, default=None
        The same as a share of all weights: 0.95 is a network of which at least 95 % of the weights are zero.
    max_inputs : int, default=None
        At most so many inputs, in the same way.

    Attributes
    ----------
    alpha_, alphas_, risks_ : float, ndarray of shape (10,) and (10, n_folds)
        With ``alpha="auto"``: the strength that was taken and, where it was chosen, all of them and what each
        costs on every fold.
    coefs_, intercepts_ : list of ndarray of shape (n_in, n_out) and (n_out,)
        Weights and biases of every block, for inputs and responses as they were given.
    coefs_standardized_, intercepts_standardized_ : list of ndarray
        The same for standardised ones: what the penalty saw.
    solution_ : Solution
        Objective, loss, penalty, certificate, residuals, status in words, non-zeros per block, seconds
        per phase, objectives of all starts.
    fitted_ : Fitted
        What predictions, tables, draws and files read: network, loss, scale of the inputs, solution, number
        of observations, statistics.
    history_ : DataFrame
        One row for each iteration.
    objective_, loss_ : float
        Mean loss plus penalties, and the mean loss alone.
    n_nonzero_ : int
        Weights that are not exactly zero, biases included.
    selected_features_ : ndarray of bool of shape (n_features_in_,)
        The inputs that reach the output.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Euclidean norm of the first-block weights of each input on the scale of the fit; 0 when dead.
    live_ : tuple of ndarray of bool
        The inputs, then the units of every hidden layer, that reach the output and vary; a unit that does not
        is among them where no bias may take its place.
    n_iter_, n_layers_, n_outputs_, n_features_in_ : int
        Iterations, layers (inputs and outputs included), outputs and inputs.
    feature_names_in_ : ndarray of str
        Names of the inputs, when ``X`` had them.
    """

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
            Inputs. Sparse ones stay sparse where there are no hidden layers and the penalty adds up single
            weights (none, lasso, ridge, both, MCP, SCAD, constraints), and under a network of more than 2048
            inputs whose penalty lets inputs leave; else they are made dense.
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
            posed = session.choose(session.pose(rows))
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
