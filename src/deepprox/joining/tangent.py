"""Where a solution goes when the penalty changes: the tangent of a path.

On the live weights the gradient stays zero, and pre-activations that are held at a kink stay there:

    H dw + J' dmu = -d(penalty gradient),   J dw = 0

with the second derivatives ``H`` of the last Newton step, so that it costs no more than solving with them.
"""

import numpy as np
from jax import Array

from deepprox import traces
from deepprox.joining import kinks as kinks_
from deepprox.joining.certificate import flatten, ravel, unravel
from deepprox.joining.hessian import Hessian
from deepprox.joining.kinks import SITS, Slopes
from deepprox.joining.model import cholesky, solve_lower
from deepprox.problem import Network, Problem, Weights

DAMPING = 1e-7  # share of the largest curvature: where less bends a path is no guide to the next solution
FLAT = 1e-8  # directions of held pre-activations that are taken as one, as a share of the longest


@traces.jit
def _drift(network: Network, toward: Network, W: Weights) -> Array:
    """How much stronger the penalty of another network pulls."""
    here, there = (
        flatten(Problem(each, None, None, None, None), W)  # type: ignore[arg-type]
        for each in (network, toward)
    )
    return there[1].penalty_gradient(there[0]) - here[1].penalty_gradient(here[0])


def tangent(
    problem: Problem, W: Weights, slopes: Slopes, H: Hessian, free: np.ndarray, step: float, toward: Network
) -> Weights | None:
    """How the solution ``W`` moves, to first order, as the penalty becomes that of the network ``toward``.

    ``H`` are second derivatives in the weights ``free``, of which those at zero stay there. None where the
    objective bends down.
    """
    w = ravel(W)
    live = w[free] != 0
    places, J = free[live], held_rows(problem, W, slopes)
    if J is None or not live.any():
        return None
    J = J[:, places]
    reach = (J**2).sum(1)
    J, reach = J[reach > SITS], reach[reach > SITS]
    # what is held cannot move: squares of how far it would make the model convex and change nothing else
    bends = H.at(live).full + (J.T / (step * reach)) @ J
    lower = cholesky(bends + DAMPING / step * np.eye(places.size))
    if lower is None:
        return None
    U, sizes, _ = np.linalg.svd(solve_lower(lower, J.T), full_matrices=False)
    Q = U[:, sizes > FLAT * sizes.max(initial=0.0)]
    pull = solve_lower(lower, np.asarray(_drift(problem.network, toward, W), float)[places])
    out = np.zeros(w.size)
    out[places] = -solve_lower(lower, pull - Q @ (Q.T @ pull), trans=1)
    return unravel(out.astype(w.dtype), W)


def held_rows(problem: Problem, W: Weights, slopes: Slopes) -> np.ndarray | None:
    """The derivatives of all pre-activations held at a kink, one row each; None where they are too many."""
    rows, units, first = [np.zeros(0, int)], [np.zeros(0, int)], 0
    for w, mask in zip(W, slopes.held, strict=False):
        row, unit = np.nonzero(np.asarray(mask) & np.asarray(w).any(1))
        rows, units, first = [*rows, row], [*units, first + unit], first + len(w)
    row, unit = np.concatenate(rows), np.concatenate(units)
    if row.size > kinks_.N_CANDIDATES:
        return None
    held = kinks_.none()._replace(offset=np.zeros(row.size), row=row, unit=unit)
    return kinks_.jacobian(problem, W, slopes, held)
