"""Regression: a response of numbers, counts or positive amounts, one column or several."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from deepprox.estimators._base import DeepBase, fits_alone, store
from deepprox.estimators._described import described
from deepprox.estimators._predict import outputs
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
    Strength,
    available_if,
)
from deepprox.posterior.draws import need_level
from deepprox.statistics.criteria import Risk, sure

if TYPE_CHECKING:
    from deepprox.posterior import Draws


@described
class DeepRegressor(RegressorMixin, DeepBase):
    """``minimise_W 1/(2n) sum_i |eta_i - y_i|^2 + sum_l penalty_l(W_l)``.

    A response, of one or several columns, whose mean ``eta`` is a deep network of the inputs,
    ``z_l = W_l [1; reads_l]`` and ``reads_{l+1} = link_l(z_l)``, with exact zeros among its weights. It is
    fitted by splitting (ADMM) and then joining (proximal quasi-Newton), and ``solution_.certificate``
    says how close to a stationary point it is. With one block it is the lasso, alpha for alpha. Other losses
    are for counts, positive amounts, quantiles and responses with outliers.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        "squared"; "huber" (``delta`` = 1.35 spreads of the response); "quantile" (the median);
        "poisson", "negative_binomial" (dispersion 1) or "gamma" (shape 1), of mean ``exp(eta)``; or an object
        from :mod:`deepprox.losses`, such as ``losses.Quantile(0.9)``, or of your own class. A
        quantile has its kink rounded within a hundredth of the response's standard deviation, so that a
        solution can be certified; ``losses.Quantile(0.9, width)`` sets another width, and 0, the exact
        kink, needs ``join=False``. The first three are of the response less its level, in units of its
        spread (``standardize``); ``losses.Huber(5.0, centre=0, spread=1)`` gives both.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from deepprox import DeepRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DeepRegressor((), alpha=0.026).fit(X, y)
    >>> int(model.selected_features_.sum())
    7
    """

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: RegressorLoss = "squared",
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
