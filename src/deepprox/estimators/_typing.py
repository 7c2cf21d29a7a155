"""Types of the front: names that settings may have, and decorators of scikit-learn, which has no types."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from sklearn.utils.metaestimators import available_if as _available_if

from deepprox.activities import Activity
from deepprox.blocks import Block
from deepprox.links import Link
from deepprox.losses import Loss
from deepprox.penalties import Penalty

LinkName = Literal[
    "identity",
    "sigmoid",
    "logistic",
    "tanh",
    "relu",
    "leaky_relu",
    "softplus",
    "elu",
    "silu",
    "swish",
    "gelu",
    "hard_sigmoid",
    "hard_tanh",
    "sine",
    "rbf",
    "softmax",
    "log_sum_exp",
    "lp_norm",
    "max_pool",
]
ClassifierLossName = Literal["softmax", "logistic", "hinge", "squared_hinge"]
RegressorLossName = Literal["squared", "huber", "quantile", "poisson", "negative_binomial", "gamma"]
PenaltyName = Literal[
    "none",
    "l1",
    "lasso",
    "laplace",
    "l2",
    "ridge",
    "elasticnet",
    "group_inputs",
    "group_units",
    "sparse_group_inputs",
    "sparse_group_units",
    "mcp",
    "scad",
    "l0",
    "bridge",
    "log_sum",
    "capped_l1",
    "max_norm",
    "nuclear",
    "student_t",
    "horseshoe",
    "nonnegative",
]
CriterionName = Literal["aic", "aicc", "bic", "ebic", "gcv"]
RuleName = Literal["aic", "aicc", "bic", "ebic", "gcv", "validation", "1se", "loss"]

Sizes: TypeAlias = int | Block | Sequence[int | Block]
Links: TypeAlias = LinkName | Link | Sequence[LinkName | Link]
ClassifierLoss: TypeAlias = ClassifierLossName | Loss
RegressorLoss: TypeAlias = RegressorLossName | Loss
Penalties: TypeAlias = PenaltyName | Penalty | Sequence[PenaltyName | Penalty | None] | None
Activities: TypeAlias = Activity | Sequence[Activity | None] | None
Strength: TypeAlias = float | Literal["auto"]
Splits: TypeAlias = Literal["all", "none"] | Sequence[int]
Rho: TypeAlias = Literal["auto"] | float | Sequence[float | np.ndarray] | np.ndarray
BatchSize: TypeAlias = Literal["auto"] | int | None
RandomState: TypeAlias = int | np.random.RandomState | None
Precision: TypeAlias = Literal["float64", "float32"] | type[np.float64] | type[np.float32]
Folder: TypeAlias = str | os.PathLike[str] | None

F = TypeVar("F", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
    """A method that an estimator has where ``check(estimator)`` holds."""
    found: Callable[[F], F] = _available_if(check)
    return found
