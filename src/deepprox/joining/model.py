"""The piecewise quadratic model of the objective around a point, and the step that minimises it.

    G' dw + dw' H dw / 2 + sum_k c_k max(v_k + J_k dw, 0)

with ``v_k`` a pre-activation over its kink, ``J_k`` its derivative in the live weights, and ``c_k`` the jump
of the derivative of the loss across it. Its dual is a small quadratic program in slopes ``0 <= s_k <= 1``;
those strictly inside hold their pre-activation at the kink.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpotrf, dtrtrs

from deepprox.joining import candidates, ladder
from deepprox.joining.box import best_slopes
from deepprox.joining.candidates import Kinks
from deepprox.joining.certificate import ravel
from deepprox.joining.hessian import Hessian
from deepprox.joining.kinks import SITS, Slopes
from deepprox.joining.point import Point, look
from deepprox.problem import Problem, Weights

FAINT = 100  # times the least damping, up to which it is tried before the lowest curvature is asked for
FIRST = 32  # candidates, the nearest, that have a slope of their own at first


def cholesky(H: np.ndarray) -> np.ndarray | None:
    """Cholesky's lower factor, or None where ``H`` is not positive definite."""
    lower, info = dpotrf(H, lower=1)
    return lower if info == 0 else None


def solve_lower(lower: np.ndarray, sides: np.ndarray, trans: int = 0) -> np.ndarray:
    """``L^-1 sides`` or ``L^-T sides``; LAPACK itself, since small systems spend their time on checks."""
    return dtrtrs(lower, sides, lower=1, trans=trans)[0]


class Model(NamedTuple):
    """The piecewise quadratic model of the objective at a point, on its free weights.

    Free are the weights that are not zero, and those at zero that the prox would release; ``side`` is the
    sign that each keeps. One without a kink at zero may have either: its ``side`` is 0.
    """

    w: np.ndarray
    side: np.ndarray
    H: Hessian
    G: np.ndarray
    J: np.ndarray
    kinks: Kinks

    def at(self, keep: np.ndarray) -> "Model":
        """The model of some of its weights, while the others stay where they are."""
        if keep.all():
            return self
        return Model(
            self.w[keep], self.side[keep], self.H.at(keep), self.G[keep], self.J[:, keep], self.kinks
        )

    def damped(self, damping: float) -> np.ndarray | None:
        """Cholesky's factor of the damped curvature, if it bends up: with tangents for a concave penalty."""
        return cholesky(self.H.majorised + damping * np.eye(self.w.size))

    def factor(self, least: float, damping: float = 0.0) -> tuple[float, np.ndarray] | None:
        """A damping and Cholesky's factor with it; None where the model bends down.

        Unless more is asked for it is 0, or ``least`` where a pivot is no larger: a step along what is flat
        has no end.
        """
        if not damping:
            lower = cholesky(self.H.full)
            if lower is not None and np.diag(lower).min(initial=np.inf) ** 2 > least:
                return 0.0, lower
        lower = self.damped(max(damping, least))
        return None if lower is None else (max(damping, least), lower)

    def least_damped(self, least: float, damping: float = 0.0) -> tuple[float, np.ndarray | None]:
        """About the least damping with which the model is convex: slight, or by its lowest curvature."""
        for slight in (damping, max(damping, FAINT * least)):
            found = self.factor(least, slight)
            if found is not None:
                return found
        of = {"eigvals_only": True, "subset_by_index": (0, 0), "check_finite": False}
        lowest = scipy.linalg.eigh(self.H.majorised, **of)
        damping = max(damping, least + 2 * abs(float(lowest[0])))
        return damping, self.damped(damping)

    def minimise(self, damping: float, least: float) -> tuple[np.ndarray, np.ndarray, float] | None:
        """The step of the free weights, the slopes of the candidates, and the damping that it needed.

        Where the model bends down, a weight at zero moves only if it still would when the others have moved:
        most would not, and what they bend down is not to be damped for nothing.
        """
        slight = self.factor(least, damping)
        if slight is not None:
            return *self.solve(slight[1]), slight[0]
        live = self.w != 0
        moving = live if live.any() else ~live
        while True:
            some = self.at(moving)
            damping, lower = some.least_damped(least, damping)
            if lower is None:
                return None
            dw, (of_moving, s) = np.zeros(self.w.size), some.solve(lower)
            dw[moving] = of_moving
            pull = self.G + self.H.full @ dw + self.J.T @ (self.kinks.jump * s)
            leaves = ~moving & (pull * self.side < 0)
            if not leaves.any():
                return dw, s, damping
            moving = moving | leaves

    def solve(self, lower: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step of all weights and the slopes of the candidates, with the curvature ``L L'``.

        A candidate that the step leaves on its side needs no slope of its own: at first the nearest have one,
        then those as well that were passed.
        """
        offset = self.kinks.offset
        s, sits = (offset > 0).astype(float), np.abs(offset) < SITS
        near = sits | (np.arange(offset.size) < 2 * sits.sum() + FIRST)
        while True:
            dw, s = self.step(lower, near, s)
            passed = ~near & ((offset + self.J @ dw) * (s - 0.5) < 0)
            if not passed.any():
                return dw, s
            near |= passed

    def step(self, lower: np.ndarray, near: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step and the slopes with those of the candidates ``near`` free, and the others as they are.

        A weight that would cross a kink of its penalty stops at zero, and the others are solved for again:
        with the curvature ``L L'`` and ``Q`` the range of ``L^-1`` on the weights that stop, ``L' dw`` is
        given on ``Q`` and free across.
        """
        s, jump, stops = s.copy(), self.kinks.jump, np.zeros(self.w.size, bool)
        G = self.G + self.J[~near].T @ (jump * s)[~near]
        LG, LC = solve_lower(lower, G), solve_lower(lower, self.J[near].T * jump[near])
        M, q = LC.T @ LC, LC.T @ LG - (jump * self.kinks.offset)[near]
        Q, given = np.zeros((self.w.size, 0)), np.zeros(0)
        while True:
            K = Q.T @ LC
            s[near] = best_slopes(M - K.T @ K, q - K.T @ (Q.T @ LG - given), s[near])
            r = LG + LC @ s[near]
            dw = -solve_lower(lower, r - Q @ (Q.T @ r - given), trans=1)
            dw[stops] = -self.w[stops]
            crossing = ~stops & ((self.w + dw) * self.side < 0)
            if not crossing.any():
                return dw, s
            stops |= crossing
            Q, R = np.linalg.qr(solve_lower(lower, np.eye(self.w.size)[:, stops]))
            given = np.linalg.solve(R.T, self.w[stops])


class Survey(NamedTuple):
    """The kinks around a point, their derivatives in all weights, and the gradient on the left of all."""

    kinks: Kinks
    J: np.ndarray
    gradient: np.ndarray


def no_kinks(now: Point) -> Survey:
    """What a model without kinks knows of them."""
    gradient = np.asarray(now.gradient)
    return Survey(candidates.none(), np.zeros((0, gradient.size)), gradient)


def survey(problem: Problem, W: Weights, slopes: Slopes, now: Point, step: float, together: bool) -> Survey:
    """The candidates around ``W``; ``together`` says whether entries that read the same share a kink.

    What a slope adds to the gradient may depend on another, of the same observation in another block: here
    it is to first order, around the slopes as they are.
    """
    # nothing rides on the only hidden block
    riding = now if len(slopes.held) == 1 else look(problem, W, slopes, step, True)
    kinks = candidates.find(problem, W, riding.Z, riding.upstream, together)
    before, slopes = slopes, candidates.known(problem, now.Z, slopes, kinks)
    dropped = problem.allsum(sum(int((a != b).sum()) for a, b in zip(before.held, slopes.held)))
    at, J = (
        look(problem, W, slopes, step) if dropped else now,
        candidates.jacobian(problem, W, slopes, kinks.row, kinks.unit),
    )
    adds = kinks.jump * candidates.shares(problem, now.slope, slopes, kinks)
    return Survey(kinks, J, np.asarray(at.gradient, float) - J.T @ adds)


def model_at(W: Weights, now: Point, free: np.ndarray, H: Hessian, step: float, seen: Survey) -> Model:
    """The model of the objective around ``W``, starting from the left slopes of all candidates."""
    kinks = seen.kinks
    w, moved, gradient, slope = (
        np.asarray(a, float)[free] for a in (ravel(W), now.moved, now.gradient, now.penalty_gradient)
    )
    pull, side = ladder.pull(w, moved, gradient, slope, np.asarray(now.kinked)[free], step)
    J, G = seen.J[:, free], pull + (seen.gradient[free].astype(float) - gradient)
    reach = (J**2).sum(1)
    sits = (np.abs(kinks.offset) < SITS) & (reach > SITS)
    if sits.any() and cholesky(H.full) is None:
        # what is held cannot move: squares of how far it would make the model convex and change nothing else
        rows = J[sits]
        square = 1 / (step * reach[sits])
        H = Hessian(H.loss + (rows.T * square) @ rows, H.penalty)
        G += rows.T @ (square * kinks.offset[sits])
    return Model(w, side, H, G, J, kinks)
