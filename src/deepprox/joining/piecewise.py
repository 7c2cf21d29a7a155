"""``min_y  g'y + |y|^2 / 2 + sum_k c_k max(v_k + b_k'y, 0)``, exactly: a quadratic with convex kinks.

Its solution holds some kinks at zero, by slopes ``0 < s_k < 1``; the others have slope 0 or 1. Holding a set
of them and taking the sides of the rest, the minimiser is that of a quadratic on a plane; on the way there
kinks are passed while the value falls, and the one at which it would rise is held. At the minimiser of its
plane a held kink whose slope would leave ``[0, 1]`` is let go. The value falls at every turn, so no set comes
back.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

TURNS = 20  # for each kink, at most
THERE = 1e-12  # share of its size by which a point may miss the minimiser of its plane
PARALLEL = 1e-9  # share of a kink's direction that must be its own for it to be held beside others


class Minimum(NamedTuple):
    """The minimiser and the slopes of the kinks there."""

    y: np.ndarray
    s: np.ndarray


def minimise(g: np.ndarray, B: np.ndarray, v: np.ndarray, c: np.ndarray) -> Minimum:
    """The minimiser, with ``b_k`` the columns of ``B`` and ``c > 0``."""
    if not v.size:
        return Minimum(-g, v)
    on, held = v > 0, np.zeros(0, int)
    y, r, share = np.zeros(g.size), v.copy(), 1.0
    scale = np.sqrt((B**2).sum(0))
    for _ in range(TURNS * v.size):
        pull = g + B[:, on] @ c[on]
        slopes, goal = on_the_plane(pull, B[:, held], v[held])
        d = goal - y
        length = float(np.sqrt(d @ d))
        # what is left of the way is rounding, or the held kinks leave none
        if length <= THERE * (np.abs(pull).sum() + np.abs(goal).sum()) or held.size == g.size:
            y, s = goal, slopes / c[held]
            outside = np.maximum(-s, s - 1)
            if not held.size or outside.max() <= 1e-12:
                break
            # after a step of no length the first that may go, so that sets of tied kinks do not come back
            far = np.flatnonzero(outside > 1e-12)
            gone = int(np.argmax(outside)) if share > 0 else int(far[np.argmin(held[far])])
            on[held[gone]] = s[gone] > 1
            held = np.delete(held, gone)
            continue
        Bd = d @ B
        passed, share, stop = way_along(r, Bd, c, length**2, on, length * scale, held)
        y, r = y + share * d, r + share * Bd
        on[passed] = ~on[passed]
        if stop >= 0:
            held, on[stop] = np.append(held, stop), False
        r[held] = 0.0
    slopes, _ = on_the_plane(g + B[:, on] @ c[on], B[:, held], v[held])
    out = on.astype(float)
    out[held] = np.clip(slopes / c[held], 0, 1)
    return Minimum(y, out)


def on_the_plane(pull: np.ndarray, B: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``argmin pull'y + |y|^2 / 2`` with ``v + B'y = 0``: the multipliers, and the minimiser."""
    if not v.size:
        return np.zeros(0), -pull
    Q, R = scipy.linalg.qr(B, mode="economic", check_finite=False)
    # from the plane's own point, so that nothing is lost where kinks are nearly parallel
    there = Q.T @ pull - scipy.linalg.solve_triangular(R, v, trans=1, check_finite=False)
    multipliers = -scipy.linalg.solve_triangular(R, there, check_finite=False)
    return multipliers, -(pull + B @ multipliers)


def way_along(
    r: np.ndarray,
    Bd: np.ndarray,
    c: np.ndarray,
    fall: float,
    on: np.ndarray,
    size: np.ndarray,
    held: np.ndarray,
) -> tuple[np.ndarray, float, int]:
    """The kinks to pass, how much of the way to go, and the kink to stop at, or -1.

    Along the way the derivative is ``-fall (1 - t)``, and rises by ``c_k |b_k'd|`` at every kink passed.
    """
    # one that the held ones hold too, or nearly, is not crossed
    crosses = np.where(on, Bd < -PARALLEL * size, Bd > PARALLEL * size)
    crosses[held] = False
    at = np.full(r.size, np.inf)
    at[crosses] = np.maximum(-r[crosses] / Bd[crosses], 0.0)
    order = np.argsort(at, kind="stable")[: int((at < 1).sum())]
    rises = np.cumsum(c[order] * np.abs(Bd[order]))
    before = np.concatenate([[0.0], rises[:-1]])[: order.size]
    slope_here = -fall * (1 - at[order])
    # the derivative comes to zero before this kink, or at it
    ends = np.flatnonzero(slope_here + before >= 0)
    holds = np.flatnonzero(slope_here + rises >= 0)
    first_end = int(ends[0]) if ends.size else order.size
    first_hold = int(holds[0]) if holds.size else order.size
    if first_hold < first_end:
        return order[:first_hold], float(at[order[first_hold]]), int(order[first_hold])
    risen = before[first_end] if first_end < order.size else (rises[-1] if order.size else 0.0)
    return order[:first_end], float(min(1.0, 1 - risen / fall)), -1
