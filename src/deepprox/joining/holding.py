"""What is held at kinks of links: how it may move, and the step that puts it there exactly.

Newton steps hold pre-activations at kinks to first order: a product of two weights leaves them beside. With
``J`` their derivatives in the live weights and ``v`` what they are off, the shortest step to where all of
them are at their kinks, measured by the Hessian ``H``, is

    dw = -H^-1 J' mu,   J H^-1 J' mu = v.

It moves the gradient by ``-J' mu``, which other slopes make up for: that of an entry moves by ``mu`` over the
derivative of the loss in what is read of the entry. So the certificate stays as it is, to first order.
"""

from typing import NamedTuple

import numpy as np

from deepprox.joining import candidates
from deepprox.joining.certificate import ravel, unravel
from deepprox.joining.hessian import Hessian
from deepprox.joining.kinks import SITS, Entries, Slopes
from deepprox.joining.model import cholesky, solve_lower
from deepprox.joining.point import Point, look
from deepprox.problem import Problem, Weights

DAMPING = 1e-7  # share of the largest curvature: along what bends less nothing is known to move far
FLAT = 1e-8  # directions of held pre-activations that are taken as one, as a share of the longest
TRIES = 4  # steps towards the kinks
EXACT = 64  # times the rounding of the largest pre-activation: at the kink
AWAY = 1e-4  # off a kink, where a slope that is none of the link's own does nothing that counts


class Held(NamedTuple):
    """The held entries of this process, how many other processes have before it, and how many all have."""

    entries: Entries
    before: int
    total: int

    @classmethod
    def of(cls, problem: Problem, W: Weights, slopes: Slopes, at: Point) -> "Held":
        """Those of live units at observations that count: slopes of others change nothing."""
        counts, masks = np.asarray(problem.weight)[:, None] > 0, []
        for block, w, held in zip(problem.network.blocks, W, slopes.held, strict=False):
            masks.append(np.asarray(held) & counts & block.by_place(np.asarray(w).any(1), held.shape[1]))
        entries = Entries.of(problem, at.Z, masks)
        sizes = problem.allsum.gather(np.asarray(entries.place.size))
        return cls(entries, int(sizes[: problem.allsum.rank].sum()), int(sizes.sum()))

    @property
    def mine(self) -> slice:
        """The places of those of this process among all."""
        return slice(self.before, self.before + self.entries.place.size)

    def off(self, problem: Problem) -> np.ndarray:
        """How far each is from its kink, of all processes."""
        out = np.zeros(self.total)
        out[self.mine] = self.entries.offset
        return np.asarray(problem.allsum(out)) if self.total else out

    def jacobian(self, problem: Problem, W: Weights, slopes: Slopes) -> np.ndarray | None:
        """Their derivatives in all weights, one row each, of all processes; None where they are too many."""
        if self.total > candidates.N_CANDIDATES:
            return None
        row, unit = np.full(self.total, -1), np.zeros(self.total, int)
        row[self.mine], unit[self.mine] = self.entries.where(problem)
        return candidates.jacobian(problem, W, slopes, row, unit)


class Metric(NamedTuple):
    """Cholesky's factor ``L`` of the Hessian in the live weights, and ``J``, along which what is held moves.

    ``L^-1 J' = U diag(sizes) V'``. What is held cannot move, so ``square`` times the squares of how far it
    would are added: they make the Hessian positive definite and change nothing else.
    """

    places: np.ndarray
    lower: np.ndarray
    moves: np.ndarray
    square: np.ndarray
    U: np.ndarray
    sizes: np.ndarray
    V: np.ndarray

    @classmethod
    def of(cls, W: Weights, J: np.ndarray, H: Hessian, free: np.ndarray, step: float) -> "Metric | None":
        """That of second derivatives ``H`` in the weights ``free``; None where they bend down."""
        live = ravel(W)[free] != 0
        places = free[live]
        if not live.any():
            return None
        J = J[:, places]
        reach = (J**2).sum(1)
        moves = reach > SITS
        J, square = J[moves], 1 / (step * reach[moves])
        lower = cholesky(H.at(live).full + (J.T * square) @ J + DAMPING / step * np.eye(places.size))
        if lower is None:
            return None
        U, sizes, V = np.linalg.svd(solve_lower(lower, J.T), full_matrices=False)
        kept = sizes > FLAT * sizes.max(initial=0.0)
        return cls(places, lower, moves, square, U[:, kept], sizes[kept], V[kept])

    def back(self, off: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The shortest step that takes back what is ``off``, and the pull ``mu`` of each that it needs."""
        share = (self.V @ off[self.moves]) / self.sizes
        mu = np.zeros(off.size)
        mu[self.moves] = self.V.T @ (share / self.sizes) - self.square * off[self.moves]
        return -solve_lower(self.lower, self.U @ share, trans=1), mu


def held_within(problem: Problem, W: Weights, slopes: Slopes, point: Point) -> float:
    """How far what is held is from its kinks, at most."""
    return float(np.abs(Held.of(problem, W, slopes, point).off(problem)).max(initial=0.0))


class Placed(NamedTuple):
    """Weights at which what is held is at its kinks, the slopes there, and how many pre-activations it is."""

    W: Weights
    slopes: Slopes
    point: Point
    n_held: int


def put_on_kinks(
    problem: Problem, W: Weights, slopes: Slopes, H: Hessian, free: np.ndarray, step: float, tol: float
) -> Placed:
    """The weights at which what is held is exactly at its kinks, if they are as good, or as near as they are.

    They are if the certificate stays within ``tol``, or does not rise above it, and the objective is no
    higher. ``H`` are second derivatives in the weights ``free``. What is far from its kink is let go: the
    loss hardly depends on its slope, or the Newton steps would have brought it nearer.
    """
    at, eps = look(problem, W, slopes, step), float(np.finfo(W[0].dtype).eps)
    most = max(tol, float(at.certificate))
    level = float(at.objective) + 8 * eps * abs(float(at.objective))

    def good(at: Point) -> bool:
        return float(at.certificate) <= most and float(at.objective) <= level

    held = Held.of(problem, W, slopes, at)
    near = np.abs(held.entries.offset) <= AWAY
    if not near.all() or problem.allsum.world > 1:
        fewer = held.entries.put(slopes, held.entries.pick(slopes.slope), near)
        after = look(problem, W, fewer, step)
        if good(after):
            slopes, at, held = fewer, after, Held.of(problem, W, fewer, after)
    J = held.jacobian(problem, W, slopes)
    metric = None if J is None or not held.total else Metric.of(W, J, H, free, step)
    largest = problem.allsum.gather(np.max([np.abs(z).max(initial=1.0) for z in at.Z])).max()
    exact = EXACT * eps * float(largest)
    for _ in range(TRIES):
        off = np.abs(held.off(problem)).max(initial=0.0)
        if metric is None or off <= exact:
            break
        trial = _back(problem, W, slopes, held, metric, at)
        after = look(problem, *trial, step)
        there = Held.of(problem, *trial, after)
        if not good(after) or not np.abs(there.off(problem)).max() < off:
            break
        (W, slopes), at, held = trial, after, there
    return Placed(W, slopes, at, held.total)


def _back(
    problem: Problem, W: Weights, slopes: Slopes, held: Held, metric: Metric, at: Point
) -> tuple[Weights, Slopes]:
    """One step towards the kinks: the weights, and the slopes that keep the gradient as it is."""
    (dw, mu), entries = metric.back(held.off(problem)), held.entries
    w = ravel(W).astype(float)
    w[metric.places] += dw
    up, mu = entries.pick(at.upstream), mu[held.mine]
    change = np.divide(mu, up, out=np.zeros(up.size), where=up != 0)
    low, high = np.minimum(entries.left, entries.right), np.maximum(entries.left, entries.right)
    slope = np.clip(entries.pick(slopes.slope) + change, low, high)
    return unravel(w.astype(W[0].dtype), W), entries.put(slopes, slope)
