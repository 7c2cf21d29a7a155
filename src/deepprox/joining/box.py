"""Slopes: a quadratic program in a box."""

import numpy as np
from scipy.linalg.lapack import dposv

ACTIVE_SETS = 12  # tries before the active sets count as cycling
FACES = 50
CUTS = 30
FLAT = 1e-9  # pull along which nothing bends, as a share of the mean curvature
EXACT = 1e-12  # of slopes between 0 and 1


def best_slopes(M: np.ndarray, q: np.ndarray, s: np.ndarray) -> np.ndarray:
    """``argmin s' M s / 2 + q' s`` over ``0 <= s <= 1`` by the primal-dual active-set method.

    Should its sets cycle, gradient projection goes on, which cannot.
    """
    if not s.size:
        return s
    M = M + 1e-12 * np.diag(M).mean() * np.eye(len(M))
    scale = np.divide(1, np.diag(M), out=np.zeros(len(M)), where=np.diag(M) > 0)
    before = np.full(s.size, -1)
    for _ in range(ACTIVE_SETS):
        ahead = s - scale * (M @ s + q)
        sets = (ahead > 0).astype(int) + (ahead >= 1)
        now = sets == 1
        s = np.where(now, s, sets / 2)
        if now.any():
            rest = M[np.ix_(now, ~now)] @ s[~now] + q[now]
            s[now] = -solved(M[np.ix_(now, now)], rest)
        if (sets == before).all() and (s >= 0).all() and (s <= 1).all():
            return s
        before = sets
    return project_gradients(M, q, np.clip(s, 0, 1))


def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``A^-1 b``, or of many solutions the shortest."""
    _, x, failed = dposv(A, b)
    return np.linalg.lstsq(A, b, rcond=None)[0] if failed else x


def project_gradients(M: np.ndarray, q: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The same minimum by gradient projection (More and Toraldo 1991).

    A few projected gradient steps choose the entries that are at a bound; then the others go to the minimum
    on their face, of all its points to the nearest, and where it has none down to the next bound.
    """

    def towards(s: np.ndarray, direction: np.ndarray) -> np.ndarray:
        slope, bend = direction @ (M @ s + q), direction @ M @ direction
        length = -slope / bend if bend > 0 else 1.0
        for _ in range(CUTS):
            trial = np.clip(s + length * direction, 0, 1)
            move = trial - s
            if move @ (M @ (s + move / 2) + q) < 0:
                return trial
            length /= 2
        return s

    unit = max(np.diag(M).mean(), np.finfo(float).tiny)
    for _ in range(FACES):
        for _ in range(3):
            pull = -(M @ s + q)
            blocked = (s <= 0) & (pull < 0) | (s >= 1) & (pull > 0)
            s = towards(s, np.where(blocked, 0, pull))
        free, pull = (s > 0) & (s < 1), -(M @ s + q)
        if free.any():
            face, bent = M[np.ix_(free, free)], np.zeros(s.size)
            bent[free] = np.linalg.lstsq(face, pull[free], rcond=FLAT)[0]
            flat = pull[free] - face @ bent[free]
            s = towards(s, bent)
            if np.abs(flat).max() > FLAT * unit and ((s[free] > 0) & (s[free] < 1)).all():
                room = np.where(flat > 0, 1 - s[free], s[free])
                s[free] += flat * np.min(room[flat != 0] / np.abs(flat[flat != 0]))
            s, pull = np.clip(s, 0, 1), -(M @ s + q)
        if np.abs(np.clip(s + pull / unit, 0, 1) - s).max() < EXACT:
            break
    return s
