"""The target is the density it says, and a posterior that cannot be normalised is refused in one sentence."""

import jax
import numpy as np
import pytest

from deepprox import DeepClassifier
from deepprox.losses import Hinge, Logistic, Poisson, Softmax, Squared
from deepprox.penalties import L0, L1, L2, MCP, SCAD, CappedL1, LogSum, Mask, Zero
from deepprox.posterior import sample_posterior
from deepprox.posterior.target import pose
from posterior.models import problem, zeros

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] + RNG.logistic(size=40) > 0).astype(int)
SEPARATED = (X[:, 0] > 0).astype(int)


def refusal(loss, penalty, X, y, n=40, sigma=None, **shape):
    posed = problem(loss, penalty, X, y, **shape)
    with pytest.raises(ValueError) as caught:
        pose(posed, zeros(posed), n, sigma)
    said = str(caught.value)
    assert said.count(". ") == 0 and said.endswith(".")
    return said


def accepted(loss, penalty, X, y, **shape):
    posed = problem(loss, penalty, X, y, **shape)
    return pose(posed, zeros(posed), 40)


def density(target):
    return float(jax.jit(target.log_density)(target.start))


def objective(posed, W):
    return float(jax.jit(posed.objective)(W))


def test_density_is_minus_n_times_the_objective():
    posed = problem(Softmax(), L1(0.01), X, np.eye(2)[Y], penalize_bias=True)
    W = (RNG.normal(size=(2, 3)),)
    assert density(pose(posed, W, 40)) == pytest.approx(-40 * objective(posed, W), rel=1e-12)


def test_squared_loss_is_scaled_by_its_variance():
    y = X @ [1.0, -1.0] + 0.5 * RNG.normal(size=40)
    posed = problem(Squared(), L2(0.1), X, y, penalize_bias=True)
    W = (RNG.normal(size=(1, 3)),)
    assert density(pose(posed, W, 40, sigma=0.5)) == pytest.approx(-160 * objective(posed, W), rel=1e-12)


def test_free_biases_get_their_priors():
    posed = problem(Softmax(), L1(0.01), X, np.eye(2)[Y], hidden=(3,))
    W = RNG.normal(size=(3, 3)), RNG.normal(size=(2, 4))
    prior = (W[0][:, 0] ** 2).sum() / 8 + W[1][:, 0].mean() ** 2 / 2
    expected = -40 * objective(posed, W) - prior
    assert density(pose(posed, W, 40, bias_scale=2.0)) == pytest.approx(expected, rel=1e-12)


def test_only_places_move():
    posed = problem(Logistic(), Mask(np.array([[1.0, 0.0]])), X, Y)
    draws = sample_posterior(posed, zeros(posed), 40, method="proximal", n_draws=20, n_warmup=50, n_chains=2)
    assert (draws.W[0][..., 2] == 0).all() and (np.ptp(draws.W[0][..., :2], axis=(0, 1)) > 0).all()


@pytest.mark.parametrize(
    "penalty", [Zero(), L0(0.1), MCP(0.05), SCAD(0.05), CappedL1(0.05)], ids=lambda p: type(p).__name__
)
def test_penalties_that_level_off_need_data_that_hold(penalty):
    said = refusal(Logistic(), penalty, X, SEPARATED)
    assert said.startswith(
        "The posterior is improper: some combination of the inputs separates the responses"
    )
    assert "penalty='l2'" in said
    accepted(Logistic(), penalty, X, Y)


def test_penalties_that_grow_hold_separable_data():
    accepted(Logistic(), L1(0.01), X, SEPARATED)
    accepted(Softmax(), L1(0.01), X, np.eye(2)[SEPARATED])


def test_dependent_inputs_without_a_penalty():
    twice, y = np.column_stack([X, X[:, 0]]), X[:, 0] + RNG.normal(size=40)
    assert "the same for all observations" in refusal(Squared(), Zero(), twice, y, sigma=1.0)
    posed = problem(Squared(), Zero(), X, y)
    pose(posed, zeros(posed), 40, sigma=1.0)


def test_softmax_without_a_penalty_is_never_determined():
    assert "the same for all observations or classes" in refusal(Softmax(), Zero(), X, np.eye(2)[Y])


def test_networks_need_priors_that_fall():
    deep = {"hidden": (2,), "penalize_bias": True}
    light = refusal(Logistic(), LogSum(0.5 / 40), X, Y, **deep)
    assert "LogSum of block 1 charges too little" in light
    accepted(Logistic(), LogSum(2 / 40), X, Y, **deep)
    assert "MCP of block 1 charges too little" in refusal(Logistic(), MCP(0.1), X, Y, **deep)


def test_counts_that_are_all_zero_in_a_group():
    group = np.repeat([0.0, 1.0], 20)[:, None]
    counts = np.where(group[:, 0] > 0, 0, 1 + RNG.poisson(3.0, 40))
    accepted(Poisson(), L1(1e-3), group, counts)
    assert "separates the responses" in refusal(Poisson(), MCP(1e-3), group, counts)


def test_a_loss_without_a_likelihood():
    said = refusal(Hinge(0.01), L1(0.01), X, Y)
    assert said.startswith("A posterior needs a likelihood, and the loss Hinge is none")


@pytest.fixture(scope="module")
def fitted():
    return DeepClassifier((), alpha=0.01).fit(X, Y)


@pytest.mark.parametrize(
    "options, word",
    [
        ({"method": "gibbs"}, "method"),
        ({"n_chains": 0}, "n_chains"),
        ({"n_draws": 2.5}, "n_draws"),
        ({"thin": 0}, "thin"),
        ({"sigma": 1.0}, "sigma"),
        ({"bias_scale": 0.0}, "bias_scale"),
        ({"method": "laplace", "curvature": "half"}, "curvature"),
    ],
)
def test_bad_options(fitted, options, word):
    with pytest.raises(ValueError, match=word):
        fitted.sample_posterior(**options)
