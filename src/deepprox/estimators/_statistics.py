"""The estimators' door to the statistics: degrees of freedom, and criteria that need them."""

from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deepprox.checks import need_name
from deepprox.estimators._fitted import Fitted
from deepprox.estimators._seeds import seed_of
from deepprox.estimators._typing import RandomState
from deepprox.runtime import keep_programs, precision
from deepprox.statistics.criteria import Criteria, Likelihood, criteria, likelihood
from deepprox.statistics.degrees_of_freedom import (
    METHODS,
    DegreesOfFreedom,
    degrees_of_freedom,
    uncertified,
)

Method = Literal["auto", "exact", "hutchinson", "perturbation", "bootstrap"]


class StatisticsMixin:
    """``df = sum_i d mean_i / d y_i`` of a fitted network, and ``-2 log p`` with its price."""

    tol: Any
    fitted_: Fitted

    def degrees_of_freedom(
        self, method: Method = "auto", *, n_draws: int = 50, random_state: RandomState = None
    ) -> DegreesOfFreedom:
        """``sum_i d mean_i / d y_i``: how much the fit follows its data.

        For the lasso it is the number of non-zero weights; for a network with l1 it is less.

        Parameters
        ----------
        method : {"auto", "exact", "hutchinson", "perturbation", "bootstrap"}, default="auto"
            "exact" factorises the Hessian on the live weights; "hutchinson" takes random products with its
            inverse; "perturbation" moves the response a little and fits again; "bootstrap" draws responses
            from the fitted model and fits again. "auto" is "exact" up to 1500 live weights, then
            "hutchinson".
        n_draws : int, default=50
            Random draws of all methods but "exact".
        random_state : int, RandomState or None, default=None
            Seed of the draws.

        Returns
        -------
        df : DegreesOfFreedom
            ``value``, ``standard_error`` of the draws, and why not where it is not defined.
        """
        check_is_fitted(self)
        need_name("method", method, METHODS)
        fitted = self.fitted_
        known = fitted.statistics.get("df", {})
        if known and (method == "auto" or method == known["method"] == "exact"):  # draws are asked for anew
            return DegreesOfFreedom(**known)
        certificate = fitted.solution.certificate
        if certificate > self.tol and method not in ("perturbation", "bootstrap"):
            return uncertified(certificate, self.tol)
        seed = seed_of(random_state)
        keep_programs()
        with precision(np.float64):
            found = degrees_of_freedom(
                fitted.problem(), fitted.W, fitted.n, method, tol=self.tol, n_draws=n_draws, rng=seed
            )
        if method in ("auto", "exact"):
            fitted.statistics["df"] = asdict(found)
            self._likelihood()  # kept with it, so that criteria outlive the data too
        return found

    def _likelihood(self) -> Likelihood:
        fitted = self.fitted_
        if "likelihood" not in fitted.statistics:
            keep_programs()
            with precision(np.float64):
                found = likelihood(fitted.problem(), fitted.W, fitted.n)
            fitted.statistics["likelihood"] = asdict(found)
        return Likelihood(**fitted.statistics["likelihood"])

    def criteria(self, sigma: float | None = None, *, gamma: float = 0.5) -> Criteria:
        """AIC, AICc, BIC, EBIC and GCV of the fit, for a loss that is a likelihood; lower is better.

        Parameters
        ----------
        sigma : float, default=None
            Standard deviation of the response, for squared loss; by default its maximum likelihood estimate.
        gamma : float, default=0.5
            How much EBIC charges for the choice among the inputs: 0 is BIC.

        Returns
        -------
        criteria : Criteria
            A record; ``dict(criteria)`` works. Numbers are nan, and ``message`` says why, where degrees of
            freedom are not defined.
        """
        check_is_fitted(self)
        fit = self._likelihood()
        fit.need()
        return criteria(fit, self.degrees_of_freedom(random_state=0), sigma, gamma)
