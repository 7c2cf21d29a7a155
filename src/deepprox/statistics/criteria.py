"""Criteria of model choice: what a fit is worth, less what its freedom is worth. Lower is better.

    AIC  = -2 log p + 2 df                               AICc = AIC + 2 df (df + 1) / (N - df - 1)
    BIC  = -2 log p + log(n) df                          EBIC = BIC + 2 gamma log C(p, s)
    GCV  = (D / N) / (1 - df / N)^2                      SURE = |y - fit|^2 + 2 sigma^2 df

``p`` inputs of which ``s`` survive; ``n`` observations that hold ``N`` numbers (``n`` for each column of the
response, one column less for classes, whose probabilities add up to one); ``D`` the deviance, twice the loss
above its least value, for squared loss the residual sum of squares.

``log p`` has its normalising constants, so that numbers agree with those of other libraries. Squared loss
leaves the variance open: by default it is its maximum likelihood estimate ``RSS / N`` (as in statsmodels and
R; scikit-learn's ``LassoLarsIC`` takes that of the full least-squares fit, which is what a given ``sigma`` is
for), and it is not counted as a parameter (as in statsmodels). Observation weights count relative to their
mean.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import jax
import numpy as np
from jax import Array
from scipy.special import gammaln

from deepprox.checks import is_number, need_spread, shown
from deepprox.joining.live import canonical
from deepprox.losses import Loss
from deepprox.problem import Problem, Weights
from deepprox.solve import in_dtype
from deepprox.statistics.degrees_of_freedom import DegreesOfFreedom
from deepprox.statistics.refits import eta_of

SATURATED = 1e-6  # how far the mean of a saturated fit may be from the response


@dataclass(frozen=True)
class Likelihood:
    """What the criteria need to know of a fit, next to its degrees of freedom.

    ``loss`` and ``log_base`` are means over ``n`` observations that hold ``n_numbers`` numbers; ``deviance``
    is a sum, nan where the loss does not say which ``eta`` fits a response best. They are told without the
    ``unit`` of the response, and ``sigma`` and what follows from it with it.
    """

    loss_name: str
    n: int
    n_numbers: int
    n_inputs: int
    n_selected: int
    loss: float
    log_base: float
    deviance: float
    proper: bool
    free_scale: bool
    unit: float = 1.0

    def log(self, sigma: float | None = None) -> float:
        """``log p(y)`` at the fit; infinite for a perfect one whose variance is estimated."""
        self.need()
        if not self.free_scale:
            if sigma is not None:
                raise ValueError(
                    f"sigma is for squared loss: leave it out with {self.loss_name}, whose variance follows "
                    f"from its mean."
                )
            return self.n * (self.log_base - self.loss)
        variance = 2 * self.n * self.loss / self.n_numbers
        variance = variance if sigma is None else (_positive(sigma) / self.unit) ** 2
        if variance == 0:
            return math.inf
        return self.n * (self.log_base - self.loss / variance) - self.n_numbers / 2 * math.log(variance)

    def need(self) -> None:
        """Complain where there is no likelihood."""
        need_likelihood(self.loss_name, self.proper)


def need_likelihood(loss_name: str, proper: bool) -> None:
    """ValueError unless the loss is minus a log-likelihood."""
    if not proper:
        raise ValueError(
            f"Information criteria need a likelihood, and {loss_name} is none: compare such fits by "
            f"cross-validation."
        )


@jax.jit
def _values(loss: Loss, eta: Array, y: Array) -> tuple[Array, Array, Array]:
    best = loss.inverse_mean(y)
    return loss.value(eta, y), loss.value(best, y), loss.mean(best)


def likelihood(problem: Problem, W: Weights, n: int) -> Likelihood:
    """What the criteria need to know of the solution ``W``; weights stand for ``n`` observations."""
    problem, W = in_dtype((problem, W), np.float64)
    y, weight = np.asarray(problem.y), np.asarray(problem.weight)
    value, least, mean = (np.asarray(a) for a in _values(problem.loss, eta_of(problem, W), problem.y))
    saturated = np.allclose(mean, y, atol=SATURATED)
    return Likelihood(
        loss_name=type(problem.loss).__name__,
        n=n,
        n_numbers=n * (y.shape[1] - problem.loss.simplex),
        n_inputs=problem.X.shape[1],
        n_selected=int(canonical(problem.network, W)[1].inputs.sum()),
        loss=float(weight @ value),
        log_base=float(weight @ problem.loss.log_base(y)),
        deviance=float(2 * n * (weight @ (value - least))) if saturated else math.nan,
        proper=problem.loss.likelihood,
        free_scale=problem.loss.free_scale,
        unit=problem.loss.unit(),
    )


class _Record:
    """A frozen record that reads as a mapping and prints as a small table."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def keys(self) -> list[str]:
        """Names of the entries: ``dict(record)`` works."""
        return [field.name for field in fields(self)]  # type: ignore[arg-type]

    def __str__(self) -> str:
        shown = {name: self[name] for name in self.keys() if self[name] not in (None, "")}
        width = max(len(name) for name in shown)
        return "\n".join(f"{name:<{width}}  {_said(value)}" for name, value in shown.items())


def _said(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, repr=False)
class Criteria(_Record):
    """Criteria of a fit, lower is better; nan with a ``message`` where degrees of freedom are not defined."""

    log_likelihood: float
    df: float
    aic: float
    aicc: float
    bic: float
    ebic: float
    gcv: float
    n: int
    message: str = ""

    __repr__ = _Record.__str__


@dataclass(frozen=True, repr=False)
class Risk(_Record):
    """Stein's unbiased estimate of ``|y_new - fit|^2`` for new responses at the same inputs.

    ``mean`` is that of one number of the response. ``sigma`` was given, or is ``sqrt(RSS / (N - df))``.
    """

    sure: float
    mean: float
    rss: float
    df: float
    sigma: float
    message: str = ""

    __repr__ = _Record.__str__


def criteria(
    fit: Likelihood, df: DegreesOfFreedom, sigma: float | None = None, gamma: float = 0.5
) -> Criteria:
    """All criteria of a fit.

    Parameters
    ----------
    fit, df : Likelihood, DegreesOfFreedom
        Of the same solution.
    sigma : float, default=None
        Standard deviation of the response, for squared loss; by default estimated, ``sqrt(RSS / N)``.
    gamma : float, default=0.5
        How much EBIC charges for the choice of ``s`` among ``p`` inputs (Chen and Chen 2008): 0 is BIC.

    Returns
    -------
    Criteria
        Infinite where there are no more numbers than degrees of freedom.
    """
    if not is_number(gamma) or not 0 <= gamma <= 1:
        raise ValueError(f"gamma must be a number from 0 to 1, got {shown(gamma)}.")
    log_p, d, N = fit.log(sigma), df.value, fit.n_numbers
    aic, bic = -2 * log_p + 2 * d, -2 * log_p + math.log(fit.n) * d
    p, s = fit.n_inputs, fit.n_selected
    choices = gammaln(p + 1) - gammaln(s + 1) - gammaln(p - s + 1)
    return Criteria(
        log_likelihood=log_p,
        df=d,
        aic=aic,
        aicc=math.inf if N - d - 1 <= 0 else aic + 2 * d * (d + 1) / (N - d - 1),
        bic=bic,
        ebic=float(bic + 2 * gamma * choices),
        gcv=math.inf if d >= N else fit.unit * fit.unit * fit.deviance / N / (1 - d / N) ** 2,
        n=fit.n,
        message="" if df.defined else str(df),
    )


def sure(fit: Likelihood, df: DegreesOfFreedom, sigma: float | None = None) -> Risk:
    """``|y - fit|^2 + 2 sigma^2 df``: what new responses at the same inputs would cost, from the old ones."""
    if not fit.free_scale:
        raise ValueError(f"SURE is for squared loss, and this fit has {fit.loss_name}: see criteria().")
    rss, N, d = 2 * fit.n * fit.loss * fit.unit * fit.unit, fit.n_numbers, df.value
    if sigma is None and d >= N:
        raise ValueError(
            f"{d:.4g} degrees of freedom leave nothing of {N} numbers to estimate sigma: give it."
        )
    variance = rss / (N - d) if sigma is None else _positive(sigma) ** 2
    total = rss + 2 * variance * d
    return Risk(total, total / N, rss, d, math.sqrt(variance), "" if df.defined else str(df))


def _positive(sigma: Any) -> float:
    need_spread("sigma", sigma)
    return float(sigma)
