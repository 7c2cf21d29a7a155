"""``partial_fit``: sums in place of rows. What they tell is exact where it can be, and near elsewhere."""

import pickle

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso

import deepprox
from deepprox import DeepClassifier, DeepClassifierCV, DeepRegressor, losses, moving
from deepprox.estimators._partial import change_of
from deepprox.estimators._predict import losses_of
from deepprox.estimators._standardize import Scale
from deepprox.estimators.session import Session
from deepprox.joining.live import canonical
from fits import changed

UNSCALED = losses.Squared(centre=0.0, spread=1.0)  # responses as they are
RNG = np.random.default_rng(0)
N, BATCH = 4000, 100
X = RNG.normal([0, 5, 0, 0], [1, 2, 1, 1], size=(N, 4))
SIGNAL = np.sin(2 * X[:, 0]) + np.abs(X[:, 1] - 5) + X[:, 2]
Y = SIGNAL + 0.3 * RNG.normal(size=N)
LABELS = np.array(["low", "middle", "high"])[np.digitize(SIGNAL + 0.3 * RNG.normal(size=N), [1, 3])]
summed = jax.jit(moving.summed)
KNOWN, NEW = slice(0, 3000), slice(3000, N)


def stream(model, y, rows=KNOWN, size=BATCH, weight=None, **more):
    """The model after all batches, and what new rows lose after each of them."""
    lost = []
    for begin in range(rows.start, rows.stop, size):
        some = slice(begin, min(begin + size, rows.stop))
        model.partial_fit(X[some], y[some], sample_weight=None if weight is None else weight[some], **more)
        lost.append(losses_of(model, X[NEW], y[NEW]).mean())
    return model, lost


@pytest.mark.parametrize("size", [pytest.param(50, marks=pytest.mark.slow), 333])
def test_one_block_is_the_lasso_of_all_rows(size):
    rows, weight = slice(0, 1000), RNG.integers(0, 3, N).astype(float)
    model, _ = stream(DeepRegressor((), loss=UNSCALED, alpha=0.1), Y, rows, size, weight)
    inputs, often = X[rows], weight[rows]
    mean = np.average(inputs, axis=0, weights=often)
    spread = np.sqrt(np.average((inputs - mean) ** 2, axis=0, weights=often))
    lasso = Lasso(alpha=0.1, tol=1e-12).fit((inputs - mean) / spread, Y[rows], often)
    np.testing.assert_allclose(model.coefs_standardized_[0][:, 0], lasso.coef_, atol=2e-5)
    plain = DeepRegressor((), loss=UNSCALED, alpha=0.1).fit(inputs, Y[rows], often)
    np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-8)
    assert model.fitted_.n == plain.fitted_.n == np.count_nonzero(often)


def network():
    return DeepRegressor((20,), link="tanh", loss=UNSCALED, alpha=0.003, random_state=1)


@pytest.fixture(scope="module")
def streamed():
    model, lost = stream(network(), Y)
    return model, lost, network().fit(X[KNOWN], Y[KNOWN])


def test_a_stream_improves_on_its_first_batch_and_comes_near_the_fit(streamed):
    model, lost, plain = streamed
    of = lambda model: losses_of(model, X[NEW], Y[NEW]).mean()  # noqa: E731
    first = network().fit(X[:BATCH], Y[:BATCH])
    assert lost[-1] < 0.8 * of(first) and lost[-1] < 0.7 * lost[0]
    assert np.mean(lost[-5:]) < np.mean(lost[5:10])
    assert lost[-1] < 1.2 * of(plain)
    at = losses_of(model, X[KNOWN], Y[KNOWN]).mean() + model.solution_.penalty
    assert at < 1.2 * plain.objective_
    np.testing.assert_allclose(model.objective_, at, rtol=0.1)  # what sums say of rows that are gone


def test_a_stream_is_no_solution(streamed):
    model, lost, _ = streamed
    assert model.solution_.status == "streaming" and model.solution_.certificate == np.inf
    assert "there is no certificate" in str(model.summary()).replace("\n" + " " * 21, " ")
    assert len(model.history_) == model.n_iter_ == len(lost) and [*model.history_.rows][-1] == 3000
    assert not model.degrees_of_freedom().defined
    model.plot_history()
    with pytest.raises(ValueError, match="needs the data of the fit"):
        model.criteria()


def test_a_stream_goes_on_from_a_pickle_and_from_a_file(streamed, tmp_path):
    model, y = streamed[0], Y
    model.save(tmp_path / "model")
    others = pickle.loads(pickle.dumps(model)), deepprox.load(tmp_path / "model")
    here = pickle.loads(pickle.dumps(model)).partial_fit(X[NEW][:BATCH], y[NEW][:BATCH])
    for other in others:
        other.partial_fit(X[NEW][:BATCH], y[NEW][:BATCH])
        for a, b in zip(here.fitted_.W, other.fitted_.W, strict=True):
            np.testing.assert_array_equal(a, b)
    moments, (value, slope, *rest) = model.fitted_.stream
    broken = changed(model, stream=(moments, (value, slope[:1], *rest)))
    with pytest.raises(ValueError, match="do not fit its weights"):
        broken.partial_fit(X, y)


def test_a_fit_goes_on_as_a_stream_and_ends_one(streamed):
    plain, y = streamed[2], Y
    before = plain.objective_
    kept = pickle.loads(pickle.dumps(plain))  # without its data
    plain.partial_fit(X[NEW][:BATCH], y[NEW][:BATCH])
    assert plain.fitted_.n == 3100 and plain.solution_.status == "streaming"
    np.testing.assert_allclose(plain.objective_, before, rtol=0.2)
    with pytest.raises(ValueError, match="needs the data of the fit"):
        kept.partial_fit(X[NEW][:BATCH], y[NEW][:BATCH])
    again = plain.fit(X[:BATCH], y[:BATCH])
    assert again.fitted_.stream is None and again.fitted_.n == BATCH


@pytest.fixture(scope="module")
def known():
    """A small network, a problem, and random weights."""
    model = DeepClassifier((3, 4), link="tanh", alpha=0.01, random_state=0)
    session = Session(model)
    posed = session.pose(session.read(X[:8], LABELS[:8]))
    return posed.problem, session.starts(posed.problem, posed.scale)[0][0]


def test_curvature_is_that_of_gauss_and_newton(known):
    problem, W = known
    found = jax.jit(moving.bends)(problem, W)
    Z = problem.network.forward(W, problem.X)
    for l, block in enumerate(problem.network.blocks):

        def above(z, l=l, block=block):
            for b, w in zip(problem.network.blocks[l + 1 :], W[l + 1 :]):
                z, block = b.linear(w, block.link(z)), b
            return z

        def bend(z, y, above=above):
            J = jax.jacobian(lambda z: above(z[None])[0])(z)
            H = jax.hessian(lambda eta: problem.loss.value(eta[None], y[None])[0])(above(z[None])[0])
            return J.T @ H @ J

        total = np.tensordot(problem.weight, jax.jit(jax.vmap(bend))(Z[l], problem.y), 1)
        np.testing.assert_allclose(found[l], total, atol=1e-12)


def test_sums_of_one_block_and_squares_are_the_loss():
    model = DeepRegressor((), alpha=0.01, random_state=0)
    session = Session(model)
    posed = session.pose(session.read(X[:50], Y[:50]))
    problem, W = posed.problem, session.starts(posed.problem, posed.scale)[0][0]
    V = (W[0] + RNG.normal(size=W[0].shape),)
    past = summed(problem, W)
    sums, rows = jax.jit(moving.at)(past, W, V), jax.jit(problem.loss_and_gradient)(V)
    for a, b in zip(jax.tree.leaves(sums), jax.tree.leaves(rows), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_another_scale_says_the_same(known):
    problem, W = known
    past = jax.tree.map(np.asarray, summed(problem, W))
    n = W[0].shape[1] - 1
    old, new = (Scale(RNG.normal(size=n), RNG.uniform(1, 2, n), np.zeros(n, bool)) for _ in range(2))
    turn = lambda W: (new.from_inputs(old.to_inputs(W[0])), *W[1:])  # noqa: E731
    V = tuple(w + 0.1 * RNG.normal(size=w.shape) for w in W)
    here = moving.at(past, W, V)[0]
    there = moving.at(moving.rescaled(past, change_of(old, new)), turn(W), turn(V))[0]
    np.testing.assert_allclose(there, here, rtol=1e-10)


def test_dead_units_are_left_out_of_the_sums(known):
    problem, W = known
    W = tuple(np.array(w) for w in W)
    W[1][:, 2] = 0  # nothing reads the second unit
    V, live = canonical(problem.network, W)
    past = moving.without_dead(jax.tree.map(np.asarray, summed(problem, W)), V, live)
    exact = summed(problem, V)
    assert not V[0][1].any() and not past.slope[0][1].any()
    np.testing.assert_allclose(past.value, exact.value, rtol=1e-12)
    for l in (0, 1, 2):
        np.testing.assert_allclose(past.bends[l], exact.bends[l], atol=1e-12)


def test_a_class_may_come_late():
    model = DeepClassifier((), alpha=0.01)
    some = LABELS[:BATCH] != "high"
    model.partial_fit(X[:BATCH][some], LABELS[:BATCH][some], ["high", "low", "middle"])
    assert model.predict_proba(X[:2]).shape == (2, 3)
    model, _ = stream(model, LABELS, slice(BATCH, 1000))
    assert model.score(X[NEW], LABELS[NEW]) > 0.5 and "high" in model.predict(X[NEW])


def begun(estimator, y, **more):
    return estimator.partial_fit(X[:5], y[:5], **more)


def test_strange_batches_get_one_sentence():
    regressor, classes = begun(DeepRegressor((2,)), Y), {"classes": ["high", "low", "middle"]}
    classifier = begun(DeepClassifier(()), LABELS, **classes)
    for call, said in [
        (lambda: begun(DeepClassifier(()), LABELS), "classes must be passed on the first call"),
        (lambda: begun(DeepClassifier(()), LABELS, classes=["high"]), "classes must be at least 2 labels"),
        (lambda: begun(DeepClassifier((), loss="logistic"), LABELS, **classes), "is for two classes"),
        (lambda: classifier.partial_fit(X[:2], ["low", "new"]), "The class new was not in the data"),
        (lambda: classifier.partial_fit(X[:2], ["low"] * 2, ["low", "new"]), "not the same as on last call"),
        (lambda: classifier.partial_fit(X[:2, :3], ["low"] * 2), "X has 3 features, but .* 4 features"),
        (lambda: regressor.partial_fit(X[:2], Y[:4].reshape(2, 2)), "the response before it had 1 column"),
        (lambda: regressor.partial_fit(X[:2], [np.nan, 1]), "contains NaN"),
        (
            lambda: regressor.partial_fit(X[:2], Y[:2], [0, 0]),
            "at least one non-zero number|All values in sample_weight are zero",
        ),
        (
            lambda: regressor.set_params(hidden_layer_sizes=(3,)).partial_fit(X, Y),
            "another shape than before",
        ),
        (lambda: begun(DeepRegressor((), loss="poisson"), -np.ones(5)), "takes responses that are"),
        (lambda: begun(DeepRegressor((), checkpoint="run"), Y), "partial_fit needs checkpoint=None"),
        (lambda: begun(DeepRegressor((), devices="all"), Y), "partial_fit needs devices=None"),
    ]:
        with pytest.raises(ValueError, match=said):
            call()


@pytest.mark.parametrize("penalty", ["max_norm", "nonnegative"])
def test_penalties_that_are_constraints_or_have_kinks_elsewhere(penalty):
    """A new scale moves the weights, and a constraint holds on it all the same."""
    model = DeepRegressor((3,), penalty=penalty, alpha=0.05, random_state=0)
    model, lost = stream(model, Y, slice(0, 400))
    assert np.isfinite(model.solution_.penalty) and lost[-1] < lost[0]


def test_a_batch_that_cannot_be_learnt_changes_nothing():
    model = DeepRegressor((), alpha=0.01, standardize=False).partial_fit(X[:64], Y[:64])
    before = model.coefs_[0].copy()
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="The loss of this batch is not finite"):
        model.partial_fit(X[:64] * 1e200, Y[:64])
    np.testing.assert_array_equal(model.coefs_[0], before)
    assert model.fitted_.n == 64 and np.isfinite(model.partial_fit(X[:64], Y[:64]).objective_)


def test_who_chooses_a_strength_streams_nothing():
    assert not hasattr(DeepClassifierCV(()), "partial_fit")


def test_single_rows_and_names():
    table = pd.DataFrame(X[:3], columns=[*"abcd"])
    model = DeepRegressor((), alpha=0.01)
    for k in range(3):
        model.partial_fit(table[k : k + 1], Y[k : k + 1])
    assert model.fitted_.n == 3 and [*model.feature_names_in_] == [*"abcd"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(table.rename(columns={"a": "z"}), Y[:3])
