"""Which architecture should one believe? A linear model, a narrow network and a wide one, side by side.

Criteria charge for the degrees of freedom that a fit uses, not for the weights it began with. The wide
network removes what it does not need and ends as the narrow one does.
"""

import numpy as np
from sklearn.metrics import r2_score

from deepprox import DeepRegressor, compare
from deepprox.selection import Comparison


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Five inputs, of which two matter: one as a line, one by its size."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 5))
    return X, X[:, 0] + 2 * np.abs(X[:, 1]) + 0.3 * rng.normal(size=n)


def main() -> tuple[Comparison, dict[str, float]]:
    """Compare by BIC, and average the models by their weights."""
    X, y = draw(200, seed=0)
    X_new, y_new = draw(1000, seed=1)
    settings = {"link": "relu", "alpha": 0.03, "random_state": 0}
    models = {
        "linear": DeepRegressor((), **settings),
        "narrow": DeepRegressor((4,), **settings),
        "wide": DeepRegressor((16,), **settings),
    }
    found = compare(models, X, y)
    print(found.frame()[["n_inputs", "n_nonzero", "df", "bic", "weight_bic"]].round(3))
    new = {name: r2_score(y_new, model.predict(X_new)) for name, model in zip(found.names, found.estimators)}
    new["average"] = r2_score(y_new, found.predict(X_new, by="bic"))
    for name, score in new.items():
        print(f"{name:<8} R squared of new data {score:.3f}")
    return found, new


if __name__ == "__main__":
    main()
