"""Counts with a Poisson loss: how often a bicycle is rented, where the effect of warmth has a bend.

The counts are drawn from a known mean, so that the fit can be compared with the truth. A linear model in
``log(mean)`` (scikit-learn's PoissonRegressor) cannot follow the bend.
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deepprox import DeepRegressor


def rentals(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Inputs, counts, and the mean that the counts were drawn from."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "warmth": rng.uniform(-5, 35, n),
            "rain": rng.exponential(2.0, n),
            "weekend": rng.random(n) < 2 / 7,
            "moon": rng.uniform(0, 1, n),
        }
    ).astype(float)
    comfortable = -((X["warmth"] - 22) ** 2) / 200
    mean = np.exp(2.5 + comfortable - 0.15 * X["rain"] + 0.3 * X["weekend"])
    return X, pd.Series(rng.poisson(mean), name="rentals"), mean


def main() -> dict[str, float]:
    """Deviance of both models on new days, and what the network reads."""
    X, y, mean = rentals(600, seed=0)
    X_train, X_test, y_train, _, _, truth = train_test_split(X, y, mean, random_state=0)
    network = DeepRegressor((8,), link="relu", loss="poisson", alpha=0.05, random_state=0)
    linear = make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-3))
    deviance = {}
    for name, model in {"network": network, "linear": linear}.items():
        model.fit(X_train, y_train)
        deviance[name] = mean_poisson_deviance(truth, model.predict(X_test))
        print(f"{name:<8} deviance from the true mean {deviance[name]:.4f}")
    print(f"The network has {network.live_[1].sum()} units left of 8, and {network.n_nonzero_} weights.")
    return deviance


if __name__ == "__main__":
    main()
