"""How sparse, how complex, which architecture: paths, criteria, folds and comparisons."""

from deepprox.selection.comparison import Comparison, compare
from deepprox.selection.estimators import (
    DeepClassifierCV,
    DeepClassifierIC,
    DeepRegressorCV,
    DeepRegressorIC,
)
from deepprox.selection.paths import Choice, Path, path
from deepprox.selection.stability import Stability, stability_selection

__all__ = [
    "Choice",
    "Comparison",
    "DeepClassifierCV",
    "DeepClassifierIC",
    "DeepRegressorCV",
    "DeepRegressorIC",
    "Path",
    "Stability",
    "compare",
    "path",
    "stability_selection",
]
