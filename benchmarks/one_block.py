"""One block against scikit-learn: objective and zero pattern."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.preprocessing import scale

from benchmarks import show
from deepprox import DeepClassifier, DeepRegressor

ONE = {"hidden_layer_sizes": (), "standardize": False, "tol": 1e-9}


def regression():
    """Lasso and Ridge on diabetes."""
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    for alpha in (0.1, 1.0, 10.0):
        theirs = Lasso(alpha, tol=1e-14, max_iter=10**6).fit(X, y)
        value = np.mean((y - theirs.predict(X)) ** 2) / 2 + alpha * np.abs(theirs.coef_).sum()
        ours = DeepRegressor(alpha=alpha, **ONE).fit(X, y)
        yield f"Lasso, diabetes, alpha {alpha}", ours, value, theirs.coef_[:, None]
    alpha = 0.1
    theirs = Ridge(alpha * len(X)).fit(X, y)
    value = np.mean((y - theirs.predict(X)) ** 2) / 2 + alpha / 2 * (theirs.coef_**2).sum()
    yield (
        "Ridge, diabetes",
        DeepRegressor(penalty="l2", alpha=alpha, **ONE).fit(X, y),
        value,
        theirs.coef_[:, None],
    )


def classification():
    """Multinomial lasso on breast cancer and digits."""
    for name, load, alpha in [("breast cancer", load_breast_cancer, 0.01), ("digits", load_digits, 0.01)]:
        X, y = load(return_X_y=True)
        X = scale(X)
        if name == "digits":
            X, y = X[:600], y[:600]
        ours = DeepClassifier(alpha=alpha, **ONE).fit(X, y)
        theirs = LogisticRegression(
            l1_ratio=1, C=1 / (alpha * len(X)), solver="saga", tol=1e-10, max_iter=20_000
        ).fit(X, y)  # fmt: skip
        p = theirs.predict_proba(X)[np.arange(len(y)), y]
        coef = theirs.coef_
        if len(coef) == 1:  # the binary model puts both classes' difference in one row
            coef = np.concatenate([-coef / 2, coef / 2])
        value = -np.log(p).mean() + alpha * np.abs(coef).sum()
        yield f"LogisticRegression(l1), {name}", ours, value, coef.T


def main() -> None:
    """Relative difference of the objectives, and whether the zeros agree."""
    rows = []
    for name, ours, value, coef in [*regression(), *classification()]:
        gap = (ours.objective_ - value) / value
        differ = int(((ours.coefs_[0] != 0) != (coef != 0)).sum())
        rows.append([name, ours.objective_, value, gap, str(differ), ours.solution_.certificate,
                     show.met(gap <= 1e-8 and differ == 0)])  # fmt: skip
    columns = ["", "ours", "scikit-learn", "(ours - theirs) / theirs", "zeros that differ", "certificate", ""]
    show.table("One block", columns, rows)
