"""The estimators for Dask collections: fitted where the rows are, plain once they are fitted."""

import warnings
from functools import partial
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
import pandas as pd
from distributed import Client, get_client
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from deepprox import estimators as plain
from deepprox.dask.driver import fit
from deepprox.dask.parts import parts_of
from deepprox.estimators._base import DeepBase
from deepprox.estimators._described import described
from deepprox.estimators._plain import become
from deepprox.estimators._response import gives_probabilities
from deepprox.estimators._watch import Silence, watching


class Together(DeepBase):
    """What the two estimators share: a fit by the workers of a cluster, predictions where the rows are.

    Attributes
    ----------
    lost_workers_ : list of str
        Addresses of workers that were lost during the fit; their rows were loaded again elsewhere.
    """

    _plain: Any  # the estimator that it is once it is fitted

    def fit(self, X, y=None, sample_weight=None, client=None):
        """Fit the network on the rows that the workers have or load.

        Parameters
        ----------
        X : Dask DataFrame, Dask Array, or Parquet files (a name, folder, pattern or list)
            Inputs. Files must be where every worker can read them.
        y : str or Dask collection
            The response: the name of a column of ``X``, or a collection with the partitions of ``X``.
        sample_weight : str or Dask collection, default=None
            Weights of the observations, in the same ways.
        client : distributed.Client, default=None
            The cluster; by default the client that was made last.

        Returns
        -------
        self : object
            The fitted estimator, with the attributes of the plain one.
        """
        local = self._plain(**self.get_params(deep=False))
        for name, wanted in (("devices", None), ("warm_start", False)):
            if getattr(self, name) != wanted:
                raise ValueError(f"A fit by a cluster needs {name}={wanted}, got {getattr(self, name)!r}.")
        if not isinstance(self.rho, str) and any(np.ndim(one) for one in np.atleast_1d(self.rho).tolist()):
            raise ValueError("A fit by a cluster knows no row by its number: give rho one number per block.")
        parts, client = parts_of(X, y, sample_weight), _client(client)
        topic = f"deepprox-{uuid4().hex}" if self.verbose else None
        with watching(self, Silence(), self.verbose, self.max_iter) as watch:
            if topic:
                client.subscribe_topic(topic, lambda event: watch(event[1]))
            try:
                done = fit(client, local, parts, topic)
            finally:
                if topic:
                    client.unsubscribe_topic(topic)
        become(self, done.model)
        self.lost_workers_ = done.lost
        if not self.solution_.done:
            message = f"{type(self).__name__} {self.solution_.message}."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def to_local(self):
        """The fitted plain estimator: ``deepprox.DeepClassifier`` or ``deepprox.DeepRegressor``."""
        check_is_fitted(self)
        local = self._plain(**self.get_params(deep=False))
        fitted = {name: value for name, value in self.__dict__.items() if name != "lost_workers_"}
        local.__dict__.update(fitted)
        return local

    def save(self, path):
        """Write the fitted plain model to one file, read by :func:`deepprox.load`.

        Parameters
        ----------
        path : str or path
            The file.
        """
        self.to_local().save(path)

    def predict(self, X, posterior=None):
        """Predictions, as a Dask collection for a Dask collection.

        Parameters
        ----------
        X : Dask DataFrame, Dask Array or array-like
            Inputs.
        posterior : Draws, default=None
            Draws to average over.

        Returns
        -------
        y : Dask Series, Dask Array or ndarray
            Predictions.
        """
        return self._predict("predict", X, None, {"posterior": posterior})

    def _predict(self, method: str, X: Any, columns: Any = None, settings: Any = None) -> Any:
        model = self.to_local()
        call = partial(getattr(model, method), **settings or {})
        if not dask.is_dask_collection(X):
            return call(X)
        width, dtype = _shape_of(call, model)
        on_part = partial(_on_part, call, width, dtype)
        if isinstance(X, da.Array):
            more = {"drop_axis": 1} if width is None else {"chunks": (X.chunks[0], (width,))}
            return X.rechunk({1: -1}).map_blocks(on_part, dtype=dtype, meta=_nothing(width, dtype), **more)
        kind = _as_table(_nothing(width, dtype), None, columns)
        return X.map_partitions(_on_table, on_part, columns, meta=kind)


def _shape_of(call: Any, model: Any) -> tuple[int | None, Any]:
    """How many columns a prediction has, None for a vector, and of which type: tried on one row."""
    row: Any = np.zeros((1, model.n_features_in_))
    if "feature_names_in_" in vars(model):
        row = pd.DataFrame(row, columns=model.feature_names_in_)
    tried = call(row)
    return (tried.shape[1] if tried.ndim == 2 else None), tried.dtype


def _nothing(width: int | None, dtype: Any) -> np.ndarray:
    return np.zeros((0,) if width is None else (0, width), dtype)


def _on_part(call: Any, width: int | None, dtype: Any, X: Any) -> np.ndarray:
    """Predictions of a partition, which may have no rows."""
    return call(X) if len(X) else _nothing(width, dtype)


def _on_table(X: Any, on_part: Any, columns: Any) -> Any:
    return _as_table(on_part(X), X.index, columns)


def _as_table(values: np.ndarray, index: Any, columns: Any) -> Any:
    if values.ndim == 1:
        return pd.Series(values, index=index)
    return pd.DataFrame(values, index=index, columns=columns)


def _client(given: Any) -> Client:
    """The client, or a sentence."""
    if given is None:
        try:
            given = get_client()
        except ValueError:
            raise ValueError(
                "There is no Dask client: make one, client = distributed.Client(...), before the fit."
            ) from None
    if not isinstance(given, Client):
        raise TypeError(f"client must be a distributed.Client, got {type(given).__name__}.")
    if given.asynchronous:
        raise ValueError("The client is asynchronous: fit with one that is not, Client(address).")
    return given


def _score(metric: Any, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    if isinstance(y, str):
        X, y = X.drop(columns=[y]), X[y]
    truth, predicted, weight = dask.compute(y, model.predict(X), sample_weight)
    return metric(truth, predicted, sample_weight=weight)


@described
class DeepClassifier(Together, plain.DeepClassifier):
    """``deepprox.DeepClassifier``, fitted by the workers of a Dask cluster, each on its own rows.

    The parameters and the fitted attributes are those of the plain estimator, and so is the solution.
    ``checkpoint`` is a folder that every worker can write to.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from deepprox.dask import DeepClassifier  # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> model = DeepClassifier((50,), alpha=1e-3).fit(table, "y")  # doctest: +SKIP
    >>> labels = model.predict(table.drop(columns="y"))  # doctest: +SKIP
    """

    _plain = plain.DeepClassifier

    @available_if(gives_probabilities)
    def predict_proba(self, X, posterior=None):
        """Probabilities of the classes, of a loss that is a likelihood.

        Parameters
        ----------
        X : Dask DataFrame, Dask Array or array-like
            Inputs.
        posterior : Draws, default=None
            Draws to average over.

        Returns
        -------
        p : Dask DataFrame, Dask Array or ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._predict("predict_proba", X, self.classes_, {"posterior": posterior})

    @available_if(gives_probabilities)
    def predict_log_proba(self, X):
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : Dask DataFrame, Dask Array or array-like
            Inputs.

        Returns
        -------
        log_p : Dask DataFrame, Dask Array or ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._predict("predict_log_proba", X, self.classes_)

    def decision_function(self, X):
        """``eta``: see the plain estimator.

        Parameters
        ----------
        X : Dask DataFrame, Dask Array or array-like
            Inputs.

        Returns
        -------
        eta : Dask DataFrame, Dask Array or ndarray
            Last pre-activation.
        """
        return self._predict("decision_function", X)

    def score(self, X, y, sample_weight=None):
        """Share of correct predictions.

        Parameters
        ----------
        X : Dask DataFrame, Dask Array or array-like
            Inputs.
        y : str or collection
            Labels, or the name of their column.
        sample_weight : collection, default=None
            Weights of the observations.

        Returns
        -------
        accuracy : float
            At most 1.
        """
        return _score(accuracy_score, self, X, y, sample_weight)


@described
class DeepRegressor(Together, plain.DeepRegressor):
    """``deepprox.DeepRegressor``, fitted by the workers of a Dask cluster, each on its own rows.

    The parameters and the fitted attributes are those of the plain estimator, and so is the solution.
    ``checkpoint`` is a folder that every worker can write to.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> from deepprox.dask import DeepRegressor  # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> model = DeepRegressor((50,), alpha=1e-3).fit("table/*.parquet", "y")  # doctest: +SKIP
    """

    _plain = plain.DeepRegressor

    def score(self, X, y, sample_weight=None):
        """``R^2``, the share of the variance that the predictions explain.

        Parameters
        ----------
        X : Dask DataFrame, Dask Array or array-like
            Inputs.
        y : str or collection
            Responses, or the name of their column.
        sample_weight : collection, default=None
            Weights of the observations.

        Returns
        -------
        r2 : float
            At most 1.
        """
        return _score(r2_score, self, X, y, sample_weight)
