"""What the estimators share: validate, pose the problem, solve it, say what came out."""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from deepprox.diary import Stages
from deepprox.estimators import _resolve
from deepprox.estimators._checkpoint import checkpointing
from deepprox.estimators._forward import forward_of
from deepprox.estimators._given import read, read_new
from deepprox.estimators._observations import counted, dense, merge, padded
from deepprox.estimators._partial import check_settings, learn, stream_of
from deepprox.estimators._posterior import PosteriorMixin
from deepprox.estimators._record import FitRecord
from deepprox.estimators._report import ReportMixin
from deepprox.estimators._seeds import seed_of
from deepprox.estimators._settings import resolve_settings
from deepprox.estimators._standardize import Moments, Scale, scale_of
from deepprox.estimators._statistics import StatisticsMixin
from deepprox.estimators._watch import CallbackSupportMixin, watching, with_callbacks
from deepprox.joining.quasi_newton import Memory
from deepprox.memory import need, of_data, of_fit
from deepprox.problem import Problem, Weights
from deepprox.runtime import bucket, keep_programs, precision
from deepprox.solve import Options, Solution, in_dtype, initial, solve
from deepprox.spreading import same

OF_SOME_FITS = ("_seen", "_stream", "n_passes_")  # facts that not every fit leaves


class Posed(NamedTuple):
    """A problem as an estimator poses it: the inputs' scale, given ``rho``, how many observations count."""

    problem: Problem
    scale: Scale
    rho: tuple[np.ndarray, ...] | None
    n: int


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


class DeepBase(StatisticsMixin, PosteriorMixin, ReportMixin, CallbackSupportMixin, BaseEstimator):
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

    @abstractmethod
    def _encode(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The response as the loss takes it: one row for each observation."""

    @abstractmethod
    def _encode_more(self, y: np.ndarray, new: bool) -> np.ndarray:
        """The response of a batch as the loss takes it; of the first one of a stream, where it is new."""

    @abstractmethod
    def _code(self, y: Any) -> np.ndarray:
        """New responses in the columns of a fitted model."""

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
        X, Y, weight = self._read(X, y, sample_weight)
        task = self._init_callback_context(max_subtasks=None)
        task.call_on_fit_task_begin(**given)
        with precision(X.dtype), watching(self, task, self.verbose, self.max_iter) as watch:
            posed = self._pose(X, Y, weight)
            with checkpointing(self.checkpoint, self.resume, posed.problem, self.get_params(False)) as stages:
                found = self._solve(posed, watch, stages=stages)
            self._keep(found, posed)
        if found.status not in ("converged", "settled"):
            warnings.warn(f"{type(self).__name__} {found.message}.", ConvergenceWarning, stacklevel=4)
        task.call_on_fit_task_end(**given, reconstruction_attributes={})
        return self

    @whole
    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        """A batch of a stream; the first one makes the network, and the others must be like it."""
        check_settings(self)
        dtype, new = _resolve.resolve_dtype(self.dtype), not hasattr(self, "_W")
        params = self.get_params(deep=False)
        resolve_settings(params)
        X, y = read(self, X, y, dtype=dtype, reset=new, **self._response)
        X, weight = dense(X), counted(sample_weight, X)
        Y = np.asarray(self._encode_more(y, new), dtype)
        keep_programs()
        with precision(dtype):
            network = _resolve.resolve_network(params, X.shape[1], Y.shape[1], dtype)
            loss = _resolve.resolve_loss(self.loss, self._losses, self.join, Y, weight, dtype)
            loss = loss if new else self._loss  # a width that the first response set stays
            moments, past = (Moments.none(X.shape[1]), None) if new else stream_of(self, network)
            there = weight > 0
            rows = Problem(network, loss, X[there], Y[there], weight[there])
            found, problem, scale, stream = learn(self, rows, moments, past)
            self._keep(found, Posed(problem, scale, None, stream[0][0]))
        del self._seen  # it would be the last batch alone
        self._stream = stream

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Valid inputs, responses as the loss takes them, and weights of the observations."""
        dtype = _resolve.resolve_dtype(self.dtype)
        resolve_settings(self.get_params(deep=False))
        X, y = read(self, X, y, dtype=dtype, ensure_min_samples=2, **self._response)
        X, weight = dense(X), counted(sample_weight, X)
        keep_programs()
        return X, np.asarray(self._encode(y, weight), dtype), weight

    def _pose(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> Posed:
        """The problem that these observations and the parameters make."""
        dtype, allsum = X.dtype, _resolve.resolve_devices(self.devices)
        need(of_data(len(X), X.shape[1] + Y.shape[1], dtype.itemsize))
        network = _resolve.resolve_network(self.get_params(deep=False), X.shape[1], Y.shape[1], dtype)
        loss = _resolve.resolve_loss(self.loss, self._losses, self.join, Y, weight, dtype, allsum)
        rho = _resolve.resolve_rho(self.rho, len(network.blocks), len(X))

        counts = np.flatnonzero(weight)  # what has no weight is not there
        if len(counts) < len(X):
            X, Y, weight = X[counts], Y[counts], weight[counts]
        if rho is None or all(r.ndim == 0 for r in rho):
            X, Y, weight = merge(X, Y, weight)
        weight = weight / allsum(weight.sum())
        scale = scale_of(X, weight, self.standardize, allsum, network.blocks[0].bias)
        room = allsum.room(bucket(len(X)))
        rows = padded(scale.standardize(X), room), padded(Y, room)
        weight = np.concatenate([weight, np.zeros(room - len(X))]).astype(dtype)
        problem = Problem(network, loss, *rows, weight, allsum)
        if allsum == same:  # what is spread goes to its devices later
            problem = jax.device_put(problem)
            problem.X.copy_to_host_async()  # kept with the fit: it comes back while a device computes
        if rho is not None:
            rho = tuple(np.asarray(r if r.ndim == 0 else padded(r[counts], room), dtype) for r in rho)
        return Posed(problem, scale, rho, int(allsum(len(counts))))

    def _solve(
        self,
        posed: Posed,
        watch: Any = None,
        W: Weights | None = None,
        memory: Memory | None = None,
        stages: Stages | None = None,
        **changes: Any,
    ) -> Solution:
        """The solution from ``W``, from the last solution, or from random starts."""
        starts, warm = ([W], True) if W is not None else self._starts(posed.problem, posed.scale)
        glm = len(posed.problem.network.blocks) == 1
        sweeps = 0 if warm or glm or self.splits == "none" else min(Options().sweeps, self.max_iter)
        options = Options(
            sweeps=sweeps,
            batch=0 if warm else _resolve.resolve_batch(self.get_params(deep=False), posed.problem, posed.n),
            join=bool(self.join),
            warm=warm,
            splits=_resolve.resolve_splits(self.splits, len(posed.problem.network.blocks) - 1),
            rho=posed.rho,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )
        found = solve(posed.problem, starts, options._replace(**changes), watch, memory, stages)
        return _finite(found, starts)

    def _starts(self, problem: Problem, scale: Scale) -> tuple[list[Weights], bool]:
        """Starting weights, and whether they are the last solution's."""
        shapes = problem.network.shapes(problem.X.shape[1])
        if self.warm_start and hasattr(self, "_W") and [w.shape for w in self._W] == shapes:
            W = (scale.from_inputs(self._scale.to_inputs(self._W[0])), *self._W[1:])
            return [tuple(np.asarray(w, problem.X.dtype) for w in W)], True
        self._need_memory(problem)
        return self._random(problem, scale), False

    def _random(self, problem: Problem, scale: Scale) -> list[Weights]:
        """Random starting weights."""
        seed = int(problem.allsum.first(seed_of(self.random_state)))
        # an input that never varies tells nothing, and no gradient would ever say so
        varies = np.concatenate([[True], ~scale.constant]).astype(problem.X.dtype)
        if problem.convex:
            varies[1:] = 0  # all starts end in the same place, and most weights of it are zero
        return [(W[0] * varies, *W[1:]) for W in initial(problem, seed, self.n_init)]

    def _need_memory(self, problem: Problem) -> None:
        """A sentence about a fit from random starts that this machine has no memory for."""
        (n, n_in), sizes = problem.X.shape, [block.size for block in problem.network.blocks]
        batch = _resolve.resolve_batch(self.get_params(deep=False), problem, n)
        sweeps = len(sizes) > 1 and self.splits == "all" and not batch
        reads, itemsize = problem.network.widths(n_in), problem.X.dtype.itemsize
        need(*of_fit(n, reads, sizes, itemsize, int(self.n_init), sweeps, batch))

    def _keep(self, found: Solution, posed: Posed) -> None:
        """Fitted attributes, all of them NumPy: pickles need no device."""
        problem, scale = posed.problem, posed.scale
        self._W = found.W
        self._scale = scale
        self._network, self._loss = jax.tree.map(np.asarray, (problem.network, problem.loss))
        self._history = found.history
        self._n = posed.n
        for old in OF_SOME_FITS:
            self.__dict__.pop(old, None)
        if problem.allsum.world == 1:  # else it would be a part of the data
            self._seen = tuple(np.asarray(a) for a in (problem.X, problem.y, problem.weight))
        self._known: dict[str, dict] = {}  # statistics that were asked for: they outlive the data
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

    def __getstate__(self):
        """Without the data of the fit: a pickle is as large as the model."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_seen"}

    def _problem(self) -> Problem:
        """The problem that was solved, in double precision."""
        if not hasattr(self, "_seen"):
            raise ValueError(
                "This needs the data of the fit, which a copied or stored estimator, or one that several "
                "processes fitted together, does not carry: ask for it before you store the estimator, or "
                "fit again."
            )
        X, y, weight = self._seen
        return in_dtype(Problem(self._network, self._loss, X, y, weight), np.float64)

    def _outputs(self, X: Any, as_mean: bool) -> np.ndarray:
        """``eta`` of new inputs, or its mean."""
        check_is_fitted(self)
        dtype = self._W[0].dtype
        X = read_new(self, X, dtype)
        need(of_data(X.shape[0], self.n_outputs_, dtype.itemsize))
        return forward_of(self).outputs(X, as_mean)

    def _losses_of(self, X: Any, y: Any) -> np.ndarray:
        """The loss of every new observation."""
        return forward_of(self).losses(self._outputs(X, as_mean=False), self._code(y))


def fits_alone(model: Any) -> bool:
    """Whether it is a plain estimator: those that choose a strength or fit by a cluster know no streams."""
    return type(model).fit is DeepBase.fit


def _finite(found: Solution, starts: list[Weights]) -> Solution:
    """The solution, with its starting weights where it has none that are finite."""
    if all(np.isfinite(w).all() for w in found.W):
        return found
    return found._replace(W=tuple(np.asarray(w) for w in starts[0]))
