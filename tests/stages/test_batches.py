"""The batch phase: its formulas in NumPy, the lasso it ends at, and what it leaves to the join phase."""

from contextlib import nullcontext
from functools import partial

import jax
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import Lasso

from deepprox import DeepClassifier, DeepRegressor, batches
from deepprox.blocks import Dense
from deepprox.estimators import _resolve
from deepprox.estimators._resolve import BATCH, MANY, resolve_batch
from deepprox.links import Tanh
from deepprox.losses import Squared
from deepprox.penalties import L1, Nuclear
from deepprox.problem import Network, Problem
from deepprox.runtime import precision, products_asked
from deepprox.spreading import Spread
from deepprox.struct import replace
from spreading.kills import killed

ALPHA = 0.05
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 8))
Y = X[:, :1] * 2 - X[:, 1:2] + 0.3 + 0.5 * RNG.normal(size=(200, 1))


def lasso(padding=0):
    """A lasso with some rows of weight 0 at the end, which hold no numbers at all."""
    pad = lambda A: np.concatenate([A, np.full((padding, A.shape[1]), np.nan)])  # noqa: E731
    weight = np.concatenate([np.full(200, 1 / 200), np.zeros(padding)])
    return Problem(Network((Dense(1, penalty=L1(ALPHA)),)), Squared(), pad(X), pad(Y), weight)


def by_hand(problem, W, first, total, batch):
    """The same steps in NumPy, double precision."""
    n, M, v, size = 200, 0.0, 0.0, np.sqrt((W**2).mean())
    rows = np.asarray(jax.random.randint(jax.random.key(first), (batches.STEPS, batch), 0, n))
    losses = []
    for k, drawn in enumerate(rows):
        F = np.column_stack([np.ones(batch), problem.X[drawn]])
        r = F @ W.T - problem.y[drawn]
        losses.append((r**2).mean() / 2)
        G, t = r.T @ F / batch, first + k + 1
        v = 0.999 * v + 0.001 * (G**2).mean()
        usual = np.sqrt(v / (1 - 0.999**t))
        M = 0.9 * M + 0.1 * G * min(1, 3 * usual / np.sqrt((G**2).mean()))
        rate = batches.RATE * min(1, 2 * (1 - (first + k) / total))  # of one block
        s = rate * size / usual
        W = W - s * M / (1 - 0.9**t)
        W[:, 1:] = np.sign(W[:, 1:]) * np.maximum(np.abs(W[:, 1:]) - s * ALPHA, 0)
    return W, np.mean(losses)


def chunk(problem, W, first=0, total=200, batch=32, lanes=False):
    with precision(np.float64):
        state = batches.start((W,))
        numbers = np.int32(first), np.int32(total)
        state, info = batches.chunk(problem, state, *numbers, batch, lanes, batches.PRODUCTS)
    return np.asarray(state.W[0]), info


@pytest.mark.parametrize("first", [0, 130], ids=["steady", "falling"])
def test_steps_are_the_formulas(first):
    W = RNG.normal(size=(1, 9))
    found, info = chunk(lasso(), W, first)
    wanted, loss = by_hand(lasso(), W.copy(), first, 200, 32)
    np.testing.assert_allclose(found, wanted, atol=2e-5)
    np.testing.assert_allclose(info.loss, loss, rtol=1e-5)
    np.testing.assert_allclose(info.objective, loss + ALPHA * np.abs(wanted[:, 1:]).sum(), rtol=1e-4)
    assert found.dtype == np.float32


def test_a_burst_counts_as_three_usual_gradients():
    """The first gradient after many of zero is 25 times as large as usual."""
    W = RNG.normal(size=(1, 9)).astype(np.float32)
    problem = batches.single(replace(lasso(), network=Network((Dense(1, penalty=L1(0.0)),))))
    after, _ = jax.jit(batches.step)(problem, batches.start((W,)), np.float32(1000), np.float32(0.5))
    moved, usual = after.W[0] - W, 0.5 * np.sqrt((W**2).mean())
    np.testing.assert_allclose(np.sqrt((moved**2).mean()), 0.1 * 3 * usual, rtol=1e-3)


def test_blocks_share_the_rate():
    """Each of two has half of it."""
    blocks = Dense(3, link=Tanh(), penalty=L1(0.0)), Dense(1, penalty=L1(0.0))
    problem = replace(lasso(), network=Network(blocks))
    W = RNG.normal(size=(3, 9)), RNG.normal(size=(1, 4))
    rows = np.asarray(jax.random.randint(jax.random.key(0), (batches.STEPS, 32), 0, 200))
    step = jax.jit(batches.step)
    with precision(np.float64):
        after, _ = batches.chunk(problem, batches.start(W), np.int32(0), np.int32(200), 32, False, "highest")
        alone = batches.start(W)
        for k, drawn in enumerate(rows):
            some = replace(problem, X=X[drawn], y=Y[drawn], weight=np.full(32, 1 / 32))
            alone, _ = step(batches.single(some), alone, np.float32(k + 1), np.float32(batches.RATE / 2))
    for a, b in zip(after.W, alone.W, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_rows_without_weight_are_never_drawn():
    W = RNG.normal(size=(1, 9))
    np.testing.assert_array_equal(chunk(lasso(), W)[0], chunk(lasso(padding=56), W)[0])


def test_starts_side_by_side_are_those_one_by_one():
    W = RNG.normal(size=(3, 1, 9))
    together, info = chunk(lasso(), W, lanes=True)
    assert info.objective.shape == (3, 1)
    for one, w in zip(together, W, strict=True):
        np.testing.assert_allclose(one, chunk(lasso(), w)[0], atol=1e-5)


@pytest.mark.parametrize("asked", [None, "highest"])
def test_products_are_rounded_unless_the_user_asks(asked):
    """A program of JAX says so for every product; only an accelerator does it."""
    context = jax.default_matmul_precision(asked) if asked else nullcontext()
    with context, precision(np.float32), precision(np.float64):
        products = products_asked() or batches.PRODUCTS
        step = partial(batches.chunk.__wrapped__, batch=32, lanes=False, products=products)
        said = str(jax.make_jaxpr(step)(lasso(), batches.start((RNG.normal(size=(1, 9)),)), 0, 200))
    assert said.count("precision=None") == 0
    assert ("Precision.HIGHEST" in said) == bool(asked)


def test_the_end_is_near_the_lasso():
    model = DeepRegressor((), alpha=ALPHA, standardize=False, batch_size=64, max_iter=60, random_state=0)
    with pytest.warns(match="stopped at max_iter"):
        model.fit(X, Y[:, 0])
    oracle = Lasso(ALPHA, tol=1e-10).fit(X, Y[:, 0])
    lowest = ((oracle.predict(X) - Y[:, 0]) ** 2).mean() / 2 + ALPHA * np.abs(oracle.coef_).sum()
    assert set(model.history_["phase"]) == {"batch"} and len(model.history_) == 60
    assert lowest <= model.objective_ <= 1.01 * lowest
    assert 0 < np.count_nonzero(model.coefs_[0]) < 8  # zeros are exact


@pytest.fixture(scope="module")
def moons():
    return make_classification(600, 6, n_informative=4, random_state=0)


def network(**params):
    return DeepClassifier((6,), link="tanh", alpha=0.01, random_state=0, **{"batch_size": 64} | params)


@pytest.fixture(scope="module")
def whole(moons):
    return network().fit(*moons)


def test_the_join_phase_certifies(moons, whole):
    phases = whole.history_["phase"].drop_duplicates().tolist()
    assert phases[:2] == ["batch", "join"] and whole.solution_.status == "converged"
    assert {"batch", "join"} == {*whole.solution_.seconds}
    assert whole.fitted_.W[0].dtype == np.float64


def test_several_starts(moons, whole):
    many = network(n_init=3).fit(*moons)
    assert len(many.solution_.starts) == 3 and many.solution_.status == "converged"
    assert many.objective_ < whole.objective_ + 1e-6


@pytest.mark.parametrize("after", [2, 30])
def test_interrupted_it_goes_on_to_the_same_bits(moons, whole, tmp_path, monkeypatch, after):
    from deepprox.estimators import _checkpoint

    monkeypatch.setattr(_checkpoint, "SHARE", np.inf)
    assert killed(after, network(checkpoint=tmp_path).fit, *moons)
    again = network(checkpoint=tmp_path, resume=True).fit(*moons)
    for one, other in zip(whole.fitted_.W, again.fitted_.W, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_penalty_that_is_a_constraint_or_has_other_kinks(moons):
    model = network(penalty="nuclear", max_iter=61)
    with pytest.warns(match="max_iter"):
        model.fit(*moons)
    assert np.isfinite(model.objective_) and model.score(*moons) > 0.7


def test_what_batches_emptied_stays_empty_without_steps_to_come(moons):
    model = network(max_iter=60).set_params(alpha=1.0)
    with pytest.warns(match="max_iter"):
        model.fit(*moons)
    assert not model.coefs_[0].any() and model.objective_ < np.log(2) + 1e-3


class Apart(Spread):
    """Rows that are not in memory."""

    in_memory = False

    def __call__(self, tree):
        return tree


RULE = [
    ({}, MANY, BATCH),
    ({}, MANY - 1, 0),
    ({"batch_size": None}, MANY, 0),
    ({"batch_size": 7}, 100, 7),
    ({"splits": "none"}, MANY, 0),
    ({"splits": (1,)}, MANY, 0),
    ({"rho": 1.0}, MANY, 0),
    ({"join": False}, MANY, 0),
]


@pytest.mark.parametrize("params, n, wanted", RULE, ids=str)
def test_which_data_have_batches(params, n, wanted):
    given = {"batch_size": "auto", "splits": "all", "rho": "auto", "join": True} | params
    blocks = (Dense(4, penalty=L1(0.1)), Dense(1, penalty=L1(0.1)))
    problem = replace(lasso(), network=Network(blocks))
    assert resolve_batch(given, problem, n) == wanted
    if wanted == BATCH:
        assert resolve_batch(given, lasso(), n) == 0  # without hidden layers
        assert resolve_batch(given, replace(problem, allsum=Apart()), n) == 0
        other = Network((Dense(4, penalty=Nuclear(0.1)), blocks[1]))
        assert resolve_batch(given, replace(problem, network=other), n) == 0
    elif wanted:
        with pytest.raises(ValueError, match="batch_size needs all rows in memory"):
            resolve_batch(given, replace(problem, allsum=Apart()), n)


def test_many_rows_begin_with_batches(monkeypatch, moons):
    monkeypatch.setattr(_resolve, "MANY", 600)
    monkeypatch.setattr(_resolve, "BATCH", 64)
    model = network(batch_size="auto").fit(*moons)
    assert model.history_["phase"][0] == "batch"
