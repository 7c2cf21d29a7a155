"""The plain estimators inside others: where only they will do, and how another one becomes one of them."""

from typing import Any

from sklearn.base import clone

from deepprox.checks import shown_text
from deepprox.estimators._base import DeepBase, fits_alone
from deepprox.saving.tree import PASSING


def need_plain(estimator: Any, who: str) -> None:
    """TypeError unless it is an estimator that fits one strength by itself."""
    if not isinstance(estimator, DeepBase) or not fits_alone(estimator):
        kind = type(estimator)
        raise TypeError(
            f"{who} takes a deepprox.DeepClassifier or a deepprox.DeepRegressor, which fit one strength by "
            f"themselves, and not a {kind.__module__}.{kind.__qualname__}: give one of them with the same "
            f"settings."
        )


def copied(estimator: Any) -> Any:
    """A clone of an estimator; TypeError where a parameter is what cannot be copied, such as a generator."""
    try:
        return clone(estimator)
    except (TypeError, MemoryError) as error:
        raise TypeError(
            f"A parameter of {type(estimator).__name__} cannot be copied ({shown_text(str(error))}): give "
            f"plain values."
        ) from error


def become(model: Any, fitted: Any) -> None:
    """Take over all that another estimator learnt, and forget what an earlier fit learnt."""
    for name in [*vars(model)]:
        if name.endswith("_"):
            del vars(model)[name]
    given, facts = fitted.get_params(deep=False), vars(fitted)
    vars(model).update({k: v for k, v in facts.items() if k not in given and not k.startswith(PASSING)})
