"""What the estimators share: validate, pose the problem, solve it, say what came out."""

import warnings
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deepprox.estimators import _resolve
from deepprox.estimators._observations import counted, dense, merge
from deepprox.estimators._record import FitRecord
from deepprox.estimators._standardize import Scale, scale_of
from deepprox.estimators._watch import CallbackSupportMixin, watching, with_callbacks
from deepprox.problem import Network, Problem, Weights
from deepprox.report.summary import summarize
from deepprox.report.table import Report
from deepprox.runtime import bucket, keep_programs, precision
from deepprox.solve import Options, Solution, initial, solve

PREDICT_ROWS = 2**15  # rows of one prediction: hidden layers of more are never held at once


@partial(jax.jit, static_argnames="as_mean")
def _outputs(network: Network, loss: Any, W: Weights, X: jax.Array, as_mean: bool) -> jax.Array:
    eta = network.forward(W, X)[-1]
    return loss.mean(eta) if as_mean else eta


class DeepBase(CallbackSupportMixin, BaseEstimator):
    """``(1/n) sum_i loss(eta_i, y_i) + sum_l penalty_l(W_l)``, minimised; the front's half of it."""

    _losses: ClassVar[Any]  # names of the losses that this estimator knows
    _response: ClassVar[dict[str, bool]]  # how scikit-learn validates the response

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
        n_init,
        standardize,
        max_iter,
        tol,
        warm_start,
        random_state,
        dtype,
        verbose,
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
        self.n_init = n_init
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.dtype = dtype
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _encode(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The response as the loss takes it: one row for each observation."""

    @with_callbacks
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
        dtype = _resolve.resolve_dtype(self.dtype)
        _resolve.resolve_settings(self.get_params(deep=False))
        given = {"estimator": self, "X": X, "y": y}
        if sample_weight is not None:
            given["metadata"] = {"sample_weight": sample_weight}
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc", "coo"],
            dtype=dtype,
            ensure_min_samples=2,
            **self._response,
        )
        X, weight = dense(X), counted(sample_weight, X)
        task = self._init_callback_context(max_subtasks=None)
        task.call_on_fit_task_begin(**given)
        Y = np.asarray(self._encode(y, weight), dtype)
        keep_programs()
        with precision(dtype), watching(self, task, self.verbose, self.max_iter) as watch:
            self._solve(X, Y, weight, dtype, watch)
        task.call_on_fit_task_end(**given, reconstruction_attributes={})
        return self

    def _solve(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, dtype: np.dtype, watch: Any) -> None:
        network = _resolve.resolve_network(self.get_params(deep=False), X.shape[1], Y.shape[1], dtype)
        loss = _resolve.resolve_loss(self.loss, self._losses, self.join, Y, weight, dtype)
        rho = _resolve.resolve_rho(self.rho, len(network.blocks), len(X))

        counts = np.flatnonzero(weight)  # what has no weight is not there
        X, Y, weight = X[counts], Y[counts], weight[counts]
        if rho is None or all(r.ndim == 0 for r in rho):
            X, Y, weight = merge(X, Y, weight)
        weight = weight / weight.sum()
        scale = scale_of(X, weight, self.standardize)
        # padding repeats the first observation with weight 0: any loss can take it
        rows = np.concatenate([np.arange(len(X)), np.zeros(bucket(len(X)) - len(X), int)])
        problem = Problem(
            network,
            loss,
            jnp.asarray(scale.standardize(X)[rows], dtype),
            jnp.asarray(Y[rows], dtype),
            jnp.asarray(np.where(np.arange(len(rows)) < len(X), weight[rows], 0.0), dtype),
        )
        if rho is not None:
            rho = tuple(np.asarray(r if r.ndim == 0 else r[counts[rows]], dtype) for r in rho)
        starts, warm = self._starts(problem, scale)
        glm = len(network.blocks) == 1
        sweeps = 0 if warm or glm or self.splits == "none" else min(Options().sweeps, self.max_iter)
        options = Options(
            sweeps=sweeps, join=bool(self.join), rho=rho, max_iter=int(self.max_iter), tol=float(self.tol)
        )
        found = _finite(solve(problem, starts, options, watch), starts)
        self._keep(found, problem, scale, len(counts))
        if found.status not in ("converged", "settled"):
            warnings.warn(f"{type(self).__name__} {found.message}.", ConvergenceWarning, stacklevel=5)

    def _starts(self, problem: Problem, scale: Scale) -> tuple[list[Weights], bool]:
        """Starting weights, and whether they are the last solution's."""
        shapes = problem.network.shapes(problem.X.shape[1])
        if self.warm_start and hasattr(self, "_W") and [w.shape for w in self._W] == shapes:
            W = (scale.from_inputs(self._scale.to_inputs(self._W[0])), *self._W[1:])
            return [tuple(jnp.asarray(w, problem.X.dtype) for w in W)], True
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        # an input that never varies tells nothing, and no gradient would ever say so
        varies = np.concatenate([[True], ~scale.constant]).astype(problem.X.dtype)
        return [(W[0] * varies, *W[1:]) for W in initial(problem, seed, self.n_init)], False

    def _keep(self, found: Solution, problem: Problem, scale: Scale, n: int) -> None:
        """Fitted attributes, all of them NumPy: pickles need no device."""
        self._W = found.W
        self._scale = scale
        self._network, self._loss = jax.tree.map(np.asarray, (problem.network, problem.loss))
        self._history = found.history
        self._n = n
        first = scale.to_inputs(found.W[0]).astype(found.W[0].dtype)
        self.coefs_ = [w[:, 1:].T for w in (first, *found.W[1:])]
        self.intercepts_ = [w[:, 0] for w in (first, *found.W[1:])]
        self.coefs_standardized_ = [w[:, 1:].T for w in found.W]
        self.intercepts_standardized_ = [w[:, 0] for w in found.W]
        self.n_layers_ = len(found.W) + 1
        self.n_outputs_ = problem.y.shape[1]
        self.n_iter_ = found.n_iter
        self.loss_, self.objective_ = found.loss, found.objective
        self.live_ = found.live.reads
        self.selected_features_ = found.live.inputs
        sizes = np.linalg.norm(found.W[0][:, 1:], axis=0)
        self.feature_importances_ = np.where(self.selected_features_, sizes, 0.0)
        self.n_nonzero_ = sum(found.n_nonzero)
        self.solution_ = FitRecord.of(found)

    def _outputs(self, X: Any, as_mean: bool) -> np.ndarray:
        """``eta`` of new inputs, or its mean, in pieces of bounded size and few shapes."""
        check_is_fitted(self)
        dtype = self._W[0].dtype
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], dtype=dtype, reset=False)
        X = self._scale.standardize(dense(X)).astype(dtype, copy=False)
        out = []
        keep_programs()
        with precision(dtype):
            for begin in range(0, len(X), PREDICT_ROWS):
                piece = X[begin : begin + PREDICT_ROWS]
                padded = np.zeros((bucket(len(piece)), X.shape[1]), dtype)
                padded[: len(piece)] = piece
                found = _outputs(self._network, self._loss, self._W, padded, as_mean)
                out.append(np.asarray(found)[: len(piece)])
        return np.concatenate(out)

    @property
    def history_(self):
        """One row for each iteration: phase, objective, loss, residuals, certificate, non-zeros."""
        check_is_fitted(self)
        import pandas as pd

        return pd.DataFrame(self._history)

    def summary(self) -> Report:
        """What was fitted and found: prints as aligned tables, shows as HTML in a notebook."""
        check_is_fitted(self)
        return summarize(self)

    def plot_history(self, ax=None):
        """Draw the objective and the certificate over the iterations.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw the objective alone; a new figure of two panels otherwise.

        Returns
        -------
        display : deepprox.plotting.ConvergenceDisplay
            The drawing, with its ``figure_`` and ``ax_``.
        """
        from deepprox.plotting import ConvergenceDisplay

        return ConvergenceDisplay.from_estimator(self, ax=ax)


def _finite(found: Solution, starts: list[Weights]) -> Solution:
    """The solution, with its starting weights where it has none that are finite."""
    if all(np.isfinite(w).all() for w in found.W):
        return found
    return found._replace(W=tuple(np.asarray(w) for w in starts[0]))
