"""Draws: what they predict, what they say of themselves, and that an interruption keeps them."""

import re
from pathlib import Path

import numpy as np
import pytest

from deepprox import DeepClassifier, DeepRegressor
from deepprox.losses import Logistic, Squared
from deepprox.penalties import L1
from deepprox.posterior import Draws, chains
from deepprox.posterior.draws import Diagnostics
from posterior.models import problem

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 3))


@pytest.fixture(scope="module")
def classifier():
    y = np.array(["no", "yes"])[(X[:, 0] - X[:, 1] + RNG.logistic(size=80) > 0).astype(int)]
    return DeepClassifier((), loss="logistic", penalty="l1", alpha=0.02).fit(X, y)


@pytest.fixture(scope="module")
def draws(classifier):
    return classifier.sample_posterior(n_draws=300, n_warmup=100, random_state=0)


def test_auto_is_gibbs_for_a_logistic_model(draws):
    assert draws.method == "polya-gamma" and draws.W[0].shape == (4, 300, 1, 4) and len(draws) == 1200


def test_probabilities_are_averages(classifier, draws):
    p = classifier.predict_proba(X, posterior=draws)
    W = draws.W[0].reshape(-1, 4)
    eta = np.column_stack([np.ones(80), classifier.fitted_.scale.standardize(X)]) @ W.T
    np.testing.assert_allclose(p[:, 1], (1 / (1 + np.exp(-eta))).mean(1), rtol=1e-10)
    np.testing.assert_array_equal(classifier.predict(X, posterior=draws), classifier.classes_[p.argmax(1)])


def test_the_same_seed_draws_the_same(classifier, draws):
    again = classifier.sample_posterior(n_draws=300, n_warmup=100, random_state=0)
    np.testing.assert_array_equal(again.W[0], draws.W[0])


def test_summary_of_chains_that_agree(classifier):
    said = str(classifier.sample_posterior(n_draws=1000, n_warmup=100, random_state=1).summary())
    assert "the chains agree" in said and "R-hat" in said and "x0" in said


def made_up(W, loss=None, hidden=False):
    """Draws as somebody else made them."""
    made = problem(loss or Squared(), L1(0.1), X[:5], np.zeros(5), hidden=(2,) if hidden else ())
    return Draws(W, "proximal", made.network, made.loss, X[:5], np.zeros((5, 1)), sigma=1.0)


def test_chains_that_disagree_are_loud():
    W = RNG.normal(size=(4, 200, 1, 4))
    W[0] += 3
    said = str(made_up((W,)).summary())
    assert "CHAINS DISAGREE" in said


def test_too_few_draws_are_loud():
    assert "TOO FEW EFFECTIVE DRAWS" in made_up((RNG.normal(size=(4, 40, 1, 4)),)).verdict()


def test_relabelled_units_are_no_disagreement():
    first, last = RNG.normal(size=(4, 600, 2, 4)), RNG.normal(size=(4, 600, 1, 3))
    first[:, :, 1] += 3
    # the same network in every chain, its units in the other order in two of them
    first[2:], last[2:] = first[2:, :, ::-1].copy(), last[2:][..., [0, 2, 1]]
    same = made_up((first, last), hidden=True)
    assert same.worst()["weights"][0] > 1.1 > 1.01 > same.worst()["function"][0]
    assert "SINGLE WEIGHTS CANNOT" in same.verdict()


def test_diagnostics_of_independent_and_of_constant_numbers():
    found = Diagnostics.of(np.stack([RNG.normal(size=(4, 1000)), np.ones((4, 1000))], axis=-1))
    assert found.rhat[0] < 1.01 and found.ess_bulk[0] > 3000 and np.isnan(found.rhat[1])


def test_arviz_takes_the_record(draws):
    import arviz_stats  # noqa: F401

    tree = draws.to_arviz()
    assert list(tree.posterior.coords["input"].values) == ["bias", "x0", "x1", "x2"]
    rhat = tree.posterior.dataset["W1"].azstats.rhat()
    np.testing.assert_allclose(rhat.values, draws.diagnostics()["W1"].rhat, rtol=1e-10)


def test_pictures(draws):
    assert len(draws.plot().axes) == 4
    assert len(draws.plot_check().axes) == 1
    assert len(made_up((RNG.normal(size=(4, 200, 1, 4)),)).plot_check().axes) == 1


def test_an_interruption_keeps_what_is_drawn(classifier, monkeypatch):
    from deepprox.posterior.polya_gamma import PolyaGamma

    whole, count = PolyaGamma.draw, iter(range(100))

    def impatient(self):
        if next(count) == 3:
            raise KeyboardInterrupt
        return whole(self)

    monkeypatch.setattr(PolyaGamma, "draw", impatient)
    kept = classifier.sample_posterior(n_draws=1000, n_warmup=chains.CHUNK, random_state=0, verbose=1)
    assert kept.n_draws == 2 * chains.CHUNK and not kept.complete and "INTERRUPTED" in str(kept.summary())


def test_an_interruption_before_the_first_draw_is_one(classifier, monkeypatch):
    def impatient(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("deepprox.posterior.polya_gamma.PolyaGamma.draw", impatient)
    with pytest.raises(KeyboardInterrupt):
        classifier.sample_posterior(n_draws=100, n_warmup=0, random_state=0)


def test_intervals_of_counts():
    counts = RNG.poisson(np.exp(1 + 0.5 * X[:, 0]))
    model = DeepRegressor((), loss="poisson", alpha=0.01).fit(X, counts)
    low, high = model.predict_interval(X, level=0.9)
    assert low.shape == (80,) and (low == np.floor(low)).mean() > 0.9
    assert ((low <= counts) & (counts <= high)).mean() > 0.85
    with pytest.raises(ValueError, match="level must be a probability"):
        model.predict_interval(X, level=90)


def test_the_sigma_of_squared_loss_is_estimated():
    y = X @ [1.0, 0.0, -1.0] + 0.5 * RNG.normal(size=80)
    model = DeepRegressor((), alpha=0.01).fit(X, y)
    draws = model.sample_posterior("laplace", n_draws=200, random_state=0)
    assert draws.sigma == pytest.approx(model.sure().sigma) and draws.sigma == pytest.approx(0.5, rel=0.2)
    np.testing.assert_allclose(model.predict(X, posterior=draws), model.predict(X), atol=0.1)


def test_foreign_draws_are_refused(classifier):
    with pytest.raises(TypeError, match="sample_posterior"):
        classifier.predict_proba(X, posterior=np.zeros(3))
    with pytest.raises(ValueError, match="another shape"):
        classifier.predict_proba(X, posterior=made_up((np.zeros((4, 10, 1, 3)),), Logistic()))


@pytest.mark.slow
def test_the_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "posterior.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    world: dict = {}
    exec(compile(block, "posterior.md", "exec"), world)
    assert (world["low"] < world["mean"]).all() and (world["mean"] < world["high"]).all()
