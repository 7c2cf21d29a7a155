"""Deep networks fitted by proximal splitting: exact zeros, certified solutions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepprox import activities, links, losses, penalties
    from deepprox.estimators import DeepClassifier, DeepRegressor
    from deepprox.loading import load
    from deepprox.selection import (
        DeepClassifierCV,
        DeepClassifierIC,
        DeepRegressorCV,
        DeepRegressorIC,
        compare,
        path,
        stability_selection,
    )
    from deepprox.streaming import fit_stream

    __version__: str

SELECTION = (
    "DeepClassifierCV",
    "DeepClassifierIC",
    "DeepRegressorCV",
    "DeepRegressorIC",
    "compare",
    "path",
    "stability_selection",
)
__all__ = [
    "DeepClassifier",
    "DeepClassifierCV",
    "DeepClassifierIC",
    "DeepRegressor",
    "DeepRegressorCV",
    "DeepRegressorIC",
    "activities",
    "compare",
    "fit_stream",
    "links",
    "load",
    "losses",
    "path",
    "penalties",
    "stability_selection",
]


def __getattr__(name: str) -> Any:
    # JAX and scikit-learn take most of a second each to import: they wait until a name asks for them.
    if name in ("DeepClassifier", "DeepRegressor"):
        return getattr(import_module("deepprox.estimators"), name)
    if name == "load":
        return import_module("deepprox.loading").load
    if name == "fit_stream":
        return import_module("deepprox.streaming").fit_stream
    if name in SELECTION:
        return getattr(import_module("deepprox.selection"), name)
    if name in ("activities", "links", "losses", "penalties"):
        return import_module(f"deepprox.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("deepprox")
    raise AttributeError(f"module 'deepprox' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
