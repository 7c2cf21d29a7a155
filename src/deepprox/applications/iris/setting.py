"""Section 4.2 of Polson, Willard and Heidari (2015): data, network, strengths and the printed table."""

from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.datasets import load_iris

from deepprox.blocks import Dense
from deepprox.links import Identity, Sigmoid
from deepprox.losses import Softmax
from deepprox.penalties import L1
from deepprox.problem import Network, Problem

HIDDEN = 10
TRAIN = 105  # 70 % of 150 flowers
GAMMAS = (0.0, 0.67, 1.33, 2.0)
MUS = (0.1, 1.0, 1.5)
PRINTED = {  # Table 2: share of non-zero weights
    (0.0, 0.1): 1.00, (0.67, 0.1): 0.54, (1.33, 0.1): 0.40, (2.0, 0.1): 0.40,
    (0.0, 1.0): 1.00, (0.67, 1.0): 0.40, (1.33, 1.0): 0.35, (2.0, 1.0): 0.29,
    (0.0, 1.5): 1.00, (0.67, 1.5): 0.33, (1.33, 1.5): 0.29, (2.0, 1.5): 0.28,
}  # fmt: skip
CELLS = tuple(PRINTED)
PENALISED = tuple(cell for cell in CELLS if cell[0] > 0)


class Split(NamedTuple):
    """Training and test flowers; the species are indicators, one column each."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def draw_split(seed: int, k: int, standardize: bool = True) -> Split:
    """The ``k``-th random split; inputs in centimetres, or with mean 0 and spread 1 on its training part."""
    X, species = load_iris(return_X_y=True)
    y = np.eye(3)[species]
    rows = np.random.default_rng([seed, k]).permutation(len(X))
    train, test = rows[:TRAIN], rows[TRAIN:]
    if standardize:
        X = (X - X[train].mean(0)) / X[train].std(0)
    return Split(X[train], y[train], X[test], y[test])


def pose(split: Split, gamma: float) -> Problem:
    """``(1/n) (sum_i loss_i + gamma sum |w|)``, biases included: the paper's objective over ``n``."""
    alpha: Any = np.asarray(gamma / TRAIN)
    hidden = Dense(HIDDEN, Sigmoid(), L1(alpha), penalize_bias=True)
    output = Dense(split.y.shape[1], Identity(), L1(alpha), penalize_bias=True)
    weight = np.full(TRAIN, 1 / TRAIN)
    return Problem(Network((hidden, output)), Softmax(), split.X, split.y, weight)


def side_by_side(records: list[Any]) -> Any:
    """Records of one structure as one record, with a leading axis in every leaf."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *records)


def rate(eta: Any, y: Any) -> Any:
    """Share of observations whose largest ``eta`` is that of their class."""
    return (eta.argmax(-1) == y.argmax(-1)).mean(-1)
