"""One row for every instance of the vocabulary; all laws run on every row."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray
from scipy.special import expit, log_softmax
from sklearn.metrics import log_loss, mean_squared_error

from deepprox.links import Identity, LeakyReLU, Link, ReLU, Sigmoid, Softplus, Tanh
from deepprox.losses import Loss, Softmax, Squared
from deepprox.penalties import L1, L2, MCP, ElasticNet, GroupL2, Penalty, Zero


class Row:
    """Named by what it is about."""

    def __str__(self):
        return str(next(iter(self.__dict__.values())))


@dataclass(frozen=True)
class PenaltyRow(Row):
    """A penalty ``sum_g phi(|w_g|)`` with ``phi`` rising; ``axis`` is summed in a group, None for entries."""

    penalty: Penalty
    convex: bool = True
    sparse: bool = True
    axis: int | None = None

    __str__ = Row.__str__


@dataclass(frozen=True)
class LinkRow(Row):
    """A link and another library's formula; ``closed`` when ``pull`` returns the global minimiser."""

    link: Link
    formula: Callable[[ndarray], ndarray]
    closed: bool = False

    __str__ = Row.__str__


@dataclass(frozen=True)
class LossRow(Row):
    """A loss, its formula, scikit-learn's metric of a prediction, and how to draw a response."""

    loss: Loss
    formula: Callable[[ndarray, ndarray], ndarray]
    metric: Callable[[ndarray, ndarray], float]
    response: Callable[[np.random.Generator, tuple[int, int]], ndarray] = field(repr=False)

    __str__ = Row.__str__


PENALTIES = [
    PenaltyRow(Zero(), sparse=False),
    PenaltyRow(L1(0.05)),
    PenaltyRow(L1(1.0)),
    PenaltyRow(L1(20.0)),
    PenaltyRow(L2(0.1), sparse=False),
    PenaltyRow(L2(10.0), sparse=False),
    PenaltyRow(ElasticNet(1.0, 0.5)),
    PenaltyRow(ElasticNet(3.0, 0.9)),
    PenaltyRow(GroupL2(1.0, "input"), axis=-2),
    PenaltyRow(GroupL2(0.3, "unit"), axis=-1),
    PenaltyRow(MCP(1.0, 3.0), convex=False),
    PenaltyRow(MCP(0.2, 1.5), convex=False),
    PenaltyRow(MCP(5.0, 50.0), convex=False),
]

LINKS = [
    LinkRow(Identity(), lambda u: u, closed=True),
    LinkRow(Sigmoid(), expit),
    LinkRow(Tanh(), lambda u: 2 * expit(2 * u) - 1),
    LinkRow(ReLU(), lambda u: (np.abs(u) + u) / 2, closed=True),
    LinkRow(LeakyReLU(0.01), lambda u: np.maximum(u, 0) + 0.01 * np.minimum(u, 0), closed=True),
    LinkRow(LeakyReLU(0.5), lambda u: np.maximum(u, 0) + 0.5 * np.minimum(u, 0), closed=True),
    LinkRow(Softplus(), lambda u: np.logaddexp(0, u)),
]

LOSSES = [
    LossRow(
        Squared(),
        formula=lambda eta, y: np.linalg.norm(eta - y, axis=1) ** 2 / 2,
        metric=lambda y, mean: mean_squared_error(y, mean) * y.shape[1] / 2,
        response=lambda rng, shape: 3 * rng.standard_normal(shape),
    ),
    LossRow(
        Softmax(),
        formula=lambda eta, y: -(y * log_softmax(eta, axis=1)).sum(1),
        metric=log_loss,
        response=lambda rng, shape: np.eye(shape[1])[rng.integers(shape[1], size=shape[0])],
    ),
]
