"""Newton steps of one block on few of its columns, in NumPy: no new shape compiles anything.

Without hidden blocks the loss is ``sum_i weight_i loss(W f_i, y_i)``, and with ``h_i`` the second derivatives
of ``loss`` in ``eta_i`` those in the weights are

    H[aj, bk] = sum_i weight_i h_i[a, b] F_ij F_ik.

A step minimises the quadratic model on the weights that are not zero or want to leave it; one that would
leave its side stops at zero. Few such weights are solved for by a factor of ``H``, many by conjugate
gradients, which need products with the inputs alone.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv, dpotrs

from deepprox.blocks import Dense
from deepprox.design import Design
from deepprox.joining import ladder
from deepprox.joining.certificate import bounded
from deepprox.joining.finish import Step
from deepprox.losses import Loss

FEWEST = 64  # free weights up to which a factor costs nothing
MOST = 3000  # free weights up to which one is made
PRODUCTS = (
    4000  # numbers of the inputs that conjugate gradients read for a step, as many times as they are stored
)
ROUNDS = 60  # steps of conjugate gradients
EXACT = 0.05  # share of the residual that they leave
CORRECTIONS = 3  # times that they are asked again after weights have stopped at zero
CONDITIONS = 0.2  # share of the weights that may stop at zero before the others have a factor of their own
STUCK = 0.9  # share of the certificate that steps leave which lead nowhere
NEAR = 2.0  # times a step length, up to which it serves as well


class Few(NamedTuple):
    """A block on the columns that ``X`` has, with its data."""

    block: Dense
    loss: Loss
    X: Design
    y: Any
    weight: np.ndarray

    def eta(self, w: Any) -> Any:
        """What the block gives."""
        return self.X.forward(self.block.slopes(w)) + self.block.biases(w)

    def gradient(self, slope: Any) -> Any:
        """Derivatives in the weights, from those in ``eta``."""
        d = self.weight[:, None] * slope
        return np.column_stack([d.sum(0), self.X.gradient(d)])

    def kinked(self, like: Any) -> Any:
        """Which weights their penalty holds at zero: its prox puts a small one of some sign there."""
        small: Any = np.full_like(like, 1e-8)
        return (self.block.prox(small, 1.0) == 0) | (self.block.prox(-small, 1.0) == 0)

    def features(self, which: np.ndarray) -> np.ndarray:
        """Some columns of ``[1, X]``, by number."""
        F = np.empty((len(self.y), len(which)), order="F")
        ones = which == 0
        F[:, ones] = 1.0
        F[:, ~ones] = self.X.columns(which[~ones] - 1)
        return F


class At(NamedTuple):
    """A point and what the next step needs to know of it; ``bend`` are second derivatives in ``eta``."""

    w: Any
    objective: float
    loss: float
    slope: Any
    bend: Any
    gradient: Any
    moved: Any
    certificate: float
    step: float

    def seen(self, few: Few, step: float) -> "At":
        """The same point with another length of a prox-gradient step."""
        moved = few.block.prox(self.w - step * self.gradient, step)
        return self._replace(moved=moved, certificate=float(np.abs(self.w - moved).max()) / step, step=step)

    def row(self) -> Step:
        """The row of the history."""
        return Step(self.objective, self.loss, self.certificate, int(np.count_nonzero(self.w)), 0)


def look(few: Few, w: Any, step: float) -> At:
    """The point of these weights."""
    eta = few.eta(w)
    loss = float(few.weight @ few.loss.value(eta, few.y))
    objective = loss + float(few.block.value(w))
    slope, bend = few.loss.derivatives(eta, few.y)
    gradient = few.gradient(slope)
    return At(w, objective, loss, slope, bend, gradient, w, np.inf, step).seen(few, step)


class Gram:
    """``sum_i weight_i F_ij F_ik`` of the columns that were ever asked for, by their number."""

    def __init__(self, n_columns: int) -> None:
        self.place = np.full(n_columns, -1)
        self.columns: list[np.ndarray] = []
        self.H = np.zeros((0, 0))

    def at(self, few: Few, which: np.ndarray, names: np.ndarray) -> np.ndarray:
        """That of some columns; ``names`` are their numbers in the whole."""
        new = self.place[names] < 0
        if new.any():
            fresh = few.features(which[new])
            fresh *= np.sqrt(few.weight)[:, None]
            had, own = len(self.H), fresh.T @ fresh
            if had:
                across = np.concatenate([F.T @ fresh for F in self.columns])
                own = np.block([[self.H, across], [across.T, own]])
            self.place[names[new]] = had + np.arange(fresh.shape[1])
            self.columns.append(fresh)
            self.H = own
        at = self.place[names]
        return self.H[np.ix_(at, at)]


class Model(NamedTuple):
    """``G'd + d'H d / 2`` on the ``free`` weights, units that do not interact one by one."""

    parts: list[tuple[np.ndarray, np.ndarray]]  # numbers of free weights among all, and H of these
    largest: float


def model_at(few: Few, at: At, free: np.ndarray, gram: Gram, names: np.ndarray) -> Model:
    """The model with all its second derivatives."""
    weight, bend, own = few.weight, at.bend, np.where(at.w != 0, few.block.derivatives(at.w)[1], 0.0)
    numbers, parts = np.arange(free.size).reshape(free.shape), []
    if bend.ndim == 2:
        for a in np.flatnonzero(free.any(1)):
            which = np.flatnonzero(free[a])
            if few.loss.quadratic:
                H = gram.at(few, which, names[which])
            else:
                F = few.features(which)
                F *= np.sqrt(weight * bend[:, a])[:, None]
                H = F.T @ F
            parts.append((numbers[a, which], H))
    else:
        every = np.flatnonzero(free.any(0))
        F, units = few.features(every), [np.flatnonzero(free[a, every]) for a in range(len(free))]
        H = np.block(
            [
                [F[:, j].T @ (F[:, k] * (weight * bend[:, a, b])[:, None]) for b, k in enumerate(units)]
                for a, j in enumerate(units)
            ]
        )
        parts.append((np.flatnonzero(free), H))
    for which, H in parts:
        H.flat[:: len(H) + 1] += own.flat[which]
    largest = max((float(np.abs(H).sum(1).max()) for _, H in parts if len(H)), default=0.0)
    return Model(parts, largest or 1.0)  # a loss may have no bend far out: steps are as long as may be then


def level(model: Model, at: At) -> None:
    """A bend along biases that rise together, where that changes nothing: no step goes there."""
    for which, H in model.parts:
        biases = np.flatnonzero(which % at.w.shape[1] == 0)
        H[np.ix_(biases, biases)] += H[biases, biases].mean() / len(biases)


def minimise(
    H: np.ndarray, G: np.ndarray, w: np.ndarray, side: np.ndarray, least: float
) -> np.ndarray | None:
    """``argmin_d G'd + d'Hd/2``; one that would leave its side stops at zero. None where it has no end.

    With the factor of ``H``, weights ``c`` that stop are conditions: ``d - K (K_c)^-1 (d_c + w_c)``, ``K``
    being the columns ``c`` of the inverse. Where they are many the others have a factor of their own.
    """
    d, free = np.zeros_like(w), np.ones(len(w), bool)
    while free.any():
        among = np.flatnonzero(free)
        some = len(among) < len(w)
        part = H[np.ix_(among, among)] if some else H
        pull = -G[among] - H[among] @ d if some else -G
        factor, found, failed = dposv(part.T, pull, lower=1, overwrite_a=some)
        if failed or factor.diagonal().min() ** 2 <= least:
            return None
        crossing = leaving(factor, found, w[among], side[among])
        d[among] = found
        if crossing is None:
            break
        free[among[crossing]] = False
        d[~free], d[free] = -w[~free], 0.0
    return d


def leaving(factor: np.ndarray, d: np.ndarray, w: np.ndarray, side: np.ndarray) -> np.ndarray | None:
    """Stop, in place, what would leave its side; if these are too many for conditions, which they are."""
    free, d0 = np.ones(len(d), bool), d.copy()
    while True:
        crossing = free & ((w + d) * side < 0)
        if not crossing.any():
            return None
        free &= ~crossing
        stopped = np.flatnonzero(~free)
        if len(stopped) > CONDITIONS * len(d):
            return stopped
        unit = np.zeros((len(d), len(stopped)), order="F")
        unit[stopped, np.arange(len(stopped))] = 1.0
        K = dpotrs(factor, unit, lower=1, overwrite_b=1)[0]
        short = dposv(K[stopped], d0[stopped] + w[stopped], lower=1)[1]
        d[:] = d0 - K @ short
        d[stopped] = -w[stopped]


def direct(model: Model, G: np.ndarray, w: np.ndarray, side: np.ndarray, damping: float) -> np.ndarray | None:
    """The step by factors; None where the model has no minimum."""
    d, least = np.zeros(w.size), ladder.LEAST * model.largest
    for which, H in model.parts:
        if damping:
            H = H + damping * np.eye(len(H))
        part = minimise(H, G.flat[which], w.flat[which], side.flat[which], 0.0 if damping else least)
        if part is None:
            return None
        d[which] = part
    return d.reshape(w.shape)


class Products(NamedTuple):
    """The model as products: what conjugate gradients ask for."""

    few: Few
    bend: np.ndarray
    own: np.ndarray

    def __call__(self, d: np.ndarray) -> np.ndarray:
        moved = self.few.eta(d)
        bent = self.bend * moved if self.bend.ndim == 2 else np.einsum("nab,nb->na", self.bend, moved)
        return self.few.gradient(bent) + self.own * d

    def diagonal(self) -> np.ndarray:
        """That of the second derivatives."""
        bend = self.bend if self.bend.ndim == 2 else np.diagonal(self.bend, axis1=1, axis2=2)
        weight = self.few.weight[:, None] * bend
        squares = [self.few.X.squares(column) for column in weight.T]
        return np.column_stack([weight.sum(0), squares]) + np.maximum(self.own, 0.0)


def products_at(few: Few, at: At) -> Products:
    """The model around a point."""
    return Products(few, at.bend, np.where(at.w != 0, few.block.derivatives(at.w)[1], 0.0))


def by_products(
    products: Products, G: np.ndarray, w: np.ndarray, side: np.ndarray, free: np.ndarray, damping: float
) -> np.ndarray:
    """The step by conjugate gradients; what still leaves its side after some corrections stops at zero."""
    d, scale = np.zeros_like(w), 1 / np.maximum(products.diagonal() + damping, np.finfo(float).tiny)
    for _ in range(CORRECTIONS):
        d = conjugate(lambda v: products(v) + damping * v, -G, d, free, scale)
        crossing = free & ((w + d) * side < 0)
        d[crossing] = -w[crossing]
        free = free & ~crossing
        if not crossing.any():
            break
    return d


def conjugate(
    product: Any, goal: np.ndarray, d: np.ndarray, free: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Preconditioned conjugate gradients for ``H d = goal`` on free entries; the others stay as they are."""
    r = np.where(free, goal - (product(d) if d.any() else 0.0), 0.0)
    z = scale * r
    p, rz = z, float((r * z).sum())
    enough = EXACT**2 * float((np.where(free, goal, 0.0) ** 2 * scale).sum())
    for _ in range(ROUNDS):
        if rz <= enough:
            break
        q = np.where(free, product(p), 0.0)
        curved = float((p * q).sum())
        if curved <= 0:
            break
        d = d + rz / curved * p
        r = r - rz / curved * q
        z = scale * r
        before, rz = rz, float((r * z).sum())
        p = z + rz / before * p
    return d


def by_factor(few: Few, free: np.ndarray, separate: bool) -> bool:
    """Whether a factor of the second derivatives costs less than conjugate gradients."""
    if np.count_nonzero(free) <= FEWEST:
        return True
    n, counts = len(few.y), free.sum(1) if separate else np.array([free.sum()])
    m = int(counts.max())
    cost = float((n * counts.astype(float) ** 2 + counts.astype(float) ** 3 / 3).sum())
    return m <= MOST and cost <= PRODUCTS * few.X.stored * len(free)


class Ended(NamedTuple):
    """Where steps ended, and the way there."""

    at: At
    steps: list[Step]


class Proposed(NamedTuple):
    """A step, if there is one, from a point seen with a step length that suits it; and the least damping."""

    at: At
    d: np.ndarray | None
    least: float


def propose(
    few: Few, at: At, kinked: np.ndarray, aim: float, damping: float, gram: Gram, names: Any
) -> Proposed:
    """The step that minimises the model."""
    free = (at.w != 0) | (np.abs(at.moved) > at.step * aim / 2)
    slope = few.block.derivatives(at.w)[0]
    if not by_factor(few, free, at.bend.ndim == 2):
        products = products_at(few, at)
        G, side = ladder.pull(at.w, at.moved, at.gradient, slope, kinked, at.step)
        least = ladder.LEAST * float(products.diagonal().max())
        return Proposed(at, by_products(products, G, at.w, side, free, damping), least)
    model = model_at(few, at, free, gram, names)
    if few.loss.differences and few.block.free_bias:
        level(model, at)
    length = bounded(1 / model.largest, np.float64)
    if not at.step / NEAR <= length <= NEAR * at.step:
        at = at.seen(few, length)
    G, side = ladder.pull(at.w, at.moved, at.gradient, slope, kinked, at.step)
    return Proposed(at, direct(model, G, at.w, side, damping), ladder.LEAST * model.largest)


def descend(few: Few, w: np.ndarray, step: float, aim: float, budget: int, gram: Gram, names: Any) -> Ended:
    """Newton steps until the certificate is within ``aim`` or nothing helps.

    Where they lead nowhere, at a weight that a penalty that is not convex would rather drop, a prox-gradient
    step may. ``names`` are the numbers of the columns in the whole.
    """
    at, damping, refused = look(few, w, step), 0.0, 0
    steps: list[Step] = []
    kinked = few.kinked(w)
    while at.certificate > aim and len(steps) < budget:
        at, d, least = propose(few, at, kinked, aim, damping, gram, names)
        after = None if d is None else look(few, at.w + d, at.step)
        if after is None or not after.objective <= ladder.level(at.objective, np.float64):
            damping, refused = ladder.raised(damping, least), refused + 1
            if refused <= ladder.TRIALS:
                continue
            after = None
        elif not idle(at, after):
            damping, refused = ladder.lowered(damping, least), 0
        else:
            after = None
        if after is None:
            after, damping, refused = look(few, at.moved, at.step), 0.0, 0
            if idle(at, after) or not after.objective <= at.objective:
                break
        at = after
        steps.append(at.row())
    return Ended(at, steps)


def idle(before: At, after: At) -> bool:
    """Whether a step led nowhere."""
    near = after.certificate > STUCK * before.certificate
    return near and not after.objective < before.objective - 1e-12 * abs(before.objective)


def strict(few: Few, at: At, gram: Gram, names: Any) -> bool | None:
    """Whether the second derivatives on the live weights are positive definite; None for too many of them."""
    live = at.w != 0
    if not live.any():
        return True
    if not by_factor(few, live, at.bend.ndim == 2):
        return None
    model = model_at(few, at, live, gram, names)
    G = np.zeros(live.size)
    return direct(model, G, at.w, G, 0.0) is not None
