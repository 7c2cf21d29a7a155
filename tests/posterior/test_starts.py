"""Where chains start, and which weights they move."""

import jax
import numpy as np
import pytest

from deepprox.joining.certificate import ravel
from deepprox.losses import Logistic
from deepprox.penalties import L2
from deepprox.posterior import sample_posterior, sampling
from deepprox.posterior.proximal import first_covariance, spread_starts
from deepprox.posterior.sampling import last_block, modes
from deepprox.posterior.target import pose
from deepprox.solve import Options, initial, solve
from posterior.models import problem

RNG = np.random.default_rng(7)
X = RNG.normal(size=(40, 2))
Y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.logistic(size=40) > 0).astype(float)
SEED, N_CHAINS = 3, 4


@pytest.fixture(scope="module")
def posed():
    return problem(Logistic(), L2(0.005), X, Y, hidden=(3,), penalize_bias=True)


@pytest.fixture(scope="module")
def fit(posed):
    return solve(posed, initial(posed, 0, 1), Options(max_iter=sampling.SEARCH)).W


@pytest.fixture(scope="module")
def found(posed, fit):
    return modes(posed, fit, N_CHAINS, SEED)


def objective(posed, W):
    return float(posed.objective(W))


def test_modes_are_the_fit_and_minima_that_other_starts_lead_to(posed, fit, found):
    assert len(found) == N_CHAINS and all(a is b for a, b in zip(found[0], fit))
    slopes = jax.jit(jax.grad(posed.objective))
    for W in found:
        assert max(np.abs(slope).max() for slope in slopes(W)) < 1e-5
    assert len({np.round(ravel(W), 3).tobytes() for W in found}) == N_CHAINS


def positions(sampler):
    """Where the chains of any sampler are."""
    if isinstance(sampler, sampling.Alternating):
        return sampler.whole[:, sampler.places]
    return sampler.state.z if isinstance(sampler, sampling.nuts.NUTS) else sampler.at.w


@pytest.mark.parametrize("method", ["proximal", "proximal-unadjusted", "polya-gamma", "nuts"])
def test_every_method_starts_there(posed, fit, found, method, monkeypatch):
    monkeypatch.setattr(sampling, "modes", lambda *_: found)
    target = pose(posed, fit, 40)
    covariance = first_covariance(target)
    starts = spread_starts(target, found, covariance, SEED)
    away = (starts - np.array([ravel(W) for W in found])) / np.sqrt(covariance)
    assert 0.5 < away.std() < 1.5 and np.abs(away).max() < 5  # a standard Gaussian from their modes
    sampler = sampling._sampler(method, target, fit, N_CHAINS, 50, SEED, None)
    np.testing.assert_array_equal(positions(sampler), starts)


@pytest.mark.parametrize("method", ["polya-gamma", "laplace"])
def test_the_last_block_alone(posed, fit, method):
    draws = sample_posterior(posed, fit, 40, method=method, vary="last_block", n_draws=100, n_warmup=100)
    assert (draws.W[0] == fit[0]).all() and (np.ptp(draws.W[1], axis=(0, 1)) > 0).all()
    head, W = last_block(posed, fit)
    assert objective(head, W) == pytest.approx(
        objective(posed, fit) - float(posed.network.blocks[0].value(fit[0]))
    )
    same = sample_posterior(head, W, 40, method=method, n_draws=100, n_warmup=100)
    np.testing.assert_allclose(same.W[0], draws.W[1], rtol=1e-9)  # what it reads is of NumPy or of JAX
    np.testing.assert_allclose(draws.outputs(X), same.outputs(np.asarray(head.X)), atol=1e-10)


def test_what_may_vary(posed, fit):
    with pytest.raises(ValueError, match="vary must be 'all' or 'last_block', got 'first'"):
        sample_posterior(posed, fit, 40, vary="first")
