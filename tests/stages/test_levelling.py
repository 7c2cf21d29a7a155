"""Steps that follow a valley of biases."""

import numpy as np
import pytest

from deepprox import links, losses
from deepprox.joining.certificate import ravel
from deepprox.joining.hessian import hessian
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import leap, look
from deepprox.problem import Network
from deepprox.struct import replace
from stages.problems import problem


@pytest.mark.parametrize("hidden", [(5,), (4, 3)], ids=str)
def test_levelling_is_of_second_order(hidden):
    posed, W = problem(links.Tanh(), hidden=hidden)
    rng = np.random.default_rng(0)
    way, off = [rng.normal(size=w.shape) for w in W], []
    for length in (1e-2, 1e-3):
        V = tuple(w + length * d for w, d in zip(W, way))
        after, _ = leap(posed, W, V, no_slopes(posed), 1.0)
        off.append(np.abs(ravel(after) - ravel(V)).max())
        for one, other in zip(after, V):
            np.testing.assert_array_equal(one[:, 1:], other[:, 1:])  # biases alone
        np.testing.assert_array_equal(after[0], V[0])
    assert 0 < off[1] < 0.02 * off[0]


def test_levelled_means_are_those_that_the_model_says():
    posed, W = problem(links.ReLU(), n=60)
    rng = np.random.default_rng(1)
    V = tuple(w + rng.normal(size=w.shape) for w in W)
    after, at = leap(posed, W, V, no_slopes(posed), 1.0)
    assert float(at.objective) == float(look(posed, after, no_slopes(posed), 1.0).objective)
    X, weight = np.asarray(posed.X), np.asarray(posed.weight)
    reads, there = (np.maximum(X @ w[0][:, 1:].T + w[0][:, 0], 0) for w in (W, V))
    told = reads @ V[1][:, 1:].T + V[1][:, 0] + (there - reads) @ W[1][:, 1:].T
    found = there @ after[1][:, 1:].T + after[1][:, 0]
    np.testing.assert_allclose(weight @ found, weight @ told, rtol=1e-12)


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Softmax()], ids=str)
@pytest.mark.parametrize(
    ("link", "hidden"), [(links.ReLU(), (5,)), (links.Tanh(), (5,)), (links.Tanh(), (4, 3))]
)
def test_the_hessian_of_levelled_steps_is_how_the_loss_bends_along_them(link, hidden, loss):
    """Of the last block's biases, which alone are free here; away from a solution it is not the plain one."""
    posed, W = problem(link, hidden=hidden, loss=loss, n=60)
    blocks = [replace(block, penalize_bias=True) for block in posed.network.blocks[:-1]]
    posed = replace(posed, network=Network((*blocks, posed.network.blocks[-1])))
    none, rng = no_slopes(posed), np.random.default_rng(3)
    W = tuple(w + 0.3 * rng.normal(size=w.shape) for w in W)
    way = [rng.normal(size=w.shape) for w in W]
    at, size = look(posed, W, none, 1.0), sum(w.size for w in W)

    def loss_after(length):
        V = tuple(w + length * d for w, d in zip(W, way))
        return float(leap(posed, W, V, none, 1.0)[1].loss)

    h = 1e-5 if link.kinks else 1e-3  # no pre-activation crosses its kink
    bends = (loss_after(h) + loss_after(-h) - 2 * loss_after(0.0)) / h**2
    d, live = ravel(way), np.arange(size)
    told, plain = (d @ hessian(posed, W, none, live, g).loss @ d for g in (at.gradient, None))
    np.testing.assert_allclose(told, bends, rtol=1e-3)
    assert abs(plain - bends) > 20 * abs(told - bends)


def test_penalised_biases_are_not_levelled():
    posed, W = problem(bias=True)
    V = tuple(2 * w for w in W)
    assert leap(posed, W, V, no_slopes(posed), 1.0)[0] is V
