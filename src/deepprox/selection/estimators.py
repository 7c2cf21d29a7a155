"""Estimators that choose their own strength: by cross-validation, or by an information criterion."""

from typing import Any, Literal

from deepprox.estimators import DeepClassifier, DeepRegressor
from deepprox.estimators._base import store
from deepprox.estimators._typing import (
    Activities,
    BatchSize,
    ClassifierLoss,
    CriterionName,
    Links,
    Penalties,
    Precision,
    RandomState,
    RegressorLoss,
    Rho,
    Sizes,
    Splits,
)
from deepprox.selection.choosing import ByCriterion, ByFolds


class DeepClassifierCV(ByFolds, DeepClassifier):
    """``argmin_alpha`` of the mean loss on what folds leave out, or the sparsest within its standard error.

    A :class:`DeepClassifier` that chooses its own strength. It has no ``alpha``, ``warm_start``,
    ``checkpoint`` and ``resume``; its other parameters and attributes are the same.

    Parameters
    ----------
    alphas : int or array-like, default=50
        Strengths, or how many; see :func:`deepprox.path`.
    eps : float, default=1e-3
        The weakest strength as a share of that which would empty a lasso, where ``alphas`` is a count.
    relax : bool, default=False
        Whether strengths only choose the inputs, and the model on these has the weakest one: a criterion
        then does not pay for shrinkage with superfluous inputs.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn: five by default, with every class in its proportion.
    rule : {"1se", "min"}, default="1se"
        The sparsest model within one standard error of the least mean loss, or that of the least. Of one
        fold the standard error is 0, and both rules are the same.
    n_jobs : int, default=None
        Folds that run at a time, in threads.

    Attributes
    ----------
    alpha_ : float
        The strength that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The strengths of the path.
    path_ : Path
        The path on all data; not part of a pickle.
    loss_path_, score_path_ : ndarray of shape (n_alphas, n_folds)
        Mean loss and score on what each fold leaves out.
    alpha_min_, alpha_1se_ : float
        The choices of both rules.
    """

    _plain = DeepClassifier

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: ClassifierLoss = "softmax",
        penalty: Penalties = "l1",
        alphas: Any = 50,
        eps: float = 1e-3,
        relax: bool = False,
        cv: Any = None,
        rule: Literal["1se", "min"] = "1se",
        n_jobs: int | None = None,
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
        random_state: RandomState = None,
        dtype: Precision = "float64",
        verbose: int = 0,
        devices: Any = None,
        fit_intercept: bool = True,
    ) -> None:
        store(self, locals())


class DeepClassifierIC(ByCriterion, DeepClassifier):
    """``argmin_alpha -2 log p + c(n) df``: the strength of the least information criterion.

    A :class:`DeepClassifier` that chooses its own strength. It has no ``alpha``, ``warm_start``,
    ``checkpoint`` and ``resume``; its other parameters and attributes are the same.

    Parameters
    ----------
    alphas : int or array-like, default=50
        Strengths, or how many; see :func:`deepprox.path`.
    eps : float, default=1e-3
        The weakest strength as a share of that which would empty a lasso, where ``alphas`` is a count.
    relax : bool, default=False
        Whether strengths only choose the inputs, and the model on these has the weakest one: a criterion
        then does not pay for shrinkage with superfluous inputs.
    criterion : {"bic", "aic", "aicc", "ebic", "gcv"}, default="bic"
        What is to be least.

    Attributes
    ----------
    alpha_ : float
        The strength that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The strengths of the path.
    path_ : Path
        The path on all data; not part of a pickle.
    criterion_ : ndarray of shape (n_alphas,)
        The criterion of every model.
    """

    _plain = DeepClassifier

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: ClassifierLoss = "softmax",
        penalty: Penalties = "l1",
        alphas: Any = 50,
        eps: float = 1e-3,
        relax: bool = False,
        criterion: CriterionName = "bic",
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
        random_state: RandomState = None,
        dtype: Precision = "float64",
        verbose: int = 0,
        devices: Any = None,
        fit_intercept: bool = True,
    ) -> None:
        store(self, locals())


class DeepRegressorCV(ByFolds, DeepRegressor):
    """``argmin_alpha`` of the mean loss on what folds leave out, or the sparsest within its standard error.

    A :class:`DeepRegressor` that chooses its own strength. It has no ``alpha``, ``warm_start``,
    ``checkpoint`` and ``resume``; its other parameters and attributes are the same.

    Parameters
    ----------
    alphas : int or array-like, default=50
        Strengths, or how many; see :func:`deepprox.path`.
    eps : float, default=1e-3
        The weakest strength as a share of that which would empty a lasso, where ``alphas`` is a count.
    relax : bool, default=False
        Whether strengths only choose the inputs, and the model on these has the weakest one: a criterion
        then does not pay for shrinkage with superfluous inputs.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn: five by default, with every class in its proportion.
    rule : {"1se", "min"}, default="1se"
        The sparsest model within one standard error of the least mean loss, or that of the least. Of one
        fold the standard error is 0, and both rules are the same.
    n_jobs : int, default=None
        Folds that run at a time, in threads.

    Attributes
    ----------
    alpha_ : float
        The strength that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The strengths of the path.
    path_ : Path
        The path on all data; not part of a pickle.
    loss_path_, score_path_ : ndarray of shape (n_alphas, n_folds)
        Mean loss and score on what each fold leaves out.
    alpha_min_, alpha_1se_ : float
        The choices of both rules.
    """

    _plain = DeepRegressor

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: RegressorLoss = "squared",
        penalty: Penalties = "l1",
        alphas: Any = 50,
        eps: float = 1e-3,
        relax: bool = False,
        cv: Any = None,
        rule: Literal["1se", "min"] = "1se",
        n_jobs: int | None = None,
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
        random_state: RandomState = None,
        dtype: Precision = "float64",
        verbose: int = 0,
        devices: Any = None,
        fit_intercept: bool = True,
    ) -> None:
        store(self, locals())


class DeepRegressorIC(ByCriterion, DeepRegressor):
    """``argmin_alpha -2 log p + c(n) df``: the strength of the least information criterion.

    A :class:`DeepRegressor` that chooses its own strength. It has no ``alpha``, ``warm_start``,
    ``checkpoint`` and ``resume``; its other parameters and attributes are the same.

    Parameters
    ----------
    alphas : int or array-like, default=50
        Strengths, or how many; see :func:`deepprox.path`.
    eps : float, default=1e-3
        The weakest strength as a share of that which would empty a lasso, where ``alphas`` is a count.
    relax : bool, default=False
        Whether strengths only choose the inputs, and the model on these has the weakest one: a criterion
        then does not pay for shrinkage with superfluous inputs.
    criterion : {"bic", "aic", "aicc", "ebic", "gcv"}, default="bic"
        What is to be least.

    Attributes
    ----------
    alpha_ : float
        The strength that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The strengths of the path.
    path_ : Path
        The path on all data; not part of a pickle.
    criterion_ : ndarray of shape (n_alphas,)
        The criterion of every model.
    """

    _plain = DeepRegressor

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: RegressorLoss = "squared",
        penalty: Penalties = "l1",
        alphas: Any = 50,
        eps: float = 1e-3,
        relax: bool = False,
        criterion: CriterionName = "bic",
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
        random_state: RandomState = None,
        dtype: Precision = "float64",
        verbose: int = 0,
        devices: Any = None,
        fit_intercept: bool = True,
    ) -> None:
        store(self, locals())
