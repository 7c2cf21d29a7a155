"""The scikit-learn front: estimators that store, validate late, and hold no mathematics."""

from deepprox.estimators.classifier import DeepClassifier
from deepprox.estimators.regressor import DeepRegressor

__all__ = ["DeepClassifier", "DeepRegressor"]
