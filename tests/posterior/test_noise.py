"""The noise drawn with the weights: closed forms, quadrature, and what is said where it cannot be."""

import numpy as np
import pytest
import scipy.stats

from deepprox import DeepRegressor
from deepprox.blocks import Dense
from deepprox.links import Tanh
from deepprox.losses import Logistic, Squared
from deepprox.penalties import L1, L2, Bridge, ElasticNet, GroupL2, Zero
from deepprox.posterior import Draws, sample_posterior
from deepprox.posterior.draws import Diagnostics
from deepprox.posterior.laplace import log_prior_constant
from deepprox.posterior.noise import with_noise
from deepprox.posterior.target import pose
from posterior.models import problem, zeros

RNG = np.random.default_rng(6)
X = RNG.normal(size=(20, 1))
Y = 0.4 + X[:, 0] + 0.7 * RNG.normal(size=20)
F = np.column_stack([np.ones(20), X])
RATE = 4.0  # n alpha, of both weights
ERRORS = 4


def drawn(penalty):
    """The fit, and draws of (bias, weight, sigma) by proximal Langevin."""
    model = DeepRegressor((), penalty=penalty, penalize_bias=True, standardize=False).fit(X, Y)
    draws = model.sample_posterior(sigma="sampled", n_draws=2500, n_warmup=500, thin=10, random_state=1)
    assert draws.method == "proximal" and draws.sigma.shape == (4, 2500)
    low, high = model.predict_interval(X, 0.9, posterior=draws)
    assert 0.8 < ((low <= Y) & (high >= Y)).mean() <= 1
    return np.concatenate([draws.W[0][:, :, 0], draws.sigma[..., None]], axis=2)


def agree(draws, quantile):
    """5, 50 and 95 % quantiles of every number within their Monte-Carlo errors."""
    found = Diagnostics.of(draws)
    assert found.rhat.max() < 1.01 and min(found.ess_bulk.min(), found.ess_tail.min()) > 1500
    flat = draws.reshape(-1, draws.shape[2])
    for j in range(flat.shape[1]):
        enough = min(found.ess_bulk[j], found.ess_tail[j])
        for q in (0.05, 0.5, 0.95):
            share = (flat[:, j] <= quantile(j, q)).mean()
            assert abs(share - q) < ERRORS * np.sqrt(q * (1 - q) / enough) + 2e-3, (j, q)


def test_ridge_against_its_closed_form():
    """Sigma squared is inverse gamma, weights are Student's with as many degrees of freedom as responses."""
    P = F.T @ F + RATE * np.eye(2)
    mean = np.linalg.solve(P, F.T @ Y)
    rate = (Y @ Y - mean @ P @ mean) / 2
    widths = np.sqrt(np.diag(np.linalg.inv(P)) * rate / 10)

    def quantile(j, q):
        if j == 2:
            return np.sqrt(scipy.stats.invgamma(10, scale=rate).ppf(q))
        return scipy.stats.t(20, mean[j], widths[j]).ppf(q)

    agree(drawn(L2(RATE / 20)), quantile)


@pytest.mark.slow
def test_lasso_against_quadrature():
    axes = [np.linspace(-1, 2, 120), np.linspace(-0.5, 2.5, 120), np.linspace(np.log(0.3), np.log(4), 120)]
    b, w, log_sigma = np.meshgrid(*axes, indexing="ij")
    S, c = F.T @ F, F.T @ Y
    squares = Y @ Y - 2 * (c[0] * b + c[1] * w) + S[0, 0] * b**2 + 2 * S[0, 1] * b * w + S[1, 1] * w**2
    of_sigma = -(20 + 2 * 2) * log_sigma  # likelihood and two Laplace priors of rate RATE / sigma^2
    log_p = of_sigma - (squares / 2 + RATE * (np.abs(b) + np.abs(w))) / np.exp(2 * log_sigma)
    p = np.exp(log_p - log_p.max())
    marginals = [p.sum(others) / p.sum() for others in ((1, 2), (0, 2), (0, 1))]
    assert max(m[[0, -1]].max() for m in marginals) < 1e-4

    def quantile(j, q):
        steps = np.diff(axes[j])[0] / 2  # a cell of the grid is around its point
        at = np.interp(q, np.cumsum(marginals[j]), axes[j] + steps)
        return np.exp(at) if j == 2 else at

    agree(drawn(L1(RATE / 20)), quantile)


@pytest.mark.parametrize(
    "penalty, degree", [(L1(0.1), 1), (L2(0.1), 2), (Bridge(0.1), 0.5), (GroupL2(0.1), 1)]
)
def test_the_degree_of_a_penalty_counts(penalty, degree):
    posed = problem(Squared(), penalty, X, Y, hidden=(2,))
    target = with_noise(pose(posed, zeros(posed), 20, sigma=1.0))
    assert float(target.noise) == pytest.approx(20 / 2 + 4 / degree)  # four weights beside free biases
    if degree in (1, 2) and not isinstance(penalty, GroupL2):
        block = Dense(1, Tanh(), penalty)
        rise = log_prior_constant(block, 4.0) - log_prior_constant(block, 1.0)
        assert float(rise) == pytest.approx(np.log(4) / degree)


def test_free_weights_have_no_constant():
    posed = problem(Squared(), Zero(), X, Y)
    assert float(with_noise(pose(posed, zeros(posed), 20, sigma=1.0)).noise) == 10


def refusal(penalty=None, loss=None, y=Y, **options):
    posed = problem(loss or Squared(), penalty or L1(0.1), X, y)
    with pytest.raises(ValueError) as caught:
        sample_posterior(posed, zeros(posed), len(y), **({"sigma": "sampled", "n_draws": 10} | options))
    said = str(caught.value)
    assert said.count(". ") == 0 and said.endswith(".")
    return said


def test_what_cannot_be_drawn_is_said():
    assert "ElasticNet is none" in refusal(ElasticNet(0.1))
    assert "sigma='sampled' is for method='proximal'" in refusal(method="nuts")
    assert "sigma is for squared loss" in refusal(loss=Logistic(), y=(Y > 0).astype(float))
    assert "without an error" in refusal(y=np.zeros(20))
    assert "positive number, or 'sampled'" in refusal(sigma="drawn", method="proximal")


def test_responses_use_the_sigma_of_every_draw():
    posed, rng = problem(Squared(), L1(0.1), X, Y), np.random.default_rng(0)
    W, sigma = (rng.normal(scale=1e-6, size=(2, 3000, 1, 2)),), rng.uniform(1, 9, size=(2, 3000))
    draws = Draws(W, "proximal", posed.network, posed.loss, X, Y[:, None], sigma=sigma)
    y = draws.responses(X, rng)[..., 0].std(1, ddof=1)
    assert np.corrcoef(y, sigma.ravel())[0, 1] > 0.9 and (y / sigma.ravel()).mean() == pytest.approx(
        1, rel=0.02
    )
    low, high = np.quantile(sigma, [0.05, 0.95])
    assert f"90% between {low:.4g} and {high:.4g}" in str(draws.summary())
    np.testing.assert_array_equal(draws.to_arviz().posterior["sigma"], sigma)
    draws.plot()
