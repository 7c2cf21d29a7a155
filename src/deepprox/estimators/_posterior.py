"""The estimators' door to the posterior: draws, and predictions averaged over them."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deepprox.estimators._fitted import Fitted
from deepprox.estimators._given import read_new
from deepprox.estimators._observations import dense
from deepprox.estimators._seeds import seed_of
from deepprox.estimators._typing import RandomState
from deepprox.runtime import keep_programs, precision
from deepprox.statistics.criteria import sure

if TYPE_CHECKING:  # a fit that is not sampled need not wait for samplers
    from deepprox.posterior import Draws


Method = Literal["auto", "proximal", "proximal-unadjusted", "nuts", "polya-gamma", "laplace"]
Curvature = Literal["auto", "full", "low_rank", "diagonal", "last_block"]


class PosteriorMixin:
    """``p(W | data)`` proportional to ``exp(-n objective(W))``, sampled."""

    fitted_: Fitted

    def sample_posterior(
        self,
        method: Method = "auto",
        n_chains: int = 4,
        n_draws: int = 1000,
        n_warmup: int = 1000,
        *,
        sigma: float | Literal["sampled"] | None = None,
        bias_scale: float = 5.0,
        thin: int | None = None,
        curvature: Curvature = "auto",
        vary: Literal["all", "last_block"] = "all",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> "Draws":
        """Draw weights from the posterior, whose mode is the fit: likelihood times prior ``exp(-n penalty)``.

        Parameters
        ----------
        method : {"auto", "proximal", "proximal-unadjusted", "nuts", "polya-gamma", "laplace"}, default="auto"
            "proximal" is Metropolis-adjusted proximal Langevin, for every penalty, and "proximal-unadjusted"
            the same without the test; "nuts" is NumPyro's, for penalties with a derivative away from zero;
            "polya-gamma" is Gibbs sampling, for a logistic or softmax loss and l1, l2 or elastic net: all of
            one block, the last block of a network with proximal Langevin on the others; "laplace" is a
            Gaussian on the live weights. "auto" takes Gibbs for one block where it can, else NUTS where it
            can, else proximal Langevin.
        n_chains, n_draws, n_warmup : int, default=4, 1000, 1000
            Chains side by side, draws of each that are kept, and draws of each before them.
        sigma : float or "sampled", default=None
            Standard deviation of the response, for squared loss; by default ``sqrt(RSS / (N - df))``. With
            "sampled" it is drawn too, by "proximal", from a prior that is flat in its logarithm.
        bias_scale : float, default=5.0
            Standard deviation of the prior of free biases of hidden units, which have none of their own.
        thin : int, default=None
            Steps of proximal Langevin for each draw; by default 5 for one block and 20 for a deeper network.
        curvature : {"auto", "full", "low_rank", "diagonal", "last_block"}, default="auto"
            Second derivatives of "laplace": all, their diagonal with the largest bends beside it or without,
            or those of the last block, whose weights alone vary; "auto" is all up to 5000 live weights, then
            "low_rank".
        vary : {"all", "last_block"}, default="all"
            Which weights are drawn: those of all blocks, or of the last one alone, the others as in the fit.
        random_state : int, RandomState or None, default=None
            Seed.
        verbose : int, default=0
            1 shows a progress bar. Ctrl-C keeps what is drawn.

        Returns
        -------
        draws : deepprox.posterior.Draws
            Weights, diagnostics, ``summary()``, ``plot()``, ``to_arviz()``; pass it to ``predict``.
        """
        from deepprox.posterior import sample_posterior

        check_is_fitted(self)
        fitted, seed = self.fitted_, seed_of(random_state)
        if sigma is None and fitted.loss.free_scale:
            sigma = sure(self._likelihood(), self.degrees_of_freedom(random_state=0)).sigma  # type: ignore[attr-defined]
            if not sigma > 0:
                raise ValueError(
                    "sigma cannot be estimated, since the minimum is not strict or leaves no errors: give "
                    "sigma, or sigma='sampled' with method='proximal'."
                )
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(fitted.W[0].shape[1] - 1)])
        keep_programs()
        with precision(np.float64):
            return sample_posterior(
                fitted.problem(),
                fitted.W,
                fitted.n,
                method=method,
                n_chains=n_chains,
                n_draws=n_draws,
                n_warmup=n_warmup,
                seed=seed,
                sigma=sigma,
                bias_scale=bias_scale,
                thin=thin,
                curvature=curvature,
                vary=vary,
                input_names=names,
                verbose=verbose,
            )

    def _inputs(self, X: Any, posterior: "Draws") -> np.ndarray:
        """Inputs as the draws take them."""
        check_is_fitted(self)
        self._need_draws(posterior)
        X = read_new(self, X, np.float64)
        return self.fitted_.scale.standardize(dense(X))

    def _need_draws(self, posterior: Any) -> None:
        """A sentence about what are no draws of this network."""
        from deepprox.posterior import Draws

        if not isinstance(posterior, Draws):
            raise TypeError(
                f"posterior must be what sample_posterior() returns, got {type(posterior).__name__}."
            )
        if [w.shape[2:] for w in posterior.W] != [w.shape for w in self.fitted_.W]:
            raise ValueError("These draws are of a network of another shape: sample this one.")

    def _posterior_mean(self, X: Any, posterior: "Draws") -> np.ndarray:
        X = self._inputs(X, posterior)
        return posterior.mean(X).astype(self.fitted_.W[0].dtype)
