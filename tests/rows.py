"""One row for every instance of the vocabulary; all laws run on every row."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray
from scipy import stats
from scipy.special import expit, gammaln, huber, log_softmax, logsumexp, ndtr, softmax, xlogy
from sklearn.metrics import (
    log_loss,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
)

from deepprox import links
from deepprox.blocks import Block, Dense
from deepprox.links import GroupLink, Identity, LeakyReLU, Link, ReLU, Sigmoid, Softplus, Tanh
from deepprox.losses import (
    Gamma,
    Hinge,
    Huber,
    Logistic,
    Loss,
    NegativeBinomial,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
)
from deepprox.penalties import (
    L0,
    L1,
    L2,
    MCP,
    SCAD,
    Box,
    Bridge,
    CappedL1,
    ElasticNet,
    GroupL2,
    HorseshoeLike,
    LogSum,
    Mask,
    MaxNorm,
    NonNegative,
    Nuclear,
    Penalty,
    SparseGroup,
    StudentT,
    Zero,
)
from deepprox.struct import static, struct


@struct
class Table(Block):
    """``z = W [1; reads]``: a dense block written as a table of one place, all else the contract's."""

    def columns(self, n_in):
        return np.arange(n_in)[None]


@struct
class Window(Block):
    """``z_p = W [1; a_{p-1}, a_p, a_{p+1}]``: filters along the numbers, with nothing beyond their ends."""

    stride: int = static(default=1)

    def columns(self, n_in):
        at = np.arange(0, n_in, self.stride)[:, None] + np.arange(-1, 2)
        return np.where(at < n_in, at, -1)


class Row:
    """Named by what it is about."""

    def __str__(self):
        return str(next(iter(self.__dict__.values())))


@dataclass(frozen=True)
class PenaltyRow(Row):
    """A penalty; ``sparse`` when strong enough steps leave nothing.

    Where it is ``radial``, it is ``sum_g phi(|w_g|)`` with ``phi`` rising; ``axis`` is summed in a
    group, None for entries.
    """

    penalty: Penalty
    convex: bool = True
    sparse: bool = True
    radial: bool = True
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
class GroupLinkRow(Row):
    """A link of groups and another library's formula for the groups in the last axis."""

    link: GroupLink
    formula: Callable[[ndarray], ndarray]
    closed: bool = False
    all_units: bool = False
    kinked: bool = False

    __str__ = Row.__str__


@dataclass(frozen=True)
class LossRow(Row):
    """A loss, its formula, how to draw a response, and scikit-learn's metric of a prediction if it has one.

    ``canonical``: its gradient is mean less response. ``exact``: its prox is the minimiser however few
    steps; ``default``: it takes the steps of the default prox. ``reach``: the largest ``eta`` at which the
    formula, a log-density of SciPy's, keeps its digits.
    """

    loss: Loss
    formula: Callable[[ndarray, ndarray], ndarray]
    response: Callable[[np.random.Generator, tuple[int, int]], ndarray] = field(repr=False)
    metric: Callable[[ndarray, ndarray], float] | None = None
    canonical: bool = False
    exact: bool = True
    default: bool = False
    reach: float = np.inf

    __str__ = Row.__str__


@dataclass(frozen=True)
class BlockRow(Row):
    """A block and how many numbers it reads."""

    block: Block
    n_in: int

    __str__ = Row.__str__


BLOCKS = [
    BlockRow(Dense(3), 4),
    BlockRow(Dense(2, bias=False), 3),
    BlockRow(Dense(3, penalty=L1(0.1), penalize_bias=True, reads=("before", "inputs")), 5),
    BlockRow(Table(3, n_in=4), 4),
    BlockRow(Window(2, n_in=6), 6),
    BlockRow(Window(3, stride=2, n_in=5), 5),
]

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
    PenaltyRow(SCAD(1.0, 3.7), convex=False),
    PenaltyRow(SCAD(0.2, 2.1), convex=False),
    PenaltyRow(SCAD(5.0, 50.0), convex=False),
    PenaltyRow(L0(0.3), convex=False),
    PenaltyRow(CappedL1(1.0, 1.0), convex=False),
    PenaltyRow(CappedL1(0.2, 30.0), convex=False),
    PenaltyRow(Bridge(1.0, 1 / 2), convex=False),
    PenaltyRow(Bridge(0.2, 2 / 3), convex=False),
    PenaltyRow(Bridge(1.0, 0.1), convex=False),
    PenaltyRow(Bridge(3.0, 0.95), convex=False),
    PenaltyRow(LogSum(1.0, 0.1), convex=False),
    PenaltyRow(LogSum(0.1, 10.0), convex=False),
    PenaltyRow(HorseshoeLike(1.0, 1.0, 0.01), convex=False),
    PenaltyRow(HorseshoeLike(0.1, 0.3, 1.0), convex=False),
    PenaltyRow(StudentT(1.0, 1.0, 1.0), convex=False, sparse=False),
    PenaltyRow(StudentT(5.0, 3.0, 0.05), convex=False, sparse=False),
    PenaltyRow(GroupL2(0.5, (0, 1, 1, 0, 2)), radial=False),
    PenaltyRow(SparseGroup(1.0, 0.3, "input"), radial=False),
    PenaltyRow(SparseGroup(0.4, 0.5, "unit"), radial=False),
    PenaltyRow(SparseGroup(0.5, 0.8, (0, 1, 1, 0, 2)), radial=False),
    PenaltyRow(MaxNorm(0.7), radial=False),
    PenaltyRow(Nuclear(0.5), radial=False),
    PenaltyRow(NonNegative(), sparse=False, radial=False),
    PenaltyRow(Box(-0.25, 20.0), sparse=False, radial=False),
    PenaltyRow(Box(0.0, 1.5), sparse=False, radial=False),
    PenaltyRow(Mask(((True, False, True, True, False), (True,) * 5) * 3), sparse=False, radial=False),
    PenaltyRow(Mask(((True, False, True, True, False), (True,) * 5) * 3, L1(0.5)), radial=False),
    PenaltyRow(
        Mask(((True,) * 5, (False, True, True, True, True)) * 3, MCP(1.0, 3.0)), convex=False, radial=False
    ),
]

LINKS = [
    LinkRow(Identity(), lambda u: u, closed=True),
    LinkRow(Sigmoid(), expit),
    LinkRow(Tanh(), lambda u: 2 * expit(2 * u) - 1),
    LinkRow(ReLU(), lambda u: (np.abs(u) + u) / 2, closed=True),
    LinkRow(LeakyReLU(0.01), lambda u: np.maximum(u, 0) + 0.01 * np.minimum(u, 0), closed=True),
    LinkRow(LeakyReLU(0.5), lambda u: np.maximum(u, 0) + 0.5 * np.minimum(u, 0), closed=True),
    LinkRow(Softplus(), lambda u: np.logaddexp(0, u)),
    LinkRow(links.ELU(), lambda u: np.where(u > 0, u, np.expm1(np.minimum(u, 0)))),
    LinkRow(links.SiLU(), lambda u: u * expit(u)),
    LinkRow(links.GELU(), lambda u: u * ndtr(u)),
    LinkRow(links.HardSigmoid(), lambda u: np.clip(u / 6 + 0.5, 0, 1), closed=True),
    LinkRow(links.HardTanh(), lambda u: np.clip(u, -1, 1), closed=True),
    LinkRow(links.Sine(), np.sin),
    LinkRow(links.GaussianRBF(), lambda u: np.exp(-(u**2) / 2)),
]

GROUP_LINKS = [
    GroupLinkRow(links.Softmax(), lambda u: softmax(u, axis=-1), all_units=True),
    GroupLinkRow(links.Softmax(3), lambda u: softmax(u, axis=-1)),
    GroupLinkRow(links.LogSumExp(3), lambda u: logsumexp(u, axis=-1)),
    GroupLinkRow(links.LpNorm(2.0, 3), lambda u: np.linalg.norm(u, axis=-1), closed=True),
    GroupLinkRow(links.LpNorm(3.0, 2), lambda u: np.linalg.norm(u, ord=3, axis=-1)),
    GroupLinkRow(links.LpNorm(1.0, 2), lambda u: np.abs(u).sum(-1), kinked=True),
    GroupLinkRow(links.LpNorm(1e15, 3), lambda u: np.abs(u).max(-1), kinked=True),
    GroupLinkRow(links.MaxAbs(3), lambda u: np.abs(u).max(-1), closed=True),
    GroupLinkRow(links.MaxAbs(2), lambda u: np.linalg.norm(u, ord=np.inf, axis=-1), closed=True),
]


def labels(rng, shape):
    return rng.integers(2, size=shape).astype(float)


def real(rng, shape):
    return 3 * rng.standard_normal(shape)


def counts(rng, shape):
    return rng.poisson(10 ** rng.uniform(-1, 2, shape)).astype(float)


def positive(rng, shape):
    return 10 ** rng.uniform(-2, 2, shape)


def pinball(q):
    return lambda eta, y: np.where(y > eta, q * (y - eta), (1 - q) * (eta - y)).sum(1)


def rounded(x, width):
    """``max(x, 0)`` averaged over ``x - width`` to ``x + width``."""
    above = np.clip((x + width) / (2 * width), 0, 1)
    return np.where(x > width, x, width * above**2)


def poisson(eta, y):
    return -(stats.poisson.logpmf(y, np.exp(eta)) + gammaln(y + 1)).sum(1)


def negative_binomial(d):
    def formula(eta, y):
        constant = gammaln(y + 1 / d) - gammaln(1 / d) - gammaln(y + 1) + y * np.log(d)
        return -(stats.nbinom.logpmf(y, 1 / d, 1 / (1 + d * np.exp(eta))) - constant).sum(1)

    return formula


def gamma(shape):
    def formula(eta, y):
        constant = (shape - 1) * np.log(y) + shape * np.log(shape) - gammaln(shape)
        return -(stats.gamma.logpdf(y, shape, scale=np.exp(eta) / shape) - constant).sum(1)

    return formula


LOSSES = [
    LossRow(
        Squared(),
        formula=lambda eta, y: np.linalg.norm(eta - y, axis=1) ** 2 / 2,
        metric=lambda y, mean: mean_squared_error(y, mean) * y.shape[1] / 2,
        response=real,
        canonical=True,
        default=True,
    ),
    LossRow(
        Softmax(),
        formula=lambda eta, y: -(y * log_softmax(eta, axis=1)).sum(1),
        metric=log_loss,
        response=lambda rng, shape: np.eye(shape[1])[rng.integers(shape[1], size=shape[0])],
        canonical=True,
        exact=False,
        default=True,
    ),
    LossRow(
        Logistic(),
        formula=lambda eta, y: (y * np.logaddexp(0, -eta) + (1 - y) * np.logaddexp(0, eta)).sum(1),
        metric=lambda y, mean: y.shape[1] * log_loss(y.ravel(), mean.ravel()),
        response=labels,
        canonical=True,
        exact=False,
    ),
    LossRow(
        Logistic(),
        formula=lambda eta, y: (y * np.logaddexp(0, -eta) + (1 - y) * np.logaddexp(0, eta)).sum(1),
        response=lambda rng, shape: rng.random(shape),
        canonical=True,
        exact=False,
    ),
    LossRow(
        Hinge(),
        formula=lambda eta, y: np.maximum(1 - np.where(y == 1, eta, -eta), 0).sum(1),
        response=labels,
    ),
    LossRow(
        Hinge(width=0.2),
        formula=lambda eta, y: rounded(1 - np.where(y == 1, eta, -eta), 0.2).sum(1),
        response=labels,
    ),
    LossRow(
        SquaredHinge(),
        formula=lambda eta, y: (
            np.where(y == 1, eta < 1, eta > -1) * (eta - np.where(y == 1, 1, -1)) ** 2
        ).sum(1),
        response=labels,
    ),
    *(
        LossRow(
            Huber(delta),
            formula=lambda eta, y, delta=delta: huber(delta, eta - y).sum(1),
            response=real,
        )
        for delta in (0.1, 1.35)
    ),
    *(
        LossRow(
            Quantile(q),
            formula=pinball(q),
            metric=lambda y, mean, q=q: mean_pinball_loss(y, mean, alpha=q) * y.shape[1],
            response=real,
        )
        for q in (0.5, 0.9)
    ),
    LossRow(
        Quantile(0.2, width=0.5),
        formula=lambda eta, y: (rounded(y - eta, 0.5) - 0.8 * (y - eta)).sum(1),
        response=real,
    ),
    LossRow(
        Poisson(),
        formula=poisson,
        metric=lambda y, mean: (
            (mean_poisson_deviance(y.ravel(), mean.ravel()) / 2 + np.mean(y - xlogy(y, y))) * y.shape[1]
        ),
        response=counts,
        canonical=True,
        reach=300.0,
    ),
    *(
        LossRow(NegativeBinomial(d), formula=negative_binomial(d), response=counts, exact=False, reach=5.0)
        for d in (0.1, 2.0)
    ),
    LossRow(
        Gamma(),
        formula=gamma(1.0),
        metric=lambda y, mean: (
            (mean_gamma_deviance(y.ravel(), mean.ravel()) / 2 + np.mean(np.log(y)) + 1) * y.shape[1]
        ),
        response=positive,
        reach=300.0,
    ),
    LossRow(Gamma(3.0), formula=gamma(3.0), response=positive, reach=300.0),
]
