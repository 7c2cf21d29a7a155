"""Regression: a response of numbers, counts or positive amounts, one column or several."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from deepprox.estimators._base import DeepBase, fits_alone, store
from deepprox.estimators._predict import outputs
from deepprox.estimators._resolve import DEFAULT_ALPHA
from deepprox.estimators._seeds import seed_of
from deepprox.estimators._typing import (
    Activities,
    BatchSize,
    Folder,
    Links,
    Penalties,
    Precision,
    RandomState,
    RegressorLoss,
    Rho,
    Sizes,
    Splits,
    available_if,
)
from deepprox.posterior.draws import need_level
from deepprox.statistics.criteria import Risk, sure

if TYPE_CHECKING:
    from deepprox.posterior import Draws


class DeepRegressor(RegressorMixin, DeepBase):
    """``minimise_W 1/(2n) sum_i |eta_i - y_i|^2 + sum_l penalty_l(W_l)``.

    A response, of one or several columns, whose mean ``eta`` is a deep network of the inputs,
    ``z_l = W_l [1; reads_l]`` and ``reads_{l+1} = link_l(z_l)``, with exact zeros among its weights. It is
    fitted by splitting (ADMM) and then joining (proximal quasi-Newton), and ``solution_.certificate``
    says how close to a stationary point it is. With one block it is the lasso, alpha for alpha. Other losses
    are for counts, positive amounts, quantiles and responses with outliers.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(50,)
        Widths of the hidden layers; ``()`` is a linear model.
    link : str, Link, or one per hidden layer, default="relu"
        What a hidden layer passes on: "relu", "tanh", "sigmoid", "softplus", "leaky_relu", "elu", "silu",
        "gelu", "hard_sigmoid", "hard_tanh", "sine", "rbf", "identity"; of groups of units "softmax",
        "log_sum_exp", "lp_norm", "max_pool"; or an object from :mod:`deepprox.links` or of your own class.
    loss : str or Loss, default="squared"
        "squared"; "huber" (``delta`` = 1.35 in the units of the response); "quantile" (the median);
        "poisson", "negative_binomial" (dispersion 1) or "gamma" (shape 1), of mean ``exp(eta)``; or an object
        from :mod:`deepprox.losses`, such as ``losses.Quantile(0.9)``, or of your own class. A
        quantile has its kink rounded within a hundredth of the response's standard deviation, so that a
        solution can be certified; ``losses.Quantile(0.9, width)`` sets another width, and 0, the exact
        kink, needs ``join=False``.
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
    >>> from sklearn.datasets import load_diabetes
    >>> from deepprox import DeepRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DeepRegressor((), alpha=2.0).fit(X, y)
    >>> int(model.selected_features_.sum())
    7
    """

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: RegressorLoss = "squared",
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @available_if(fits_alone)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """``(1 - share) past(W) + share loss(W; batch) + penalties``, made lower by a batch of a stream.

        ``past`` is what moving sums tell of all rows before: the gradient of their loss, Gram matrices of
        what every block reads and of how the loss bends, ``sum_l d_l^2 + m_l^2 + m_l d_l`` numbers however
        many rows there were. ``share`` is the batch's share of all rows; of networks with hidden layers its
        root, so that what was learnt at early weights is forgotten. Without hidden layers and with squared
        loss the sums are exact, and the stream ends with the lasso of all its rows.

        It is not a fit: it takes at most 25 quasi-Newton steps from where it is, so the status is "streaming"
        and there is no certificate. Rows that can be read again are better given to
        :func:`deepprox.streaming.fit_stream`. ``splits``, ``rho``, ``n_init`` and ``max_iter`` have no
        meaning here.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs of the batch: some hundred rows or more are better than a few. They are standardised by the
            rows so far.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Responses.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, on one scale for all batches.

        Returns
        -------
        self : object
            The estimator after the batch. After :meth:`fit` the stream goes on from its data.
        """
        self._learn(X, y, sample_weight)
        return self

    def sure(self, sigma: float | None = None) -> Risk:
        """``|y - fit|^2 + 2 sigma^2 df``: Stein's estimate of what new responses at the same inputs cost.

        Parameters
        ----------
        sigma : float, default=None
            Standard deviation of the response; by default ``sqrt(RSS / (n - df))``.

        Returns
        -------
        risk : Risk
            ``sure``, its ``mean`` over the responses, and what it is made of. For squared loss only.
        """
        check_is_fitted(self)
        return sure(self._likelihood(), self.degrees_of_freedom(random_state=0), sigma)

    def predict(self, X: Any, posterior: "Draws | None" = None) -> np.ndarray:
        """The expected response, or its quantile where that is the loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        posterior : Draws, default=None
            What :meth:`sample_posterior` returned: the expectation is averaged over it.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In the shape of the response of the fit.
        """
        mean = outputs(self, X, as_mean=True) if posterior is None else self._posterior_mean(X, posterior)
        return mean[:, 0] if self.fitted_.one_column else mean

    def predict_interval(
        self,
        X: Any,
        level: float = 0.9,
        posterior: "Draws | None" = None,
        random_state: RandomState = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The interval that holds a new response with probability ``level``, of numbers or counts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        level : float, default=0.9
            Probability of the interval, equal tails left out.
        posterior : Draws, default=None
            What :meth:`sample_posterior` returned; by default draws of Laplace's approximation.
        random_state : int, RandomState or None, default=0
            Seed of the responses that are drawn.

        Returns
        -------
        low, high : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In the shape of the response of the fit.
        """
        check_is_fitted(self)
        need_level(level)
        seed = seed_of(random_state)
        if posterior is None:
            posterior = self.sample_posterior("laplace", random_state=seed)
        X = self._inputs(X, posterior)
        ends = posterior.interval(X, float(level), seed)
        low, high = (end[:, 0] if self.fitted_.one_column else end for end in ends)
        return low, high
