"""Bayesian logistic regression and the Bayesian lasso, written anew in NumPyro: the same posteriors."""

from functools import cache

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS

from deepprox.losses import Logistic, Squared
from deepprox.penalties import L1
from deepprox.posterior import sample_posterior
from deepprox.posterior.draws import Diagnostics
from posterior.models import problem, zeros

RNG = np.random.default_rng(4)
X = RNG.normal(size=(100, 4)) @ (np.eye(4) + 0.4)
X = (X - X.mean(0)) / X.std(0)
SIGMA = 0.8
RESPONSES = {
    "logistic": (X @ [1.5, -1.0, 0.0, 0.0] + RNG.logistic(size=100) > 0).astype(int),
    "lasso": X @ [1.0, -0.5, 0.0, 0.0] + SIGMA * RNG.normal(size=100),
}
RATES = {"logistic": 4.0, "lasso": 5.0}  # of the Laplace prior
ERRORS = 4


def model(kind):
    """The model in NumPyro's own words."""
    bias = numpyro.sample("bias", dist.ImproperUniform(dist.constraints.real, (), ()))
    w = numpyro.sample("w", dist.Laplace(0.0, 1 / RATES[kind]).expand([4]))
    eta = bias + X @ w
    likelihood = dist.Bernoulli(logits=eta) if kind == "logistic" else dist.Normal(eta, SIGMA)
    numpyro.sample("y", likelihood, obs=RESPONSES[kind])


@cache
def reference(kind):
    """(chains, draws, weights) by NumPyro alone."""
    sampler = MCMC(
        NUTS(model),
        num_warmup=500,
        num_samples=1000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    start = {"bias": np.zeros(4), "w": np.zeros((4, 4))}
    sampler.run(jax.random.PRNGKey(0), kind, init_params=start)
    found = sampler.get_samples(group_by_chain=True)
    return np.concatenate([np.asarray(found["bias"])[..., None], np.asarray(found["w"])], axis=-1)


def ours(kind, method):
    """The same by a method of this package."""
    # the prior of squared loss is on the scale of the noise: exp(-n alpha |w| / sigma^2)
    loss, sigma = (Logistic(), None) if kind == "logistic" else (Squared(), SIGMA)
    posed = problem(loss, L1(RATES[kind] * (sigma or 1.0) ** 2 / 100), X, RESPONSES[kind])
    options = {"n_draws": 1000, "n_warmup": 500, "sigma": sigma}
    return sample_posterior(posed, zeros(posed), 100, method=method, **options).W[0][:, :, 0]


def same(ours, theirs):
    """Means and standard deviations of every weight within their Monte-Carlo errors."""
    a, b = Diagnostics.of(ours), Diagnostics.of(theirs)
    assert max(a.rhat.max(), b.rhat.max()) < 1.02
    spread = theirs.std((0, 1))
    error = spread * np.sqrt(1 / a.ess_bulk + 1 / b.ess_bulk)
    assert (np.abs(ours.mean((0, 1)) - theirs.mean((0, 1))) < ERRORS * error).all()
    error = spread * np.sqrt(1 / a.ess_tail + 1 / b.ess_tail)  # of a standard deviation, generously
    assert (np.abs(ours.std((0, 1)) - spread) < ERRORS * error).all()


@pytest.mark.slow  # compiles NumPyro's programs beside ours; quadrature and joint draws test the methods too
@pytest.mark.parametrize(
    "kind, method",
    [
        ("logistic", "polya-gamma"),
        ("logistic", "proximal"),
        ("logistic", "nuts"),
        ("lasso", "proximal"),
        ("lasso", "nuts"),
    ],
)
def test_every_method_agrees_with_numpyro(kind, method):
    same(ours(kind, method), reference(kind))
