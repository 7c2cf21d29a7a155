"""Predictions by the mean of the networks of folds, and how sure these are of new rows."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deepprox.estimators import DeepClassifier, DeepRegressor
from deepprox.estimators._forward import forward_of
from deepprox.estimators._given import read_new
from deepprox.estimators._response import gives_probabilities
from deepprox.estimators._typing import RandomState, available_if
from deepprox.posterior.draws import need_level
from deepprox.selection.fold_networks import r_squared
from deepprox.selection.held_out import HeldOut

if TYPE_CHECKING:
    from deepprox.plotting import CalibrationDisplay
    from deepprox.posterior import Draws

LEAST = np.finfo(float).tiny  # probability whose logarithm is finite


def class_values(outputs: np.ndarray, probabilities: bool) -> np.ndarray:
    """A column for each class: its probability, or what speaks for it."""
    if outputs.shape[-1] > 1:
        return outputs
    return np.concatenate([1 - outputs if probabilities else -outputs, outputs], axis=-1)


class Averaged:
    """The mean of the networks of all folds, where ``average`` is true."""

    average: Any
    best_estimator_: Any
    estimators_: list[Any]
    held_out_: HeldOut

    def _each(self, X: Any, as_mean: bool) -> np.ndarray:
        """What the network of every fold says, of shape (n_folds, n, k)."""
        check_is_fitted(self)
        X = read_new(self, X, self.estimators_[0].fitted_.W[0].dtype)
        return np.stack([forward_of(one.fitted_).outputs(X, as_mean) for one in self.estimators_])

    def plot_calibration(self, ax: Any = None) -> "CalibrationDisplay":
        """Draw what networks say of the rows that they have not seen against the truth.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure otherwise.

        Returns
        -------
        display : deepprox.plotting.CalibrationDisplay
            The drawing, with its ``figure_`` and ``ax_``.
        """
        from deepprox.plotting import CalibrationDisplay

        check_is_fitted(self)
        return CalibrationDisplay.from_estimator(self, ax)

    def to_onnx(self, dtype: Literal["float32", "float64"] = "float32") -> Any:
        """The network that predicts as an ONNX model, where it is one: with ``average=False``.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float32"
            Precision of the model and of what it reads.

        Returns
        -------
        model : onnx.ModelProto
            That of ``best_estimator_``.
        """
        if self._averages():
            raise ValueError(
                f"Predictions are the mean of {len(self.estimators_)} networks, which is not one ONNX model: "
                f"export best_estimator_, the network of all rows, or each of estimators_."
            )
        return self.best_estimator_.to_onnx(dtype)

    def _averages(self, posterior: Any = None) -> bool:
        """Whether the mean of the networks answers, and not the one of all rows."""
        check_is_fitted(self)
        return bool(self.average) and posterior is None


class AveragedClasses(Averaged, DeepClassifier):
    """Probabilities, or what speaks for a class where there are none, averaged over the folds.

    Attributes
    ----------
    oof_prediction_ : ndarray of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of every row of the fit from networks that have not seen it, the mean where it is in
        several test folds, nan where it is in none; the decision function of a loss without probabilities.
    """

    def _as_mean(self) -> bool:
        return gives_probabilities(self)

    def _columns(self, outputs: np.ndarray) -> np.ndarray:
        return class_values(outputs, gives_probabilities(self))

    def _score(self, held: HeldOut) -> float:
        """The accuracy of what was said of rows in a test fold."""
        rows, weight = held.counts()
        right = held.mean()[rows].argmax(1) == held.mean_truth()[rows, 0]
        return float(right @ weight / weight.sum())

    def _values(self, X: Any) -> np.ndarray:
        """Of every fold a column for each class: its probability, or what speaks for it."""
        return self._columns(self._each(X, self._as_mean()))

    @property
    def oof_prediction_(self) -> np.ndarray:
        """What networks say of the rows of the fit that they have not seen."""
        found = self.held_out_.mean()
        one = not gives_probabilities(self) and found.shape[1] == 2
        return found[:, 1] if one else found

    def decision_function(self, X: Any) -> np.ndarray:
        """What speaks for the classes: logarithms of averaged probabilities, or averaged margins.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        eta : ndarray of shape (n_samples, n_classes) or (n_samples,)
            One column for each class; of two classes the one column of the second.
        """
        if not self._averages():
            return super().decision_function(X)
        if gives_probabilities(self):
            eta = np.log(np.maximum(self._values(X).mean(0), LEAST))
            return np.asarray(eta[:, 1] - eta[:, 0] if eta.shape[1] == 2 else eta)
        eta = self._each(X, as_mean=False).mean(0)
        if eta.shape[1] == 1:
            return np.asarray(eta[:, 0])
        return np.asarray(eta[:, 1] - eta[:, 0] if eta.shape[1] == 2 else eta)

    @available_if(gives_probabilities)
    def predict_proba(self, X: Any, posterior: "Draws | None" = None) -> np.ndarray:
        """Probabilities of the classes: the mean of the networks of the folds, or the one of all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        posterior : Draws, default=None
            What :meth:`sample_posterior` returned: probabilities of the network of all rows, averaged over
            it.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        if not self._averages(posterior):
            return np.asarray(super().predict_proba(X, posterior))
        return np.asarray(self._values(X).mean(0))

    def predict(self, X: Any, posterior: "Draws | None" = None) -> np.ndarray:
        """The class that most speaks for: of the mean of the networks, or of the one of all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        posterior : Draws, default=None
            What :meth:`sample_posterior` returned: probabilities of the network of all rows, averaged over
            it.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        if not self._averages(posterior):
            return super().predict(X, posterior)
        eta = self.decision_function(X)
        return np.asarray(self.classes_[(eta > 0).astype(int) if eta.ndim == 1 else eta.argmax(1)])

    def predict_set(self, X: Any, level: float = 0.9) -> np.ndarray:
        """The classes that hold the true one with probability ``level``, from errors out of fold.

        Cross-conformal sets (CV+, Romano, Sesia and Candes 2020): of rows that are exchangeable with those of
        the fit the sets hold the true class with about that probability, on average over all of them,
        whatever the networks are worth. The worse these are the larger are the sets. Where they are mostly
        right a set may be empty: no class is then as likely as the true ones are elsewhere.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        level : float, default=0.9
            Share of the sets that hold the true class.

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            Which classes are in the set of a row, in the order of ``classes_``.
        """
        check_is_fitted(self)
        need_level(level)
        return self.held_out_.sets(self._values(X), float(level))


class AveragedNumbers(Averaged, DeepRegressor):
    """Expected responses averaged over the folds.

    Attributes
    ----------
    oof_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Prediction of every row of the fit from networks that have not seen it, the mean where it is in
        several test folds, nan where it is in none.
    """

    @property
    def oof_prediction_(self) -> np.ndarray:
        """What networks say of the rows of the fit that they have not seen."""
        return self._shaped(self.held_out_.mean())

    def _as_mean(self) -> bool:
        return True

    def _columns(self, outputs: np.ndarray) -> np.ndarray:
        return outputs

    def _score(self, held: HeldOut) -> float:
        """R squared of what was said of rows in a test fold."""
        rows, weight = held.counts()
        return r_squared(held.mean_truth()[rows], held.mean()[rows], weight)

    def _shaped(self, columns: np.ndarray) -> np.ndarray:
        return columns[:, 0] if self.fitted_.one_column else columns

    def predict(self, X: Any, posterior: "Draws | None" = None) -> np.ndarray:
        """The expected response: the mean of the networks of the folds, or of the one of all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        posterior : Draws, default=None
            What :meth:`sample_posterior` returned: the expectation of the network of all rows, averaged over
            it.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In the shape of the response of the fit.
        """
        if not self._averages(posterior):
            return super().predict(X, posterior)
        return self._shaped(self._each(X, as_mean=True).mean(0))

    def predict_interval(
        self,
        X: Any,
        level: float = 0.9,
        posterior: "Draws | None" = None,
        random_state: RandomState = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The interval that holds a new response with probability ``level``, from errors out of fold.

        CV+ (Barber, Candes, Ramdas and Tibshirani 2021): of rows that are exchangeable with those of the fit
        the intervals hold the response with about that probability, on average over all of them, whatever its
        distribution and whatever the networks are worth. An end is infinite where there are too few rows for
        the level. Outputs have intervals of their own.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        level : float, default=0.9
            Share of the intervals that hold the response.
        posterior : Draws, default=None
            What :meth:`sample_posterior` returned: the interval is then that of the posterior of the network
            of all rows, as a plain estimator has it.
        random_state : int, RandomState or None, default=0
            Seed of the responses that are drawn with a ``posterior``.

        Returns
        -------
        low, high : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In the shape of the response of the fit.
        """
        check_is_fitted(self)
        if posterior is not None:
            return super().predict_interval(X, level, posterior, random_state)
        need_level(level)
        low, high = self.held_out_.interval(self._each(X, as_mean=True), float(level))
        return self._shaped(low), self._shaped(high)
