"""Networks of many inputs: solved on some of them, certified on all."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from deepprox import links, losses, penalties, screening
from deepprox.blocks import Dense
from deepprox.design import Sparse
from deepprox.joining.certificate import unravel
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.network import Network
from deepprox.problem import Problem
from deepprox.screening import largest, put, residuals, some, suits, taken, wider
from deepprox.solve import Options, initial, solve
from deepprox.struct import replace
from rows import PENALTIES

screens = {type(row.penalty): row for row in PENALTIES if row.penalty.screens and row.penalty.any_shape}
N, P = 60, 80


@pytest.fixture
def few(monkeypatch):
    """Tables of any width are wide; the solves of some inputs are counted."""
    sizes = []

    def counted(problem, inputs):
        sizes.append(len(inputs))
        return some(problem, inputs)

    monkeypatch.setattr(screening, "MANY", 16)
    monkeypatch.setattr(screening, "FIRST", 16)
    monkeypatch.setattr(screening, "some", counted)
    return sizes


def wide(penalty, link=None, seed=0):
    """A network on many inputs, of which three matter, dense and sparse."""
    rng = np.random.default_rng(seed)
    A = scipy.sparse.random_array((N, P), density=0.3, rng=rng, format="csc")
    mean, spread = np.asarray(A.mean(0)).ravel(), np.sqrt(np.asarray((A**2).mean(0)).ravel())
    design = Sparse.of(A, mean, spread, np.zeros(P, bool))
    X = design.array()
    y = np.tanh(X[:, :1]) + X[:, 1:2] * (X[:, 2:3] > 0) + 0.1 * rng.normal(size=(N, 1))
    network = Network((Dense(5, link or links.Tanh(), penalty), Dense(1, penalty=penalties.L1(0.01))))
    dense = Problem(network, losses.Squared(), X, y - y.mean(), np.full(N, 1 / N))
    return dense, replace(dense, X=design)


@pytest.mark.parametrize("row", screens.values(), ids=str)
def test_every_input_is_judged_as_the_certificate_of_all_judges_it(row, monkeypatch):
    monkeypatch.setattr(screening, "AT_ONCE", 8)
    posed, _ = wide(row.penalty)
    W = initial(posed, 0)[0]
    W = (np.asarray(posed.network.blocks[0].prox(W[0], 0.3)), W[1])
    at = look(posed, W, no_slopes(posed), 0.5)
    gradient, moved = (unravel(each, W)[0] for each in (at.gradient, at.moved))
    found = residuals(posed, W[0], Dense.slopes(gradient), 0.5)
    expected = np.abs(Dense.slopes(W[0]) - Dense.slopes(moved)).max(0) / 0.5
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "penalty", [penalties.L1(0.06), penalties.GroupL2(0.12, "input"), penalties.MCP(0.08)]
)
def test_what_is_solved_on_some_inputs_is_certified_on_all(penalty, few):
    dense, sparse = wide(penalty)
    starts = initial(dense, 0)
    found = solve(sparse, starts, Options())
    assert found.status == "converged" and few and max(few) < P
    at = look(dense, found.W, no_slopes(dense), 1.0)
    assert float(at.objective) == pytest.approx(found.objective, rel=1e-9)
    assert float(at.certificate) <= 1e-5 and found.certificate <= 1e-6
    assert found.W[0].shape == (5, 1 + P) and found.live.inputs.shape == (P,)
    assert 0 < found.live.inputs.sum() < P and found.memory is None
    again = solve(dense, starts, Options())
    assert again.objective == pytest.approx(found.objective, rel=1e-6)


def test_so_it_is_through_the_kinks_of_a_link(few):
    _, sparse = wide(penalties.L1(0.06), links.ReLU())
    found = solve(sparse, initial(sparse, 0), Options())
    assert found.status == "converged" and found.certificate <= 1e-6


def test_a_solution_goes_on_from_where_it_was(few):
    _, sparse = wide(penalties.L1(0.06))
    found = solve(sparse, initial(sparse, 0), Options())
    again = solve(sparse, [found.W], Options(sweeps=0, warm=True))
    assert again.status == "converged" and again.n_iter < found.n_iter / 4
    assert again.objective == pytest.approx(found.objective, rel=1e-9)


def test_without_the_time_for_it_a_fit_says_so(few):
    _, sparse = wide(penalties.L1(0.06))
    found = solve(sparse, initial(sparse, 0, 2), Options(max_iter=50))
    assert found.status == "max_iter" and found.certificate > 1e-6 and np.isfinite(found.objective)
    assert found.n_iter <= 50 and len(found.starts) == 2


def test_sparse_inputs_are_never_dense_as_a_whole(few, monkeypatch):
    _, sparse = wide(penalties.L1(0.06))
    before, widths = Sparse.array, []
    monkeypatch.setattr(Sparse, "array", lambda self: (widths.append(self.shape[1]), before(self))[1])
    solve(sparse, initial(sparse, 0), Options())
    assert widths == few and max(widths) < P


def test_who_is_asked():
    dense, _ = wide(penalties.L1(0.06))
    first, last = dense.network.blocks
    assert suits(dense.network, screening.MANY + 1) and not suits(dense.network, screening.MANY)
    for block in (
        replace(first, penalty=penalties.L2(0.1)),
        replace(first, penalty=penalties.GroupL2(0.1, "unit")),
        replace(first, penalty=penalties.GroupL2(0.1, (0,) * P)),
        replace(first, penalty=penalties.L1(np.full((1, P), 0.1))),
    ):
        assert not suits(Network((block, last)), 10**6)
    assert not suits(Network((last,)), 10**6)
    assert not suits(Network((first, replace(last, reads=("before", "inputs")))), 10**6)


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_some_inputs_are_those_that_must_be_and_the_largest(n, size, seed):
    rng = np.random.default_rng(seed)
    score, surely = rng.normal(size=n), rng.random(n) < 0.3
    chosen = largest(score, surely, size)
    assert len(chosen) == max(min(size, n), surely.sum()) and (np.diff(chosen) > 0).all()
    assert np.isin(np.flatnonzero(surely), chosen).all()
    others = ~np.isin(np.arange(n), chosen)
    free = chosen[~surely[chosen]]
    assert not others.any() or not free.size or score[free].min() >= score[others].max()


@given(st.integers(20, 200), st.integers(0, 2**32 - 1))
def test_the_next_inputs_hold_those_alive_and_the_worst(n, seed):
    rng = np.random.default_rng(seed)
    alive, residual = rng.random(n) < 0.1, rng.random(n) * (rng.random(n) < 0.3)
    inputs = np.flatnonzero(alive | (rng.random(n) < 0.2))
    residual[inputs] = 0.0
    after = wider(inputs, alive, residual, rng.normal(size=(3, n)), 1e-6)
    assert np.isin(np.flatnonzero(alive), after).all()
    assert len(after) >= min(len(inputs), n)
    assert residual.max() == 0 or residual[after].max() == residual.max()


@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_weights_of_some_inputs_come_back_to_their_places(n, seed):
    rng = np.random.default_rng(seed)
    first, inputs = Dense(4), np.flatnonzero(rng.random(n) < 0.5)
    W = rng.normal(size=(4, 1 + n)), rng.normal(size=(2, 5))
    own = taken(first, [W], inputs, n, 2.0)[0]
    np.testing.assert_array_equal(Dense.biases(own[0]), Dense.biases(W[0]))
    back = Dense.slopes(put(first, own, inputs, n)[0])
    gone = ~np.isin(np.arange(n), inputs)
    assert not back[:, gone].any()
    np.testing.assert_array_equal(back[:, ~gone], 2 * Dense.slopes(W[0])[:, ~gone])
