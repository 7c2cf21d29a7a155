"""Bayesian logistic regression and the Bayesian lasso, written anew in NumPyro: the same posteriors."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS

from deepprox import DeepClassifier, DeepRegressor
from deepprox.posterior.draws import Diagnostics

pytestmark = pytest.mark.slow  # its programs take most of a minute to compile

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


def fit(kind):
    if kind == "logistic":
        one = DeepClassifier((), loss="logistic", alpha=RATES[kind] / 100, standardize=False)
    else:  # the prior is on the scale of the noise: exp(-n alpha |w| / sigma^2)
        one = DeepRegressor((), alpha=RATES[kind] * SIGMA**2 / 100, standardize=False)
    return one.fit(X, RESPONSES[kind])


def same(ours, theirs):
    """Means and standard deviations of every weight within their Monte-Carlo errors."""
    a, b = Diagnostics.of(ours), Diagnostics.of(theirs)
    assert max(a.rhat.max(), b.rhat.max()) < 1.02
    spread = theirs.std((0, 1))
    error = spread * np.sqrt(1 / a.ess_bulk + 1 / b.ess_bulk)
    assert (np.abs(ours.mean((0, 1)) - theirs.mean((0, 1))) < ERRORS * error).all()
    error = spread * np.sqrt(1 / a.ess_tail + 1 / b.ess_tail)  # of a standard deviation, generously
    assert (np.abs(ours.std((0, 1)) - spread) < ERRORS * error).all()


@pytest.fixture(scope="module", params=RESPONSES)
def pair(request):
    """A fit of ours and the draws of theirs."""
    kind = request.param
    options = {"n_draws": 1000, "n_warmup": 500, "random_state": 0}
    return fit(kind), reference(kind), options | ({"sigma": SIGMA} if kind == "lasso" else {})


@pytest.mark.parametrize("method", ["proximal", "polya-gamma", pytest.param("nuts", marks=pytest.mark.slow)])
def test_every_method_agrees_with_numpyro(pair, method):
    one, theirs, options = pair
    if method == "polya-gamma" and isinstance(one, DeepRegressor):
        with pytest.raises(ValueError, match="logistic or softmax"):
            one.sample_posterior(method, **options)
    else:
        same(one.sample_posterior(method, **options).W[0][:, :, 0], theirs)
