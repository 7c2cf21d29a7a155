"""Degrees of freedom: how much a fit follows its data.

    df = sum_i d mean_i / d y_i = trace(H^-1 G)

with ``H`` and ``G`` of :mod:`deepprox.statistics.curvature` at a certified solution. For squared loss it is
Stein's divergence, for the lasso the number of non-zero weights, for ridge the trace of its hat matrix. In an
exponential family it is, to first order, Efron's (2004) covariance penalty ``sum_i cov(theta_i, y_i)`` with
``theta_i`` the natural parameter of the fit, which is what an information criterion charges for.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

from deepprox.checks import is_whole, need_name, shown
from deepprox.joining.live import canonical
from deepprox.problem import Problem, Weights
from deepprox.solve import in_dtype
from deepprox.statistics import refits
from deepprox.statistics.curvature import (
    Curvature,
    Held,
    at_kinks,
    curvature,
    diagonal,
    live_weights,
    residual,
    responses,
    times,
)

METHODS = ("auto", "exact", "hutchinson", "perturbation", "bootstrap")
DENSE = 5000  # weights up to which matrices are formed
FEW = 1500  # weights up to which "auto" does so
FLAT = 1e-11  # curvature that counts as none, of a Hessian with a unit diagonal
SLACK = 10  # the residual of the live weights may be this many times tol
CLOSE = 1e-8  # relative residual of conjugate gradients


@dataclass(frozen=True)
class DegreesOfFreedom:
    """How much a fit follows its data, and how that was found.

    ``value`` is nan where degrees of freedom are not defined, and ``message`` then says why.
    ``standard_error`` is that of the random draws, None where there are none. Of ``n_live`` weights
    ``n_held`` combinations are held by pre-activations at kinks, and ``n_flat`` move neither the objective
    nor the fit. ``smallest_eigenvalue`` is that of the Hessian of the objective on all others, scaled to a
    unit diagonal; with "hutchinson" the smallest curvature that conjugate gradients met, not below it.
    """

    value: float
    method: str
    standard_error: float | None = None
    n_draws: int | None = None
    n_live: int | None = None
    n_held: int = 0
    n_flat: int = 0
    smallest_eigenvalue: float | None = None
    message: str = ""

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return bool(np.isfinite(self.value))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if not self.defined:
            return f"not defined: {self.message}"
        spread = "" if self.standard_error is None else f" +- {self.standard_error:.2g}"
        live = "" if self.n_live is None else f", {self.n_live} live weights"
        draws = "" if self.n_draws is None else f", {self.n_draws} draws"
        note = f"; {self.message}" if self.message else ""
        return f"{self.value:.6g}{spread} ({self.method}{draws}{live}){note}"


def degrees_of_freedom(
    problem: Problem,
    W: Weights,
    n: int,
    method: str = "auto",
    *,
    tol: float = 1e-6,
    n_draws: int = 50,
    sigma: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> DegreesOfFreedom:
    """``sum_i d mean_i / d y_i`` at the solution ``W``.

    Parameters
    ----------
    problem, W : Problem, tuple of ndarray
        What was solved, and a stationary point of it.
    n : int
        How many observations the weights of the problem, which sum to one, stand for.
    method : {"auto", "exact", "hutchinson", "perturbation", "bootstrap"}, default="auto"
        "exact" factorises ``H``. "hutchinson" draws signs ``z`` and averages ``z' H^-1 G z`` by conjugate
        gradients. "perturbation" moves the response by a little in random directions and fits again, without
        any second derivative. "bootstrap" draws responses from the fitted model, fits again, and takes
        ``sum_i cov(theta_i, y_i)``: an average around the fit rather than a derivative at it. "auto" is
        "exact" for up to 1500 live weights and "hutchinson" for more.
    tol : float, default=1e-6
        Certificate of a solution; refits try for a thousandth of it.
    n_draws : int, default=50
        Random draws, for all methods but "exact".
    sigma : float, default=None
        Standard deviation of the response, for "bootstrap" with squared loss; by default from the residuals.
    rng : Generator or int, default=None
        Source of the draws.

    Returns
    -------
    DegreesOfFreedom
        Not defined where ``W`` is not a strict local minimum, up to directions that leave the fit as it is.
    """
    need_name("method", method, METHODS)
    if not is_whole(n_draws, 2):
        raise ValueError(f"n_draws must be a whole number of at least 2, got {shown(n_draws)}.")
    if problem.loss.binary and not problem.loss.likelihood:
        raise ValueError(
            f"Degrees of freedom are derivatives of an expected response, and {type(problem.loss).__name__} "
            f"has none: choose a loss that is a likelihood, such as 'logistic' or 'softmax'."
        )
    if method == "hutchinson" and not problem.network.smooth:
        raise ValueError(
            "method='hutchinson' needs penalties that are smooth where no weight is zero: choose "
            "method='exact' or 'perturbation'."
        )
    problem, W = in_dtype((problem, W), np.float64)
    W = canonical(problem.network, W)[0]
    rng = np.random.default_rng(rng)
    if method in ("perturbation", "bootstrap"):
        return _by_refits(problem, W, n, method, tol, n_draws, sigma, rng)
    n_live = live_weights(problem, W).size
    if n_live == 0:
        return DegreesOfFreedom(0.0, "exact", n_live=0)
    if method == "auto":
        method = "exact" if n_live <= FEW or not problem.network.smooth else "hutchinson"
    if method == "hutchinson":
        return _hutchinson(problem, W, tol, n_draws, rng)
    if n_live > DENSE:
        raise ValueError(
            f"method='exact' factorises a matrix of up to {DENSE} live weights, but there are {n_live}: "
            f"choose method='hutchinson' or 'perturbation'."
        )
    return _exact(curvature(problem, W), tol)


def uncertified(certificate: float, tol: float) -> DegreesOfFreedom:
    """Of a fit that ended before it was a solution."""
    why = f"the certificate {certificate:.1e} is above tol {tol:.0e}, so the fit is not a solution"
    return DegreesOfFreedom(np.nan, "exact", message=why)


def _exact(at: Curvature, tol: float) -> DegreesOfFreedom:
    """``trace(H^-1 G)`` by the eigenvectors of ``H``, scaled to a unit diagonal."""
    known = DegreesOfFreedom(np.nan, "exact", n_live=at.n_live, n_held=at.n_held)
    if at.residual > SLACK * tol:
        return replace(known, message=_not_stationary(at.residual))
    if not at.H.size:  # every live weight is held
        return replace(known, value=0.0)
    diagonal = np.diag(at.H)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = scipy.linalg.eigh(at.H * np.outer(scale, scale))
    moves = np.einsum("ij,ij->j", vectors, (at.G * np.outer(scale, scale)) @ vectors)
    level = FLAT * len(values)
    flat = np.abs(values) <= level
    least = float(values[~flat][0]) if not flat.all() else None
    known = replace(known, n_flat=int(flat.sum()), smallest_eigenvalue=least)
    if (values < -level).any():
        return replace(known, message=_not_a_minimum(values[0]))
    if (np.abs(moves[flat]) > 10 * level).any():
        return replace(known, message=_FLAT_BUT_MOVING)
    return replace(known, value=float((moves[~flat] / values[~flat]).sum()))


def _hutchinson(
    problem: Problem, W: Weights, tol: float, n_draws: int, rng: np.random.Generator
) -> DegreesOfFreedom:
    """The mean of ``z' H^-1 G z`` over random signs, one run of conjugate gradients each.

    What ``H`` and ``G`` share is met without error: for the lasso every draw is the number of weights.
    """
    live = live_weights(problem, W)
    held = at_kinks(problem, W, live)
    rest = residual(problem, W, held.slopes, live)
    known = DegreesOfFreedom(np.nan, "hutchinson", n_draws=n_draws, n_live=live.size, n_held=len(held.rows))
    if rest > SLACK * tol:
        return replace(known, message=_not_stationary(rest))
    scaled = diagonal(problem, W, held.slopes, live)
    scale = 1 / np.sqrt(np.where(scaled > 0, scaled, 1.0))
    H = Products(problem, W, held, live, scale, penalised=True)
    G = Products(responses(problem, W), W, held, live, scale, penalised=False)
    draws = []
    for _ in range(n_draws):
        z = H.along(rng.choice([-1.0, 1.0], live.size))
        x, failed = cg(H.operator(), G(z), rtol=CLOSE, maxiter=10 * live.size)
        if H.least < -FLAT * live.size:
            return replace(known, message=_not_a_minimum(H.least))
        if failed:
            return replace(known, message=_FLAT_BUT_MOVING)
        draws.append(float(z @ x))
    return replace(
        known,
        value=float(np.mean(draws)),
        standard_error=_standard_error(draws),
        smallest_eigenvalue=H.least,
    )


class Products:
    """Products with a scaled Hessian on the directions that held pre-activations leave open.

    ``least`` is the smallest curvature met so far.
    """

    def __init__(
        self,
        problem: Problem,
        W: Weights,
        held: Held,
        live: np.ndarray,
        scale: np.ndarray,
        penalised: bool,
    ) -> None:
        self.least = np.inf
        self._scale = scale
        self._rows = scipy.linalg.orth((held.rows * scale).T).T
        self._times = lambda v: times(problem, W, held.slopes, live, v[None], penalised)[0]

    def along(self, v: np.ndarray) -> np.ndarray:
        """The part of ``v`` that moves nothing that is held."""
        return v - self._rows.T @ (self._rows @ v)

    def __call__(self, v: np.ndarray) -> np.ndarray:
        v = self.along(v)
        Hv = self.along(self._scale * self._times(self._scale * v))
        size = v @ v
        self.least = min(self.least, float(v @ Hv / size)) if size > 0 else self.least
        return Hv

    def operator(self) -> LinearOperator:
        """As SciPy's solvers take it."""
        return LinearOperator((self._scale.size,) * 2, matvec=self, dtype=np.float64)


def _by_refits(
    problem: Problem,
    W: Weights,
    n: int,
    method: str,
    tol: float,
    n_draws: int,
    sigma: float | None,
    rng: np.random.Generator,
) -> DegreesOfFreedom:
    n_live = live_weights(problem, W).size
    known = DegreesOfFreedom(np.nan, method, n_draws=n_draws, n_live=n_live)
    if method == "perturbation":
        found = refits.perturbation(problem, W, tol, n_draws, rng)
    else:
        if problem.loss.free_scale:
            known_sigma = None if sigma is None else sigma / problem.loss.unit()
            sigma = _residual_deviation(problem, W, n, tol) if known_sigma is None else known_sigma
        found = refits.bootstrap(problem, W, n, tol, n_draws, sigma, rng)
    lost = n_draws - len(found)
    if lost:
        why = f"{lost} of {n_draws} draws left out: their refits found no solution, or not one nearby"
        known = replace(known, message=why)
    if len(found) < max(n_draws / 2, 2):
        return known
    return replace(known, value=float(np.mean(found)), standard_error=_standard_error(found))


def _residual_deviation(problem: Problem, W: Weights, n: int, tol: float) -> float:
    """``sqrt(RSS / (n - df))``, with the exact ``df`` where it is defined and none where it is not."""
    size = n * problem.y.shape[1]
    exact = degrees_of_freedom(problem, W, n, tol=tol, rng=0)
    left = size - exact.value if exact.defined and exact.value < size else size
    return float(np.sqrt(2 * n * refits.mean_loss(problem, W) / left))


def _standard_error(draws: list[float]) -> float:
    return float(np.std(draws, ddof=1) / np.sqrt(len(draws)))


_FLAT_BUT_MOVING = (
    "the Hessian on the live weights is singular in a direction that moves the fit, so the solution is not a "
    "strict local minimum"
)


def _not_a_minimum(least: float) -> str:
    return (
        f"the Hessian on the live weights is not positive definite (an eigenvalue of {least:.1e} with a unit "
        f"diagonal), so the solution is not a strict local minimum: lower tol or try more starts (n_init)"
    )


def _not_stationary(residual: float) -> str:
    return (
        f"the objective has a derivative of {residual:.1e} in a live weight, so this is not a solution: fit "
        f"with join=True and enough iterations (max_iter)"
    )
