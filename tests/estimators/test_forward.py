"""Predictions: the live network in NumPy, the same numbers as the whole one in JAX, and no JAX at all."""

import dataclasses
import pickle
import tracemalloc
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier

import deepprox
from deepprox import (
    DeepClassifier,
    DeepClassifierCV,
    DeepClassifierIC,
    DeepRegressor,
    DeepRegressorCV,
    DeepRegressorIC,
    losses,
    programs,
)
from deepprox.blocks import Dense
from deepprox.estimators._forward import forward_of
from deepprox.estimators._plain import become
from deepprox.estimators._predict import losses_of
from deepprox.links import Link, ReLU
from deepprox.posterior import Draws
from deepprox.problem import Network
from deepprox.runtime import precision
from deepprox.struct import struct
from fits import changed
from rows import GROUP_LINKS, LINKS, LOSSES

WIDTHS = (12, 6)


@pytest.fixture(scope="module", params=["float32", "float64"])
def model(request):
    """A linear model that lends its attributes to networks of given weights; its third input never varies."""
    X = np.random.default_rng(0).normal(3, 2, (60, 5))
    X[:, 2] = 7.0
    return DeepRegressor((), alpha=0.01, dtype=request.param).fit(X, X[:, :2])


@pytest.fixture(scope="module")
def inputs():
    return np.random.default_rng(1).normal(3, 2, (500, 5))


def with_network(model, *links, loss=None, widths=WIDTHS, zeros=0.5, seed=0):
    """A network of these hidden links and random weights, of which some are zero."""
    rng, dtype = np.random.default_rng(seed), model.fitted_.W[0].dtype
    blocks = (*(Dense(size, link) for size, link in zip(widths, links)), Dense(model.n_outputs_))
    network = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), Network(blocks))
    shapes = network.shapes(model.n_features_in_)
    W = ((rng.normal(size=s) * (rng.random(s) > zeros)).astype(dtype) for s in shapes)
    return changed(model, W, network=network, loss=loss or model.fitted_.loss)


@partial(jax.jit, static_argnames="as_mean")
def _whole(network, loss, W, X, as_mean):
    eta = network.forward(W, X)[-1]
    return loss.mean(eta) if as_mean else eta


def whole(model, X, as_mean=True):
    """The prediction of all units, in JAX."""
    X = model.fitted_.scale.standardize(X.astype(model.fitted_.W[0].dtype))
    with precision(X.dtype):
        return np.asarray(_whole(model.fitted_.network, model.fitted_.loss, model.fitted_.W, X, as_mean))


def assert_close(ours, theirs):
    np.testing.assert_allclose(
        ours, theirs, rtol=0, atol=500 * np.finfo(theirs.dtype).eps * abs(theirs).max()
    )
    assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("row", LINKS + GROUP_LINKS, ids=str)
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.85])
def test_the_live_network_is_the_whole_one(model, inputs, row, zeros):
    other = with_network(model, row.link, row.link, zeros=zeros)
    assert_close(other.predict(inputs), whole(other, inputs))


@pytest.mark.parametrize("row", LOSSES, ids=str)
def test_means_of_all_losses(model, inputs, row):
    loss = jax.tree.map(lambda leaf: np.asarray(leaf, model.fitted_.W[0].dtype), row.loss)
    other = with_network(model, ReLU(), loss=loss)
    assert_close(other.predict(inputs), whole(other, inputs))


def test_only_live_units_and_inputs_are_computed(model, inputs):
    other = with_network(model, ReLU(), ReLU(), zeros=0.0)
    other.fitted_.W[0][:, 1] = 0.0  # nobody reads the first input, and the third never varied
    other.fitted_.W[2][:, 3:] = 0.0  # two units of the second layer are read
    other.fitted_.W[1][0, 2:] = 0.0  # of which one reads a single unit of the first
    other.fitted_.W[1][1, 4:] = 0.0
    live = forward_of(other.fitted_)
    assert [*live.reads] == [1, 3, 4] and [w.shape for w in live.W] == [(3, 4), (2, 4), (2, 3)]
    assert_close(other.predict(inputs), whole(other, inputs))


def test_a_network_that_reads_nothing_is_its_bias(model, inputs):
    other = with_network(model, ReLU(), zeros=0.0)
    other.fitted_.W[1][:, 1:] = 0.0
    level = other.fitted_.loss.mean(other.fitted_.W[1][:, 0])
    np.testing.assert_array_equal(other.predict(inputs), np.tile(level, (len(inputs), 1)))


@pytest.mark.parametrize("sparse", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array])
def test_sparse_inputs(model, inputs, sparse):
    other = with_network(model, ReLU())
    X = inputs * (inputs > 3)
    np.testing.assert_array_equal(other.predict(sparse(X)), other.predict(X))


@pytest.mark.parametrize("hidden", [(), (3,)])
def test_many_sparse_inputs_are_multiplied_as_they_are(hidden):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(300, 900, 0.01, format="csr", random_state=0)
    given = {"penalty": "l2", "alpha": 0.1, "max_iter": 20, "random_state": 0}
    model = DeepRegressor(hidden, **given)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, rng.normal(size=300))
    tall = scipy.sparse.random(20_000, 900, 0.001, format="csc", random_state=1)
    forward_of(model.fitted_)
    tracemalloc.start()
    ours = model.predict(tall)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(ours, model.predict(tall.toarray()), rtol=1e-9, atol=1e-10)
    assert peak < 20_000 * 900 * 8 / 10


def test_pieces_are_one_prediction_in_bounded_memory(model):
    other = with_network(model, ReLU(), ReLU(), widths=(500, 500), zeros=0.0)
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    forward_of(other.fitted_)
    tracemalloc.start()
    ours = other.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_close(ours, whole(other, X))
    assert peak < 60e6 < 500 * len(X) * 8


def test_what_was_fitted_anew_is_what_predicts(inputs):
    model = DeepRegressor((), alpha=0.01).fit(inputs, inputs[:, 0])
    first = model.predict(inputs)
    again = model.fit(inputs, -inputs[:, 0]).predict(inputs)
    np.testing.assert_allclose(again, -first, atol=1e-6)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3))
    return X, X[:, 0] - X[:, 1], np.where(X[:, 0] + 0.1 * rng.normal(size=80) > 0, "yes", "no")


CHOOSING = {"alphas": 3, "eps": 0.1}
ESTIMATORS = [
    DeepRegressor((3,), alpha=0.01, random_state=0),
    DeepRegressor((), alpha=0.01, loss="quantile"),
    DeepRegressorCV((), cv=2, **CHOOSING),
    DeepRegressorIC((), **CHOOSING),
    DeepClassifier((), alpha=0.01, loss="logistic"),
    DeepClassifierCV((), cv=2, **CHOOSING),
    DeepClassifierIC((), **CHOOSING),
]


def answers(model, X, y):
    """Everything that is asked of a model that serves."""
    kinds = ("predict", "predict_proba", "predict_log_proba", "decision_function")
    told = [getattr(model, kind)(X) for kind in kinds if hasattr(model, kind)]
    return [*told, model.score(X, y), losses_of(model, X, y)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_predictions_need_no_jax(estimator, data, monkeypatch, tmp_path):
    X, number, label = data
    y = label if is_classifier(estimator) else number
    fitted = clone(estimator).fit(X, y)
    before = answers(fitted, X, y)
    fitted.save(tmp_path / "m")
    stored = pickle.dumps(fitted)
    monkeypatch.setattr(programs.HERE, "lost", True)
    for one in (fitted, pickle.loads(stored), deepprox.load(tmp_path / "m")):
        for ours, theirs in zip(answers(one, X, y), before, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(RuntimeError, match="JAX has run in the process that this one was forked from"):
        fitted.fit(X, y)


@pytest.mark.parametrize("hidden", [(), (3,)])
def test_averages_over_draws_need_no_jax(data, hidden, monkeypatch):
    X, y, _ = data
    model = DeepRegressor(hidden, alpha=0.01, random_state=0).fit(X, y)
    rng = np.random.default_rng(0)
    W = tuple(w + 0.1 * rng.normal(size=(2, 9, *w.shape)) for w in model.fitted_.W)
    draws = Draws(W, "proximal", model.fitted_.network, model.fitted_.loss, X, y[:, None], sigma=1.0)
    standardised = model.fitted_.scale.standardize(X)
    flat = tuple(w.reshape(18, *w.shape[2:]) for w in W)
    by_jax = jax.jit(jax.vmap(lambda W: model.fitted_.network.forward(W, standardised)[-1]))(flat)
    told = model.fitted_.loss.mean(np.mean(by_jax, 0)[:, 0])
    monkeypatch.setattr(programs.HERE, "lost", True)
    np.testing.assert_allclose(model.predict(X, posterior=draws), told, atol=1e-12)
    low, high = model.predict_interval(X, posterior=draws)
    assert (low < high).all()
    if not hidden:  # what is linear in its weights has its mode everywhere
        around = dataclasses.replace(draws, mode=model.fitted_.W)
        np.testing.assert_array_equal(around.outputs(X), draws.outputs(X))


@struct
class OfMine(Link):
    """A link that needs JAX's arrays."""

    def __call__(self, z):
        return jnp.tanh(z.at[...].multiply(0.5))


@struct
class MyLoss(losses.Squared):
    """A loss whose mean is JAX's."""

    def mean(self, eta):
        return jnp.sinh(eta / 10)


@pytest.mark.parametrize("link, loss", [(OfMine(), None), (ReLU(), MyLoss())], ids=["link", "loss"])
def test_a_users_own_word_is_compiled(model, inputs, link, loss, monkeypatch):
    other = with_network(model, link, loss=loss, zeros=0.7)
    assert_close(other.predict(inputs), whole(other, inputs))
    lost = losses_of(other, inputs, other.predict(inputs))
    assert lost.dtype == model.fitted_.W[0].dtype and np.isfinite(lost).all()
    monkeypatch.setattr(programs.HERE, "lost", True)
    with pytest.raises(RuntimeError, match="'spawn' or 'forkserver'"):
        other.predict(inputs)


def test_an_estimator_of_a_cluster_predicts_as_its_plain_one(data, monkeypatch):
    dask = pytest.importorskip("deepprox.dask")
    import dask.array as da

    X, y, _ = data
    plain = DeepRegressor((), alpha=0.01).fit(X, y)
    ours = dask.DeepRegressor((), alpha=0.01)
    become(ours, plain)
    monkeypatch.setattr(programs.HERE, "lost", True)
    np.testing.assert_array_equal(ours.predict(X), plain.predict(X))
    parts = ours.predict(da.from_array(X, chunks=(30, 3))).compute(scheduler="sync")
    np.testing.assert_allclose(parts, plain.predict(X), atol=1e-12)
