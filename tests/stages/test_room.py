"""The inputs that a solve sees: columns of zeros beside the user's change nothing but the shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepprox import DeepClassifier, DeepRegressor, links, losses, penalties, programs, runtime
from deepprox import room as room_
from deepprox.blocks import Dense
from deepprox.joining.certificate import unravel
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.problem import Network
from deepprox.room import room
from deepprox.runtime import bucket, lattice, shelf
from deepprox.solve import Options, initial, solve
from deepprox.struct import replace, struct
from rows import PENALTIES, Table
from stages.problems import problem

wide = [row for row in PENALTIES if row.penalty.wide and row.penalty.any_shape]
narrow = [row for row in PENALTIES if row not in wide]


@pytest.fixture
def unpadded(monkeypatch):
    """Switch zeros off."""
    return lambda: monkeypatch.setattr(room_, "lattice", lambda n: n)


def both(posed, unpadded, options):
    """The solutions with and without zeros."""
    starts = initial(posed, 0)
    assert not room(posed).all_of_it
    seen = solve(posed, starts, options)
    unpadded()
    assert room(posed).all_of_it
    return seen, solve(posed, starts, options)


@pytest.mark.parametrize("row", wide, ids=str)
def test_a_point_is_worth_what_it_is_without_zeros(row):
    posed, W = problem(penalty=row.penalty, p=5, n=30)
    W = (*W[:-1], np.where(np.abs(W[-1]) < 0.3, 0, W[-1]))
    W = tuple(np.asarray(block.prox(w, 1.0)) for block, w in zip(posed.network.blocks, W, strict=True))
    seen = room(posed)
    assert not seen.all_of_it
    there, here = (look(at, V, no_slopes(at), 0.5) for at, V in ((seen.problem, seen.put(W)), (posed, W)))
    for name in ("objective", "loss", "certificate"):
        assert float(getattr(there, name)) == pytest.approx(float(getattr(here, name)), rel=1e-12, abs=1e-14)
    for name in ("gradient", "moved", "penalty_gradient"):
        wider = unravel(getattr(there, name), seen.put(W))
        for a, b in zip(seen.take(wider), unravel(getattr(here, name), W), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)
        if name != "penalty_gradient":
            assert not wider[0][:, 6:].any()


@pytest.mark.parametrize("how", ["relu", "group", "deep", "beside", "batch"])
def test_a_solution_with_zeros_beside_its_inputs_is_the_solution(how, unpadded):
    options, link, penalty = Options(tol=1e-8, max_iter=600), links.Tanh(), penalties.L1(0.01)
    if how == "group":
        penalty = penalties.GroupL2(0.02, "input")
    hidden = {"deep": (6, 5)}.get(how, (6,))
    if how == "relu":
        link = links.ReLU()
    posed, _ = problem(link, penalty, hidden, losses.Squared(), p=9)
    if how == "beside":
        first, last = posed.network.blocks
        posed = replace(posed, network=Network((first, replace(last, reads=("before", "inputs")))))
    elif how == "batch":
        options = options._replace(batch=16, steps=100)
    seen, plain = both(posed, unpadded, options)
    assert seen.status == plain.status
    # draws of rows are in single precision
    loose = 1e3 if how == "batch" else 1.0
    assert seen.objective == pytest.approx(plain.objective, rel=1e-9 * loose)
    for a, b in zip(seen.W, plain.W, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * loose)
        np.testing.assert_array_equal(a == 0, b == 0)
    assert [mask.tolist() for mask in seen.live.reads] == [mask.tolist() for mask in plain.live.reads]
    for a, b in zip(seen.memory, plain.memory, strict=True):
        assert np.shape(a) == np.shape(b)


def test_what_was_learnt_of_the_curvature_serves_again(unpadded):
    posed, _ = problem(p=5, hidden=(6,), penalty=penalties.L1(0.02))
    first = solve(posed, initial(posed, 0), Options(tol=1e-9))
    nearby = replace(first, W=tuple(w * 1.001 for w in first.W))
    again = solve(posed, [nearby.W], Options(sweeps=0, warm=True, tol=1e-9), memory=first.memory)
    assert again.status == "converged" and again.n_iter < first.n_iter
    assert again.objective == pytest.approx(first.objective, rel=1e-9)


@struct
class Broad(penalties.Penalty):
    """A user's penalty that reads how many columns there are."""

    alpha: float = 0.01

    def value(self, w):
        return self.alpha * w.shape[1] * (w**2).sum()

    def prox(self, v, step):
        return v / (1 + 2 * step * self.alpha * v.shape[1])


@pytest.mark.parametrize("row", narrow, ids=str)
def test_weights_that_are_told_apart_get_no_zeros(row):
    posed, _ = problem(penalty=row.penalty, p=5)
    assert room(posed).all_of_it


def test_neither_does_what_a_user_made_nor_one_block():
    posed, _ = problem(p=5)
    first, last = posed.network.blocks
    for block in (
        replace(first, penalty=Broad()),
        replace(first, penalty=penalties.L1(np.full((1, 5), 0.1))),
        Table(5, links.Tanh(), penalties.L1(0.01), n_in=5),
    ):
        assert room(replace(posed, network=Network((block, last)))).all_of_it
    assert room(problem(hidden=(), p=5)[0]).all_of_it
    beside = replace(last, reads=("before", "inputs"), penalty=Broad())
    assert room(replace(posed, network=Network((first, beside)))).all_of_it
    assert not room(posed).all_of_it


def test_large_tables_get_no_zeros(monkeypatch):
    posed, _ = problem(p=5, n=40)
    monkeypatch.setattr(room_, "NUMBERS", 8 * 40)
    assert not room(posed).all_of_it
    monkeypatch.setattr(room_, "NUMBERS", 8 * 40 - 1)
    assert room(posed).all_of_it


@given(n=st.integers(1, 5000))
def test_sizes_hold_what_they_are_for_and_not_twice_as_much(n):
    assert n <= lattice(n) <= max(4, 2 * n - 1) and lattice(lattice(n)) == lattice(n)
    assert lattice(n) <= 1.5 * n or n <= 64
    assert n <= shelf(n, 3) <= max(64, 2 * n - 1)
    assert shelf(n, 10**6) == bucket(n)


@given(st.integers(1, 400), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_zeros_come_and_go_without_a_trace(p, size, seed):
    rng = np.random.default_rng(seed)
    network = Network((Dense(size), Dense(2, reads=("before", "inputs"))))
    seen = room(replace(problem(p=4)[0], network=network, X=rng.normal(size=(40, p))))
    W = network.init(rng, p)
    wide = seen.put(W)
    assert [w.shape for w in wide] == network.shapes(lattice(p))
    for w, v in zip(W, seen.take(wide), strict=True):
        np.testing.assert_array_equal(w, v)
    Z, there = network.forward(W, rng.normal(size=(7, p))), np.asarray(seen.problem.X)
    assert Z[0].shape == (7, size) and not there[:, p:].any()
    np.testing.assert_allclose(
        network.forward(wide, there)[-1], network.forward(W, there[:, :p])[-1], atol=1e-12
    )


def table(n, p, k=3):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, p))
    return X, (X[:, :k] + 0.5 * rng.gumbel(size=(n, k))).argmax(1)


@pytest.mark.parametrize("alpha, most", [(0.01, 0), ("auto", 1)])  # another strength may leave another width
def test_a_table_of_another_shape_compiles_nothing(alpha, most):
    told = []
    for n, p in ((130, 21), (150, 30), (250, 17)):
        before = len(programs.HERE.held)
        DeepClassifier((6,), alpha=alpha, random_state=0).fit(*table(n, p))
        told.append(len(programs.HERE.held) - before)
    assert max(told[1:]) <= most


def test_folds_compile_what_the_first_one_does():
    X, y = table(211, 12)
    told = []
    for k in range(5):
        rows, before = np.arange(len(X)) % 5 != k, len(programs.HERE.held)
        DeepClassifier((6,), random_state=0).fit(X[rows], y[rows])
        told.append(len(programs.HERE.held) - before)
    assert told[1:] == [0, 0, 0, 0]


def test_an_estimator_knows_its_own_inputs_alone(unpadded):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 7))
    X[:, 3] = 2.0  # tells nothing
    y = np.tanh(X[:, 0]) + X[:, 1]
    make = lambda **more: DeepRegressor((8,), link="tanh", alpha=0.02, random_state=0, **more)  # noqa: E731
    seen = make(warm_start=True).fit(X, y)
    assert seen.selected_features_.shape == (7,) and not seen.selected_features_[3]
    assert seen.coefs_[0].shape == (7, 8) and seen.fitted_.data[0].shape[1] == 7
    before = seen.objective_
    assert seen.fit(X, y).objective_ == pytest.approx(before, rel=1e-7)
    unpadded()
    plain = make().fit(X, y)
    assert plain.objective_ == pytest.approx(before, rel=1e-7)
    np.testing.assert_allclose(seen.predict(X), plain.predict(X), atol=1e-4)
    np.testing.assert_array_equal(seen.selected_features_, plain.selected_features_)


def test_rows_and_inputs_have_few_sizes():
    assert len({lattice(p) for p in range(1, 65)}) == 5
    assert len({shelf(n, 16) for n in range(1, 2049)}) == 6
    assert runtime.SMALL >= 2048 * 64
