"""Pictures, in the manner of scikit-learn's displays."""

from deepprox.plotting.calibration import CalibrationDisplay
from deepprox.plotting.comparison import ComparisonDisplay
from deepprox.plotting.convergence import ConvergenceDisplay
from deepprox.plotting.path import RegularizationPathDisplay
from deepprox.plotting.stability import StabilityDisplay

__all__ = [
    "CalibrationDisplay",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "RegularizationPathDisplay",
    "StabilityDisplay",
]
