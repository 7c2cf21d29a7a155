"""Classification: a multinomial response, or the margins of support vector machines."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import _check_partial_fit_first_call

from deepprox.estimators._base import DeepBase, fits_alone, store
from deepprox.estimators._predict import outputs
from deepprox.estimators._resolve import DEFAULT_ALPHA
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
    available_if,
)

if TYPE_CHECKING:
    from deepprox.posterior import Draws


class DeepClassifier(ClassifierMixin, DeepBase):
    """``minimise_W (1/n) sum_i [log sum_k exp(eta_ik) - eta_iy] + sum_l penalty_l(W_l)``.

    A multinomial response whose ``eta`` is a deep network of the inputs, ``z_l = W_l [1; reads_l]`` and
    ``reads_{l+1} = link_l(z_l)``, with exact zeros among its weights. It is fitted by splitting (ADMM)
    and then joining (proximal quasi-Newton), and ``solution_.certificate`` says how close to a
    stationary point it is.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(50,)
        Widths of the hidden layers; ``()`` is multinomial logistic regression.
    link : str, Link, or one per hidden layer, default="relu"
        What a hidden layer passes on: "relu", "tanh", "sigmoid", "softplus", "leaky_relu", "elu", "silu",
        "gelu", "hard_sigmoid", "hard_tanh", "sine", "rbf", "identity"; of groups of units "softmax",
        "log_sum_exp", "lp_norm", "max_pool"; or an object from :mod:`deepprox.links` or of your own class.
    loss : str or Loss, default="softmax"
        "softmax"; "logistic" (two classes, one column); "hinge" or "squared_hinge" (support vector machines:
        one column for two classes, one against the rest for more, no probabilities); or an object from
        :mod:`deepprox.losses` or of your own class. The hinge has its kink rounded where the margin is within
        0.01 of 1, so that a solution can be certified; ``losses.Hinge(width)`` sets another width, and 0,
        the exact kink, needs ``join=False``.
    penalty : str, Penalty, or one per block, default="l1"
        "none", "l1" (or "lasso"), "l2" (or "ridge"), "elasticnet", "group_inputs" (whole inputs of a
        block leave together), "group_units", "sparse_group_inputs", "sparse_group_units", "mcp", "scad",
        "l0", "bridge", "log_sum", "capped_l1", "max_norm", "nuclear", "student_t", "horseshoe",
        "nonnegative", or an object from :mod:`deepprox.penalties` or of your own class, which carries its
        own strength.
    alpha : float, default=1e-3
        Strength of a penalty given by name, on the scale of the mean loss: the same for any number of
        observations.
    penalize_bias : bool, default=False
        Whether biases are penalised like other weights.
    activity : Activity, or one per hidden layer, default=None
        A charge for what hidden units do, from :mod:`deepprox.activities`: ``ActivityL1(0.01)`` for few
        active units at each observation, ``ActivityGroup(0.01)`` for few active units in all.
    splits : {"all", "none"} or tuple of int, default="all"
        Where the split phase cuts the network: after every hidden layer, or after those numbered, from 1.
        Between two splits the network holds together; the output is always split, so ``()`` cuts nowhere
        else. "none" goes straight to the join phase.
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
        Whether inputs are brought to mean 0 and standard deviation 1 inside. Penalties then act on the
        standardised scale; weights are reported on both.
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coefs_, intercepts_ : list of ndarray of shape (n_in, n_out) and (n_out,)
        Weights and biases of every block, for the inputs as they were given.
    coefs_standardized_, intercepts_standardized_ : list of ndarray
        The same for standardised inputs: what the penalty saw.
    solution_ : Solution
        Objective, loss, penalty, certificate, residuals, status in words, non-zeros per block, seconds
        per phase, objectives of all starts.
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
        alpha: float = DEFAULT_ALPHA,
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
