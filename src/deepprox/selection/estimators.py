"""Estimators that choose their own strength: by cross-validation, or by an information criterion."""

from typing import Any, Literal

from deepprox.estimators import DeepClassifier, DeepRegressor
from deepprox.estimators._base import store
from deepprox.estimators._described import described
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
from deepprox.selection.averaging import AveragedClasses, AveragedNumbers
from deepprox.selection.choosing import ByCriterion, ByFolds


@described
class DeepClassifierCV(ByFolds, AveragedClasses):
    """``argmin_alpha`` of the mean error on what folds leave out, and the mean of the folds' networks.

    A :class:`DeepClassifier` that chooses its own strength by cross-validation and predicts by the mean of
    the networks of the folds. The network of all rows at that strength is ``best_estimator_``; weights,
    summary, report, criteria, draws and files show that one, and say that predictions are averaged. It has no
    ``alpha``, ``warm_start``, ``checkpoint`` and ``resume``; its other parameters and attributes are the
    same.
    """

    _plain = DeepClassifier

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: ClassifierLoss = "softmax",
        penalty: Penalties = "l1",
        alphas: Any = "auto",
        eps: float = 1e-3,
        relax: bool = False,
        cv: Any = None,
        rule: Literal["min", "1se"] = "min",
        scoring: Any = None,
        average: bool = True,
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


@described
class DeepClassifierIC(ByCriterion, DeepClassifier):
    """``argmin_alpha -2 log p + c(n) df``: the strength of the least information criterion.

    A :class:`DeepClassifier` that chooses its own strength. It has no ``alpha``, ``warm_start``,
    ``checkpoint`` and ``resume``; its other parameters and attributes are the same.
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


@described
class DeepRegressorCV(ByFolds, AveragedNumbers):
    """``argmin_alpha`` of the mean error on what folds leave out, and the mean of the folds' networks.

    A :class:`DeepRegressor` that chooses its own strength by cross-validation and predicts by the mean of
    the networks of the folds. The network of all rows at that strength is ``best_estimator_``; weights,
    summary, report, criteria, draws and files show that one, and say that predictions are averaged. It has no
    ``alpha``, ``warm_start``, ``checkpoint`` and ``resume``; its other parameters and attributes are the
    same.
    """

    _plain = DeepRegressor

    def __init__(
        self,
        hidden_layer_sizes: Sizes = (50,),
        link: Links = "relu",
        loss: RegressorLoss = "squared",
        penalty: Penalties = "l1",
        alphas: Any = "auto",
        eps: float = 1e-3,
        relax: bool = False,
        cv: Any = None,
        rule: Literal["min", "1se"] = "min",
        scoring: Any = None,
        average: bool = True,
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


@described
class DeepRegressorIC(ByCriterion, DeepRegressor):
    """``argmin_alpha -2 log p + c(n) df``: the strength of the least information criterion.

    A :class:`DeepRegressor` that chooses its own strength. It has no ``alpha``, ``warm_start``,
    ``checkpoint`` and ``resume``; its other parameters and attributes are the same.
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
