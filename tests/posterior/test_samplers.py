"""Samplers draw from the density they say: quadrature, invariance, and one another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from deepprox.losses import Logistic, Softmax
from deepprox.penalties import L1, L2, Bridge, ElasticNet, NonNegative
from deepprox.posterior import nuts, sample_posterior
from deepprox.posterior.alternating import Alternating
from deepprox.posterior.draws import Diagnostics
from deepprox.posterior.polya_gamma import PolyaGamma
from deepprox.posterior.proximal import Adaptation, look, move
from deepprox.posterior.sampling import choose
from deepprox.posterior.target import pose
from deepprox.struct import replace
from posterior.models import problem, zeros

RNG = np.random.default_rng(1)
X = RNG.normal(size=(16, 1))
Y = (1.5 * X[:, 0] + RNG.logistic(size=16) > 0).astype(float)
ERRORS = 4  # Monte-Carlo standard errors


class Quadrature:
    """Means, standard deviations and distribution functions of two weights on a grid."""

    def __init__(self, target, low, high, n=400):
        self.axes = [np.linspace(a, b, n) for a, b in zip(low, high)]
        grid = np.stack(np.meshgrid(*self.axes, indexing="ij"), -1).reshape(-1, 2)
        log_p = np.asarray(jax.jit(jax.vmap(target.log_density))(grid)).reshape(n, n)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        self.edge = max(p[0].sum(), p[-1].sum(), p[:, -1].sum())
        self.marginals = [p.sum(1), p.sum(0)]
        self.mean = np.array([m @ a for m, a in zip(self.marginals, self.axes)])
        self.sd = np.sqrt([m @ (a - c) ** 2 for m, a, c in zip(self.marginals, self.axes, self.mean)])

    def quantile(self, j, q):
        return np.interp(q, np.cumsum(self.marginals[j]), self.axes[j])


def agrees(draws, truth):
    """Mean, sd and quantiles of every weight within their Monte-Carlo errors, which are below 2 %."""
    found = Diagnostics.of(draws)
    assert found.rhat.max() < 1.01
    flat = draws.reshape(-1, 2)
    for j in range(2):
        bulk, tail = found.ess_bulk[j], found.ess_tail[j]
        assert min(bulk, tail) > 2500  # an error of the mean of 2 % of the sd
        assert abs(flat[:, j].mean() - truth.mean[j]) < ERRORS * truth.sd[j] / np.sqrt(bulk)
        kurtosis = scipy.stats.kurtosis(flat[:, j]) + 3
        assert abs(flat[:, j].std() / truth.sd[j] - 1) < ERRORS * np.sqrt((kurtosis - 1) / 4 / tail)
        for q in (0.05, 0.5, 0.95):
            share = (flat[:, j] <= truth.quantile(j, q)).mean()
            assert abs(share - q) < ERRORS * np.sqrt(q * (1 - q) / min(bulk, tail)) + 2e-3  # the grid


PENALTIES = {
    "l1": (L1(1 / 16), (-5, -4), (5, 10)),
    "bridge": (Bridge(0.1), (-5, -4), (5, 12)),
    "nonnegative": (NonNegative(), (-5, 0), (5, 12)),
}


LATER = [pytest.param(name, marks=pytest.mark.slow) for name in ("bridge", "nonnegative")]


@pytest.mark.parametrize("name", ["l1", *LATER])
def test_proximal_mala_against_quadrature(name):
    penalty, low, high = PENALTIES[name]
    posed = problem(Logistic(), penalty, X, Y)
    truth = Quadrature(pose(posed, zeros(posed), 16), low, high)
    assert truth.edge < 1e-4
    start = (np.array([[0.0, 1.0]]),)
    draws = sample_posterior(posed, start, 16, method="proximal", n_draws=3000, n_warmup=1000, thin=10)
    agrees(draws.W[0][:, :, 0], truth)
    assert draws.statistics["acceptance"].mean() == pytest.approx(0.574, abs=0.05)


def test_the_unadjusted_algorithm_is_close_and_its_bias_is_bounded():
    posed = problem(Logistic(), L1(1 / 16), X, Y)
    truth = Quadrature(pose(posed, zeros(posed), 16), *PENALTIES["l1"][1:])
    method = {"method": "proximal-unadjusted", "n_draws": 3000, "n_warmup": 1000, "thin": 10}
    flat = sample_posterior(posed, zeros(posed), 16, **method).W[0].reshape(-1, 2)
    assert (np.abs(flat.mean(0) - truth.mean) < 0.15 * truth.sd).all()
    assert (np.abs(flat.std(0) / truth.sd - 1) < 0.1).all()


@pytest.mark.slow
def test_nuts_against_quadrature():
    posed = problem(Logistic(), L1(1 / 16), X, Y)
    truth = Quadrature(pose(posed, zeros(posed), 16), *PENALTIES["l1"][1:])
    draws = sample_posterior(posed, zeros(posed), 16, method="nuts", n_draws=2500, n_warmup=500)
    agrees(draws.W[0][:, :, 0], truth)
    assert draws.statistics["diverging"].mean() < 0.01


@pytest.mark.parametrize("penalty", [L1(1 / 16), ElasticNet(1 / 16)], ids=lambda p: type(p).__name__)
def test_polya_gamma_against_quadrature(penalty):
    posed = problem(Logistic(), penalty, X, Y)
    truth = Quadrature(pose(posed, zeros(posed), 16), (-5, -4), (5, 10))
    draws = sample_posterior(posed, zeros(posed), 16, method="polya-gamma", n_draws=2000, n_warmup=200)
    agrees(draws.W[0][:, :, 0], truth)


@pytest.mark.parametrize("penalty", [NonNegative(), Bridge(0.1)])
def test_nuts_says_which_priors_it_cannot_sample(penalty):
    posed = problem(Logistic(), penalty, X, Y)
    assert not nuts.suits(pose(posed, zeros(posed), 16))
    with pytest.raises(ValueError, match="use method='proximal'"):
        sample_posterior(posed, zeros(posed), 16, method="nuts", n_draws=10)


@pytest.mark.parametrize(
    "penalty, hidden, method",
    [
        (L1(0.1), (), "polya-gamma"),
        (L1(0.1), (2,), "nuts"),
        (NonNegative(), (), "proximal"),
    ],
)
def test_auto_takes_the_method_that_suits(penalty, hidden, method):
    posed = problem(Logistic(), penalty, X, Y, hidden=hidden)
    assert choose(pose(posed, zeros(posed), 16)) == method


def test_polya_gamma_says_what_it_is_for():
    posed = problem(Logistic(), Bridge(0.1), X, Y)
    with pytest.raises(ValueError, match="method='polya-gamma' is for a logistic or softmax loss"):
        sample_posterior(posed, zeros(posed), 16, method="polya-gamma", n_chains=1)


@pytest.mark.slow
def test_polya_gamma_inside_a_network_agrees_with_langevin():
    posed = problem(Logistic(), L2(1 / 16), X, Y, hidden=(2,), penalize_bias=True)
    options = {"n_draws": 1500, "n_warmup": 500, "thin": 10}
    ours, theirs = (
        sample_posterior(posed, zeros(posed), 16, method=method, **options).eta[:, :, ::4, 0]
        for method in ("polya-gamma", "proximal")
    )
    a, b = Diagnostics.of(ours), Diagnostics.of(theirs)
    assert max(a.rhat.max(), b.rhat.max()) < 1.02
    spread = theirs.std((0, 1))
    error = spread * np.sqrt(1 / a.ess_bulk + 1 / b.ess_bulk)
    assert (np.abs(ours.mean((0, 1)) - theirs.mean((0, 1))) < ERRORS * error).all()
    error = spread * np.sqrt(1 / a.ess_tail + 1 / b.ess_tail)
    assert (np.abs(ours.std((0, 1)) - spread) < ERRORS * error).all()


# Invariance: from a draw of prior and data, a step of a correct kernel given the data, new data given the
# weights, and so on, leave the weights distributed as the prior (Geweke 2004), to the last moment.

N_INPUTS = jnp.asarray(RNG.normal(size=(8, 1)))
RATE = 1.0  # of the Laplace prior of both weights: n alpha


@jax.jit
def joint_rounds(target, keys, step, adjust):
    """The weights of every replicate after 30 rounds."""

    def round_(w, key):
        data, noise = jax.random.split(key)
        p = jax.nn.sigmoid(w[0] + N_INPUTS * w[1])
        y = (jax.random.uniform(data, p.shape) < p).astype(float)
        now = replace(target, problem=replace(target.problem, y=y))
        at = look(now, w, step / 2)
        return move(now, at, noise, step, jnp.ones(2), step / 2, adjust)[0].w, None

    def replicate(key):
        key, first = jax.random.split(key)
        return jax.lax.scan(round_, jax.random.laplace(first, (2,)) / RATE, jax.random.split(key, 30))[0]

    return jax.vmap(replicate)(keys)


def joint_p_values(adjust, step):
    """Kolmogorov-Smirnov p-values of both weights of 1000 replicates, against their Laplace prior."""
    base = problem(Logistic(), L1(RATE / 8), N_INPUTS, np.zeros(8), penalize_bias=True)
    keys = jax.random.split(jax.random.key(0), 1000)
    W = np.asarray(joint_rounds(pose(base, zeros(base), 8), keys, np.asarray(step), np.asarray(adjust)))
    return [scipy.stats.kstest(w, scipy.stats.laplace(scale=1 / RATE).cdf).pvalue for w in W.T]


def test_proximal_mala_leaves_the_joint_distribution_invariant():
    assert min(joint_p_values(True, step=0.8)) > 0.01


def test_without_the_test_a_long_step_does_not():
    assert min(joint_p_values(False, step=2.0)) < 1e-6


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_polya_gamma_leaves_the_joint_distribution_invariant(kind):
    rng, F = np.random.default_rng(5), np.column_stack([np.ones(8), N_INPUTS])
    loss, columns = (Logistic(), 1) if kind == "logistic" else (Softmax(), 3)
    posed = problem(loss, L1(RATE / 8), N_INPUTS, np.zeros((8, columns)), penalize_bias=True)
    target = pose(posed, zeros(posed), 8)
    gibbs, out = PolyaGamma(target, target.start[None], 0), []
    for _ in range(300):
        W = rng.laplace(size=(columns, 2)) / RATE
        for _ in range(10):
            eta = F @ W.T
            if kind == "logistic":
                gibbs.y = (rng.uniform(size=eta.shape) < 1 / (1 + np.exp(-eta))).astype(float)
            else:
                p = np.exp(eta) / np.exp(eta).sum(1, keepdims=True)
                gibbs.y = rng.multinomial(1, p).astype(float)
            W = gibbs.sweep(W, rng)
        out.append(W.ravel())
    prior = scipy.stats.laplace(scale=1 / RATE).cdf
    assert min(scipy.stats.kstest(w, prior).pvalue for w in np.array(out).T) > 0.002


def alternating_p_values(n=24, rate=0.4):
    """The same for a 1-2-1 network under a wide prior, so that data tell much of the weights."""
    rng, X = np.random.default_rng(5), np.linspace(-2, 2, n)[:, None]
    posed = problem(Logistic(), L1(rate / n), X, np.zeros(n), hidden=(2,), penalize_bias=True)
    target = pose(posed, zeros(posed), n)
    both = Alternating(target, target.start[None], np.ones(target.start.size), 0, thin=2)
    both.tuning.adaptation, out = Adaptation.begin(1.0), []
    for _ in range(400):
        both.whole = rng.laplace(size=(1, target.start.size)) / rate
        for _ in range(10):
            first, last = both.whole[0, :4].reshape(2, 2), both.whole[0, 4:]
            eta = last[0] + np.tanh(first[:, 0] + X * first[:, 1]) @ last[1:]
            y = (rng.uniform(size=n) < 1 / (1 + np.exp(-eta))).astype(float)[:, None]
            both.hidden = replace(both.hidden, problem=replace(posed, y=y))
            both.gibbs.y = y
            both.round(adapting=False)
        out.append(both.whole[0])
    return [scipy.stats.kstest(w, scipy.stats.laplace(scale=1 / rate).cdf).pvalue for w in np.array(out).T]


def test_alternating_leaves_the_joint_distribution_invariant():
    assert min(alternating_p_values()) > 0.002


def test_a_last_block_that_reads_other_units_does_not(monkeypatch):
    sweep, features = PolyaGamma.sweep, []

    def of_the_first_round(self, W, rng):
        features.append(self.F)
        self.F = features[0]
        return sweep(self, W, rng)

    monkeypatch.setattr(PolyaGamma, "sweep", of_the_first_round)
    assert min(alternating_p_values()) < 1e-4
