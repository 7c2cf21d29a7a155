"""Classification: a multinomial response, or the margins of support vector machines."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import _check_partial_fit_first_call

from deepprox.estimators._base import DeepBase, fits_alone, store
from deepprox.estimators._described import described
from deepprox.estimators._predict import outputs
from deepprox.estimators._response import Classes, gives_probabilities
from deepprox.estimators._typing import (
    Activities,
    BatchSize,
    ClassifierLoss,
    Folder,
    Links,
    Penalties,
    Precision,
    RandomState,
    Rho,
    Sizes,
    Splits,
    Strength,
    available_if,
)

if TYPE_CHECKING:
    from deepprox.posterior import Draws


@described
class DeepClassifier(ClassifierMixin, DeepBase):
    """``minimise_W (1/n) sum_i [log sum_k exp(eta_ik) - eta_iy] + sum_l penalty_l(W_l)``.

    A multinomial response whose ``eta`` is a deep network of the inputs, ``z_l = W_l [1; reads_l]`` and
    ``reads_{l+1} = link_l(z_l)``, with exact zeros among its weights. It is fitted by splitting (ADMM)
    and then joining (proximal quasi-Newton), and ``solution_.certificate`` says how close to a
    stationary point it is.

    Parameters
    ----------
    loss : str or Loss, default="softmax"
        "softmax"; "logistic" (two classes, one column); "hinge" or "squared_hinge" (support vector machines:
        one column for two classes, one against the rest for more, no probabilities); or an object from
        :mod:`deepprox.losses` or of your own class. The hinge has its kink rounded where the margin is within
        0.01 of 1, so that a solution can be certified; ``losses.Hinge(width)`` sets another width, and 0,
        the exact kink, needs ``join=False``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deepprox import DeepClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = DeepClassifier((10,), link="sigmoid", alpha=0.005, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    classes_: np.ndarray

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: ClassifierLoss = "softmax",
        penalty: Penalties = "l1",
        alpha: Strength = "auto",
        penalize_bias: bool = False,
        activity: Activities = None,
        splits: Splits = "all",
        join: bool = True,
        rho: Rho = "auto",
        batch_size: BatchSize = "auto",
        n_init: int = 1,
        standardize: bool = True,
        max_iter: int = 2000,
        tol: float = 1e-6,
        warm_start: bool = False,
        random_state: RandomState = None,
        dtype: Precision = "float64",
        verbose: int = 0,
        devices: Any = None,
        checkpoint: Folder = None,
        resume: bool = False,
        fit_intercept: bool = True,
        n_nonzero: int | None = None,
        zeros: float | None = None,
        max_inputs: int | None = None,
    ) -> None:
        store(self, locals())

    @available_if(fits_alone)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """``(1 - share) past(W) + share loss(W; batch) + penalties``, made lower by a batch of a stream.

        ``past`` is what moving sums tell of all rows before: the gradient of their loss, Gram matrices of
        what every block reads and of how the loss bends, ``sum_l d_l^2 + m_l^2 + m_l d_l`` numbers however
        many rows there were. ``share`` is the batch's share of all rows; of networks with hidden layers its
        root, so that what was learnt at early weights is forgotten.

        It is not a fit: it takes at most 25 quasi-Newton steps from where it is, so the status is "streaming"
        and there is no certificate. Rows that can be read again are better given to
        :func:`deepprox.streaming.fit_stream`. ``splits``, ``rho``, ``n_init`` and ``max_iter`` have no
        meaning here.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs of the batch: some hundred rows or more are better than a few. They are standardised by the
            rows so far.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that the stream may have: needed at the first call, and not later.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, on one scale for all batches.

        Returns
        -------
        self : object
            The estimator after the batch. After :meth:`fit` the stream goes on from its data.
        """
        if _check_partial_fit_first_call(self, classes):
            if len(self.classes_) < 2:
                raise ValueError(f"classes must be at least 2 labels, but there is only {self.classes_[0]}.")
            Classes(self).check_classes()
        self._learn(X, y, sample_weight)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """``eta``: one column for each class; of a binary response its one column, or the difference of two.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        eta : ndarray of shape (n_samples, n_classes) or (n_samples,)
            Last pre-activation.
        """
        eta = outputs(self, X, as_mean=False)
        if eta.shape[1] == 1:
            return eta[:, 0]
        return eta[:, 1] - eta[:, 0] if eta.shape[1] == 2 else eta

    @available_if(gives_probabilities)
    def predict_proba(self, X: Any, posterior: "Draws | None" = None) -> np.ndarray:
        """Probabilities of the classes, of a loss that is a likelihood.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        posterior : Draws, default=None
            What :meth:`sample_posterior` returned: probabilities are averaged over it.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        p = outputs(self, X, as_mean=True) if posterior is None else self._posterior_mean(X, posterior)
        return np.concatenate([1 - p, p], axis=1) if p.shape[1] == 1 else p

    @available_if(gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):  # a probability may underflow to 0
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any, posterior: "Draws | None" = None) -> np.ndarray:
        """The most probable class, or that of the largest margin.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        posterior : Draws, default=None
            What :meth:`sample_posterior` returned: probabilities are averaged over it.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        if posterior is not None:
            return np.asarray(self.classes_[self.predict_proba(X, posterior).argmax(axis=1)])
        eta = outputs(self, X, as_mean=False)
        best = eta[:, 0] > 0 if eta.shape[1] == 1 else eta.argmax(axis=1)
        return np.asarray(self.classes_[best.astype(int)])
