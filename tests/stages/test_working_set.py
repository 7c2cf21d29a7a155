"""One block by columns that matter: the minimum of the whole problem, whatever is looked at on the way."""

import tracemalloc
from itertools import product

import jax
import numpy as np
import pytest
import scipy.sparse

from deepprox import DeepClassifier, DeepRegressor, losses, path, penalties
from deepprox.estimators.session import Session
from deepprox.joining import few_columns, working_set
from deepprox.joining.certificate import certificate, flatten
from deepprox.joining.join import join
from deepprox.problem import Problem
from deepprox.struct import replace
from stages.problems import problem

LOSSES = {
    "squared": losses.Squared(),
    "huber": losses.Huber(0.5),
    "logistic": losses.Logistic(),
    "softmax": losses.Softmax(),
    "poisson": losses.Poisson(),
    "squared hinge": losses.SquaredHinge(),
}
PENALTIES = {
    "l1": penalties.L1(0.05),
    "l1, a strength for each input": penalties.L1(0.05 * (1 + np.arange(60) % 3)),
    "l1, a strength for each weight": penalties.L1(np.linspace(0.02, 0.2, 180).reshape(3, 60)),
    "elastic net": penalties.ElasticNet(0.05, 0.7),
    "ridge": penalties.L2(0.1),
    "at least zero": penalties.NonNegative(),
    "given zeros": penalties.Mask(np.random.default_rng(0).random((3, 60)) < 0.2),
}
# every loss with the lasso, every penalty with some loss that has a minimum with it
CASES = [*product(LOSSES, ["l1"]), *product(["squared"], [*PENALTIES][1:]), ("softmax", "elastic net")]


def silent(phase, rows):
    """Nobody listens."""


def wide(loss, penalty, n=50, p=60, k=3, **block):
    """More columns than rows, some of which matter, one twice."""
    rng = np.random.default_rng(1)
    posed, W = problem(hidden=(), penalty=penalty, n=n, p=p, k=k)
    X = rng.normal(size=(n, p))
    X[:, 5] = X[:, 4]
    eta = X[:, :k] * 2 + rng.normal(size=(n, k))
    y = eta
    if isinstance(loss, losses.Softmax):
        y = np.eye(k)[eta.argmax(1)]
    elif loss.binary:
        y = (eta > 0) + 0.0
    elif isinstance(loss, losses.Poisson):
        y = rng.poisson(np.exp(np.minimum(eta, 2))) + 0.0
    weight = rng.random(n)
    last = replace(posed.network.blocks[0], **block)
    network = replace(posed.network, blocks=(last,))
    return Problem(network, loss, X, y, weight / weight.sum()), (0 * W[0],)


def certified(posed, W, step):
    """The certificate as programs compute it."""
    w, flat = flatten(posed, W)
    with jax.enable_x64(True):
        return float(jax.jit(lambda w: certificate(flat.residual(w, flat.loss_and_gradient(w)[1], step)))(w))


def column_by_column(monkeypatch):
    """Rounds of few columns, also where all would do at once."""
    monkeypatch.setattr(working_set, "AT_ONCE", 0)
    monkeypatch.setattr(working_set, "FIRST", 4)
    monkeypatch.setattr(working_set, "ROOM", 1)


@pytest.mark.parametrize("loss, penalty", CASES)
def test_the_minimum_is_that_of_other_steps(loss, penalty, monkeypatch):
    posed, W = wide(LOSSES[loss], PENALTIES[penalty])
    column_by_column(monkeypatch)
    assert working_set.takes(posed)
    found = join(posed, W, 1e-8, 500, silent)
    assert found.status == "converged" and found.certificate <= 1e-8
    end = working_set.descend(posed, W, 1e-8, 500)
    assert certified(posed, found.W, end.step) <= 2e-8
    monkeypatch.setattr(working_set, "takes", lambda _: False)
    other = join(posed, W, 1e-8, 5000, silent)
    np.testing.assert_allclose(found.objective, other.objective, rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_conjugate_gradients_end_where_factors_do(loss, monkeypatch):
    posed, W = wide(LOSSES[loss], penalties.L1(0.02))
    by_factor = working_set.descend(posed, W, 1e-9, 500)
    assert by_factor.strict is not None
    monkeypatch.setattr(few_columns, "by_factor", lambda *_: False)
    found = working_set.descend(posed, W, 1e-9, 500)
    assert found.certificate <= 1e-9 and found.strict is None
    np.testing.assert_allclose(found.objective, by_factor.objective, rtol=1e-10)


@pytest.mark.parametrize("block", [{"bias": False}, {"penalize_bias": True}, {}], ids=str)
def test_biases_are_what_the_block_says(block, monkeypatch):
    posed, W = wide(losses.Squared(), penalties.L1(0.3), **block)
    posed = replace(posed, y=posed.y + 0.2)
    column_by_column(monkeypatch)
    found = join(posed, W, 1e-9, 500, silent)
    monkeypatch.setattr(working_set, "takes", lambda _: False)
    other = join(posed, W, 1e-9, 5000, silent)
    np.testing.assert_allclose(found.W[0], other.W[0], atol=1e-7)


@pytest.mark.parametrize("penalty", [penalties.MCP(0.1), penalties.SCAD(0.1)], ids=str)
def test_a_penalty_that_is_not_convex_is_certified_from_any_start(penalty):
    posed, W = wide(losses.Squared(), penalty)
    starts = W, (np.random.default_rng(0).normal(size=W[0].shape),)
    for start in starts:
        found = join(posed, start, 1e-8, 2000, silent)
        assert found.status == "converged"
        assert found.objective <= float(posed.objective(start))


def test_steps_never_rise_and_stop_when_told():
    posed, W = wide(losses.Poisson(), penalties.L1(0.01))
    posed = replace(posed, y=10 * posed.y)
    told = working_set.descend(posed, W, 1e-8, 500)
    values = [step.objective for step in told.steps]
    assert told.certificate <= 1e-8 and np.all(np.diff(values) <= 1e-12 * np.abs(values[1:]))
    assert len(working_set.descend(posed, W, 1e-8, 2).steps) == 2
    assert join(posed, W, 1e-8, 2, silent).status == "max_iter"
    assert join(posed, W, 1e-8, 0, silent).n_iter == 0


def test_no_shape_compiles_a_program():
    rng = np.random.default_rng(3)

    def fits(n, p):
        X = rng.normal(size=(n, p))
        DeepRegressor((), alpha=0.1).fit(X, X[:, 0] + rng.normal(size=n)).predict(X)
        DeepClassifier((), alpha=0.05).fit(X, X[:, 0] > 0).predict(X)

    fits(50, 7)
    with jax.log_compiles(True), pytest.MonkeyPatch.context() as patch:
        said = []
        patch.setattr("jax._src.dispatch.logger.log", lambda level, text, *args: said.append(text % args))
        fits(61, 13)
        fits(133, 211)
    assert not [line for line in said if "ompil" in line]


@pytest.mark.parametrize("standardize", [True, False])
def test_sparse_inputs_give_the_same_fit_and_stay_sparse(standardize):
    X = scipy.sparse.random(2000, 4000, 0.002, format="csr", random_state=0)
    y = X @ (np.arange(4000) < 20) + 0.05 * np.random.default_rng(0).normal(size=2000)
    model = DeepRegressor((), alpha=2e-2 if standardize else 2e-4, standardize=standardize)
    tracemalloc.start()
    model.fit(X, y)
    predicted = model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.shape[0] * X.shape[1] * 8 / 4
    assert model.solution_.status == "converged" and 0 < model.n_nonzero_ < 200
    dense = model.__class__(**model.get_params()).fit(X.toarray(), y)
    np.testing.assert_allclose(model.objective_, dense.objective_, rtol=1e-10)
    np.testing.assert_array_equal(model.coefs_[0] != 0, dense.coefs_[0] != 0)
    np.testing.assert_allclose(predicted, dense.predict(X.toarray()), atol=1e-6)


def test_a_path_of_sparse_inputs_is_that_of_dense_ones():
    X = scipy.sparse.random(200, 150, 0.1, format="csc", random_state=0)
    y = X @ (np.arange(150) < 5) + 0.1 * np.random.default_rng(0).normal(size=200)
    model = DeepRegressor((), random_state=0)
    sparse, dense = (path(model, inputs, y, 8, relax=True) for inputs in (X, X.toarray()))
    np.testing.assert_allclose(sparse.alphas, dense.alphas, rtol=1e-9)
    each = zip(sparse.solutions, dense.solutions, strict=True)
    for one, other in each:
        np.testing.assert_allclose(one.objective, other.objective, rtol=1e-9)


def test_what_was_given_may_change_after_the_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] + rng.normal(size=40)
    model = DeepRegressor((), alpha=0.1, standardize=False).fit(X, y)
    kept = np.array(model.fitted_.problem().X)
    X[:] = 0
    np.testing.assert_array_equal(kept, model.fitted_.problem().X)


def test_the_same_digits_in_any_order_of_rows():
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(80, 6)), rng.permutation(80)
    y = X[:, 0] + rng.normal(size=80)
    one, other = (DeepRegressor((), alpha=0.1).fit(X[rows], y[rows]) for rows in (np.arange(80), order))
    np.testing.assert_array_equal(one.coefs_[0], other.coefs_[0])


@pytest.mark.parametrize(
    "given",
    [
        {"hidden": (5,)},
        {"hidden": (), "penalty": penalties.Nuclear(0.1)},
        {"hidden": (), "penalty": penalties.GroupL2(0.1)},
        {"hidden": (), "penalty": penalties.MCP(0.1)},
        {"hidden": (), "loss": losses.Quantile(0.5, 0.1)},
    ],
    ids=["hidden block", "kinks away from zero", "groups", "few weights and not convex", "no formula"],
)
def test_what_it_is_not_for(given):
    assert working_set.takes(problem(hidden=())[0])
    assert not working_set.takes(problem(**given)[0])


def test_many_starts_of_a_convex_problem_are_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    model = DeepRegressor((), alpha=0.1, n_init=3, random_state=0).fit(X, X[:, 0] + rng.normal(size=60))
    assert len(model.solution_.starts) == 3 and len(set(model.solution_.starts)) == 1
    session = Session(model)
    posed = session.pose(session.read(X, X[:, 0]))
    assert all(not W[0][:, 1:].any() for W in session.starts(posed.problem, posed.scale)[0])
