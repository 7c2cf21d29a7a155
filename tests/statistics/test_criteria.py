"""Criteria and risk: the numbers of statsmodels and scikit-learn, densities that are ones, refusals."""

import pickle

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.integrate import quad
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoLarsIC
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

from deepprox import DeepClassifier, DeepRegressor, links, load, losses, penalties
from deepprox.blocks import Dense
from deepprox.problem import Network, Problem
from deepprox.statistics.criteria import criteria, likelihood, sure
from deepprox.statistics.degrees_of_freedom import DegreesOfFreedom

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
F = sm.add_constant(X)
RATE = np.exp(0.3 + 0.5 * X[:, 0] - 0.4 * X[:, 1])
COUNTS = rng.poisson(RATE).astype(float)
OVER = rng.negative_binomial(2, 2 / (2 + RATE)).astype(float)
TIMES = rng.gamma(2.0, RATE / 2)
BINARY = (rng.random(80) < RATE / (1 + RATE)).astype(float)
GAUSS = np.log(RATE) + rng.normal(size=80)
CLASSES = rng.integers(3, size=80)
families = sm.families
TIGHT = {"tol": 1e-12, "maxiter": 200}


def posed(loss, y, params, weight=None):
    """A linear model at the weights ``params``, the bias first, and what the criteria need of it."""
    y = y[:, None] if y.ndim == 1 else y
    network = Network((Dense(y.shape[1], links.Identity(), penalties.Zero()),))
    weight = np.full(len(X), 1 / len(X)) if weight is None else weight
    return likelihood(Problem(network, loss, X, y, weight), (np.atleast_2d(params),), len(X))


def glm(y, family, **changes):
    return sm.GLM(y, F, family).fit(**TIGHT | changes)


def theirs(name):
    match name:
        case "squared":
            return losses.Squared(), GAUSS, sm.OLS(GAUSS, F).fit()
        case "logistic":
            return losses.Logistic(), BINARY, sm.Logit(BINARY, F).fit(disp=0, tol=1e-12)
        case "poisson":
            return losses.Poisson(), COUNTS, glm(COUNTS, families.Poisson())
        case "negative binomial":
            return losses.NegativeBinomial(0.5), OVER, glm(OVER, families.NegativeBinomial(alpha=0.5))
        case "gamma":
            log = families.links.Log()
            return losses.Gamma(2.0), TIMES, glm(TIMES, families.Gamma(log), scale=0.5)
    return losses.Softmax(), np.eye(3)[CLASSES], sm.MNLogit(CLASSES, F).fit(disp=0, tol=1e-12)


@pytest.mark.parametrize("name", ["squared", "logistic", "poisson", "negative binomial", "gamma", "softmax"])
def test_agrees_with_statsmodels(name):
    loss, y, other = theirs(name)
    params = np.asarray(other.params)
    weights = params if params.ndim == 1 else np.concatenate([np.zeros((1, 4)), params.T])
    found = criteria(posed(loss, y, weights), DegreesOfFreedom(params.size, "exact"))
    bic = other.bic_llf if "GLM" in type(other).__name__ else other.bic
    np.testing.assert_allclose(
        [found.log_likelihood, found.aic, found.bic], [other.llf, other.aic, bic], rtol=1e-9
    )


def test_sigma_given_is_the_criterion_of_scikit_learn():
    y = GAUSS
    reference = LassoLarsIC("bic").fit(X, y)
    best = int(np.argmin(reference.criterion_))
    fit = posed(losses.Squared(), y, np.append(reference.intercept_, reference.coef_))
    # scikit-learn does not count the intercept
    df = DegreesOfFreedom(np.count_nonzero(reference.coef_), "exact")
    found = criteria(fit, df, sigma=np.sqrt(reference.noise_variance_))
    assert found.bic == pytest.approx(reference.criterion_[best], rel=1e-9)


def test_the_rest_by_their_formulas():
    fit, df = posed(losses.Squared(), GAUSS, [0.0, 0.5, -0.4, 0.0]), DegreesOfFreedom(2.5, "exact")
    rss = ((GAUSS - X @ [0.5, -0.4, 0.0]) ** 2).sum()
    found = criteria(fit, df, gamma=1.0)
    assert found.aicc == pytest.approx(found.aic + 2 * 2.5 * 3.5 / (80 - 2.5 - 1))
    assert found.ebic == pytest.approx(found.bic + 2 * np.log(3))  # two of three inputs: three choices
    assert found.gcv == pytest.approx(rss / 80 / (1 - 2.5 / 80) ** 2)
    risk = sure(fit, df)
    assert risk.sigma**2 == pytest.approx(rss / (80 - 2.5))
    assert risk.sure == pytest.approx(rss + 2 * risk.sigma**2 * 2.5) and risk.mean == risk.sure / 80
    assert sure(fit, df, 2.0).sure == pytest.approx(rss + 2 * 4 * 2.5)
    assert criteria(fit, DegreesOfFreedom(79.5, "exact")).aicc == np.inf
    assert dict(found)["df"] == 2.5 and "aicc" in str(found)


def test_the_deviance_is_that_of_the_family():
    for loss, y, deviance in [
        (losses.Poisson(), COUNTS, lambda y, mu: 80 * mean_poisson_deviance(y, mu)),
        (losses.Gamma(2.0), TIMES, lambda y, mu: 2 * 80 * mean_gamma_deviance(y, mu)),
        (losses.Logistic(), BINARY, lambda y, mu: families.Binomial().deviance(y, mu / (1 + mu))),
    ]:
        eta = X @ [0.5, -0.4, 0.1] + 0.2
        assert posed(loss, y, [0.2, 0.5, -0.4, 0.1]).deviance == pytest.approx(
            deviance(y, np.exp(eta)), rel=1e-6
        )


def test_weights_count_relative_to_their_mean():
    twice = np.repeat([1.0, 3.0], 40)
    fit = posed(losses.Poisson(), COUNTS, [0.2, 0.5, -0.4, 0.1], twice / twice.sum())
    each = losses.Poisson().log_base(COUNTS[:, None]) - np.exp(F @ [0.2, 0.5, -0.4, 0.1])
    each += COUNTS * (F @ [0.2, 0.5, -0.4, 0.1])
    assert fit.log() == pytest.approx(each @ (twice / twice.mean()))


LIKELIHOODS = [
    losses.Squared(),
    losses.Logistic(),
    losses.Poisson(),
    losses.NegativeBinomial(0.5),
    losses.Gamma(3.0),
    losses.Softmax(),
]


def density(loss, y, eta):
    y = np.atleast_2d(np.asarray(y, float))
    return np.exp(loss.log_base(y) - np.asarray(loss.value(np.broadcast_to(eta, y.shape), y)))


@pytest.mark.parametrize("loss", LIKELIHOODS, ids=str)
def test_densities_are_densities_and_draws_are_theirs(loss):
    k = 3 if loss.simplex else 1
    eta = np.log([1.7, 0.6, 0.9])[:k]
    mean = np.asarray(loss.mean(eta[None]))[0]
    if isinstance(loss, losses.Squared | losses.Gamma):
        moment = lambda power: quad(  # noqa: E731
            lambda y: (y - mean[0]) ** power * density(loss, [[y]], eta)[0],
            -40 if loss.free_scale else 1e-12,
            60,
            limit=200,
        )[0]
        total, off, variance = moment(0), moment(1), np.array([moment(2)])
    else:
        support = np.eye(3) if loss.simplex else np.arange(2 if loss.binary else 200)[:, None]
        p = density(loss, support, eta)
        total, off, variance = p.sum(), np.abs(p @ (support - mean)).max(), p @ (support - mean) ** 2
    assert abs(off) < 1e-6
    assert total == pytest.approx(1.0, abs=1e-7)
    many = np.tile(mean, (40_000, 1)).astype(float)
    for count in (1.0, 4.0):  # the mean of four responses has a quarter of the variance
        drawn = loss.draw(np.random.default_rng(0), many, np.full((len(many), 1), count))
        assert np.asarray(loss.takes(drawn)).all() or count > 1
        np.testing.assert_allclose(drawn.mean(0), mean, atol=5 * np.sqrt(variance.max() / count / 40_000))
        np.testing.assert_allclose(drawn.var(0), variance / count, rtol=0.05)


def test_classes_of_a_weight_that_is_no_number_of_them_are_not_drawn():
    with pytest.raises(ValueError, match="drawn for whole observations"):
        losses.Softmax().draw(rng, np.full((2, 3), 1 / 3), np.array([[1.5], [0.5]]))


@pytest.fixture(scope="module")
def least_squares():
    X, y = load_diabetes(return_X_y=True)
    return DeepRegressor((), penalty="none", tol=1e-8).fit(X, y), sm.OLS(y, sm.add_constant(X)).fit()


def test_an_estimator_is_least_squares(least_squares):
    model, reference = least_squares
    found = model.criteria()
    assert found.df == pytest.approx(11, abs=1e-8) and found.n == 442
    np.testing.assert_allclose([found.aic, found.bic], [reference.aic, reference.bic], rtol=1e-10)
    assert model.sure().rss == pytest.approx(reference.ssr, rel=1e-10)
    assert model.sure().sigma ** 2 == pytest.approx(reference.mse_resid, rel=1e-10)
    text = str(model.summary())
    assert "11 (exact, 11 live weights)" in text and f"BIC {reference.bic:.6g}" in text
    assert model.degrees_of_freedom("hutchinson", n_draws=2, random_state=0).value == pytest.approx(11)


def test_a_stored_estimator_keeps_what_was_asked_for_and_no_data(least_squares):
    X, y = load_diabetes(return_X_y=True)
    fresh = DeepRegressor((), penalty="none", tol=1e-8).fit(X, y)
    stored = pickle.loads(pickle.dumps(fresh))
    assert stored.fitted_.data is None and fresh.fitted_.data is not None
    assert "not computed before the estimator was stored" in str(stored.summary())
    for ask in (stored.degrees_of_freedom, stored.criteria, stored.sure):
        with pytest.raises(ValueError, match="needs the data of the fit"):
            ask()
    model, _ = least_squares
    found = model.criteria()
    again = pickle.loads(pickle.dumps(model))
    assert again.criteria() == found and again.sure() == model.sure()
    assert str(again.summary()) == str(model.summary())
    with pytest.raises(ValueError, match="needs the data of the fit"):
        again.degrees_of_freedom("perturbation")


def test_a_saved_file_keeps_them_too(least_squares, tmp_path):
    model, _ = least_squares
    found = model.criteria()
    model.save(tmp_path / "model.deepprox")
    again = load(tmp_path / "model.deepprox")
    assert again.criteria() == found and again.fitted_.data is None


def test_a_new_fit_forgets(least_squares):
    X, y = load_diabetes(return_X_y=True)
    model = DeepRegressor((), penalty="none", tol=1e-8).fit(X, y)
    before = model.criteria().aic
    assert model.fit(X, y / 2).criteria().aic != pytest.approx(before)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_is_no_solution_has_none():
    X, y = load_diabetes(return_X_y=True)
    model = DeepRegressor((), loss="poisson", penalty="none", tol=1e-8, max_iter=2).fit(X, y)
    found = model.criteria()
    assert np.isnan(found.aic) and np.isfinite(found.log_likelihood)
    assert "above tol 1e-08, so the fit is not a solution" in found.message
    assert "not defined: the certificate" in str(model.summary())


def test_what_makes_no_sense_gets_a_sentence(least_squares):
    model, _ = least_squares
    fit, df = posed(losses.Poisson(), COUNTS, [0.2, 0.5, -0.4, 0.1]), DegreesOfFreedom(4.0, "exact")
    with pytest.raises(ValueError, match="SURE is for squared loss, and this fit has Poisson"):
        sure(fit, df)
    with pytest.raises(ValueError, match="leave it out with Poisson"):
        criteria(fit, df, sigma=1.0)
    with pytest.raises(ValueError, match="sigma must be a positive number, got -1"):
        model.criteria(-1)
    with pytest.raises(ValueError, match="gamma must be a number from 0 to 1, got 2"):
        model.criteria(gamma=2)
    huber = posed(losses.Huber(), GAUSS, [0.2, 0.5, -0.4, 0.1])
    with pytest.raises(ValueError, match="need a likelihood, and Huber is none"):
        criteria(huber, df)
    gauss = posed(losses.Squared(), GAUSS, [0.2, 0.5, -0.4, 0.1])
    with pytest.raises(ValueError, match="leave nothing of 80 numbers"):
        sure(gauss, DegreesOfFreedom(80.0, "exact"))


def test_margins_have_no_criteria():
    model = DeepClassifier((), loss="squared_hinge", alpha=0.01).fit(X, BINARY)
    with pytest.raises(ValueError, match="SquaredHinge is none"):
        model.criteria()
    with pytest.raises(ValueError, match="SquaredHinge has none"):
        model.degrees_of_freedom()
    assert "none: squaredhinge is not a likelihood" in str(model.summary())
