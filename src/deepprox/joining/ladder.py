"""What Newton steps have in common, on the host and in one program: their aim, their damping, their pull.

A step is damped so that the objective does not rise: ten times more after one that was refused, a hundred
times less, or no more, after one that was not.
"""

from typing import Any

import numpy as np

from deepprox.arrays import namespace

TRIALS = 12  # dampings, each ten times the one before
LEAST = 1e-10  # damping after none, as a share of the largest curvature


def aim(tol: float, dtype: Any) -> float:
    """Well within ``tol``, as far as rounding allows: so that the zeros are those of the solution."""
    return min(tol, max(tol / 100, 50 * float(np.finfo(dtype).eps)))


def level(objective: Any, dtype: Any) -> Any:
    """The highest objective that does not count as risen."""
    return objective + 8 * float(np.finfo(dtype).eps) * abs(objective)


def raised(damping: Any, least: Any) -> Any:
    """The damping after a step that was refused."""
    more = 10 * damping
    return more + (more < least) * (least - more)


def lowered(damping: Any, least: Any) -> Any:
    """The damping after a step that was not."""
    return (damping > 100 * least) * damping / 100


def pull(w: Any, moved: Any, gradient: Any, slope: Any, kinked: Any, step: Any) -> tuple[Any, Any]:
    """The derivative of the objective, and the sign that each weight keeps: 0 for either.

    At zero the penalty, whose derivative elsewhere is ``slope``, pulls back with what the prox leaves of the
    gradient: ``moved`` is where a prox-gradient step leads.
    """
    xp = namespace(w)
    side = xp.where(kinked, xp.sign(xp.where(w == 0, moved, w)), 0.0)
    return xp.where(w == 0, (w - moved) / step, gradient + slope), side
