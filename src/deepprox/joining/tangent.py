"""Where a solution goes when the penalty changes: the tangent of a path.

On the live weights the gradient stays zero, and pre-activations that are held at a kink stay there:

    H dw + J' dmu = -d(penalty gradient),   J dw = 0

with the second derivatives ``H`` of the last Newton step, so that it costs no more than solving with them.
"""

import numpy as np
from jax import Array

from deepprox import traces
from deepprox.joining.certificate import flatten, ravel, unravel
from deepprox.joining.hessian import Hessian
from deepprox.joining.holding import Held, Metric
from deepprox.joining.kinks import Slopes
from deepprox.joining.model import solve_lower
from deepprox.joining.point import Point
from deepprox.problem import Network, Problem, Weights


@traces.jit
def _drift(network: Network, toward: Network, W: Weights) -> Array:
    """How much stronger the penalty of another network pulls."""
    here, there = (
        flatten(Problem(each, None, None, None, None), W)  # type: ignore[arg-type]
        for each in (network, toward)
    )
    return there[1].penalty_gradient(there[0]) - here[1].penalty_gradient(here[0])


def tangent(
    problem: Problem,
    W: Weights,
    slopes: Slopes,
    at: Point,
    H: Hessian,
    free: np.ndarray,
    step: float,
    toward: Network,
) -> Weights | None:
    """How the solution ``W`` moves, to first order, as the penalty becomes that of the network ``toward``.

    ``H`` are second derivatives in the weights ``free``, of which those at zero stay there. None where the
    objective bends down.
    """
    J = Held.of(problem, W, slopes, at).jacobian(problem, W, slopes)
    metric = None if J is None else Metric.of(W, J, H, free, step)
    if metric is None:
        return None
    places, lower, Q = metric.places, metric.lower, metric.U
    pull = solve_lower(lower, np.asarray(_drift(problem.network, toward, W), float)[places])
    w = ravel(W)
    out = np.zeros(w.size)
    out[places] = -solve_lower(lower, pull - Q @ (Q.T @ pull), trans=1)
    return unravel(out.astype(w.dtype), W)
