"""A penalty of one's own: inputs have prices, and a weight costs what its input costs.

A penalty is a value and its prox, and passes straight to an estimator, for one block or for all. This one
is a lasso whose strength differs between columns, as for measurements of which some are expensive:
``alpha * sum_j price_j sum_u |w_uj|``.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from deepprox import DeepRegressor
from deepprox.penalties import Penalty, soft_threshold
from deepprox.struct import struct


@struct
class Priced(Penalty):
    """``alpha * sum_j price_j sum_u |w_uj|``: an input pays its price for every weight."""

    price: Any
    alpha: float = 1.0
    any_shape = False  # a price for every column

    def value(self, w):
        return (self.alpha * self.price * jnp.abs(w)).sum()

    def prox(self, v, step):
        return soft_threshold(v, step * self.alpha * self.price)


def main() -> tuple[list[str], list[str]]:
    """The inputs of a linear model when all cost the same, and when blood tests are expensive."""
    data = load_diabetes(as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, random_state=0)
    blood = X_train.columns.str.startswith("s") & (X_train.columns != "sex")
    used = []
    for price in (1.0, 10.0):
        prices = np.where(blood, price, 1.0)
        model = DeepRegressor((), penalty=Priced(prices, alpha=0.04)).fit(X_train, y_train)
        names = [*X_train.columns[model.selected_features_]]
        print(f"Blood tests at price {price:g}: R squared {model.score(X_test, y_test):.3f} with", *names)
        used.append(names)
    return used[0], used[1]


if __name__ == "__main__":
    main()
