"""Without the tests' own settings of JAX, as users have it: nothing of deepprox is warned of."""

import subprocess
import sys

CALLS = """
import numpy as np
from sklearn.datasets import load_diabetes
import deepprox
from deepprox import DeepClassifier, DeepClassifierCV, DeepRegressor, DeepRegressorCV

X, y = load_diabetes(return_X_y=True)
X, y = X[:120], y[:120]
plain = DeepRegressor((3,), alpha=0.03, random_state=0).fit(X, y)
str(plain.summary()), plain.predict(X[:2]), plain.degrees_of_freedom()
folds = DeepRegressorCV((3,), random_state=0).fit(X, y)
low, high = folds.predict_interval(X)
assert (low < high).all() and folds.oof_prediction_.dtype == np.float64
DeepClassifierCV((3,), random_state=0).fit(X, y > 140).predict_set(X)
DeepClassifier((3,), alpha="auto", zeros=0.5, random_state=0).fit(X, y > 140).predict_proba(X)
DeepRegressor((), random_state=0).fit(X, y).score(X, y)
deepprox.path(DeepRegressor((3,), random_state=0), X, y, 4).select("bic")
"""


def test_fits_warn_of_nothing():
    done = subprocess.run([sys.executable, "-W", "error", "-c", CALLS], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
