"""Blocks that read the inputs beside the activations of the block before: every phase knows them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Lasso

from deepprox import links, losses, penalties
from deepprox.blocks import Dense
from deepprox.joining import kinks
from deepprox.joining.certificate import ravel, unravel
from deepprox.joining.hessian import hessian
from deepprox.joining.live import canonical, live_part
from deepprox.problem import Network
from deepprox.pruned import prune
from deepprox.solve import Options, initial, solve
from deepprox.splitting import admm, state
from deepprox.splitting.z_step import z_step
from deepprox.struct import replace
from stages.problems import problem

SKIPS = [(False, True), (False, True, True), (False, True, False)]  # which blocks read the inputs too


def skipping(which, link=None, alpha=0.01, **shape):
    """A problem whose blocks read the inputs beside the block before where ``which`` says so."""
    posed, _ = problem(link, penalties.L1(alpha), hidden=(5, 4)[: len(which) - 1], **shape)
    reads = {False: ("before",), True: ("before", "inputs")}
    blocks = [replace(block, reads=reads[skip]) for block, skip in zip(posed.network.blocks, which)]
    posed = replace(posed, network=Network(tuple(blocks)))
    return posed, initial(posed, 0)[0]


def by_hand(posed, W):
    """``eta``, block by block."""
    X = np.asarray(posed.X)
    at = X
    for l, (block, w) in enumerate(zip(posed.network.blocks, W)):
        at = np.hstack([at, X]) if l and "inputs" in block.reads else at
        z = at @ w[:, 1:].T + w[:, 0]
        at = np.asarray(block.link(z))
    return z


@pytest.mark.parametrize("which", SKIPS, ids=str)
def test_the_forward_pass_the_objective_and_its_gradient(which):
    posed, W = skipping(which, loss=losses.Squared())
    eta = by_hand(posed, W)
    assert [w.shape for w in W] == posed.network.shapes(4)
    np.testing.assert_allclose(posed.network.forward(W, posed.X)[-1], eta, rtol=1e-12)
    loss = ((eta - posed.y) ** 2).sum() / 2 / len(eta)
    penalty = sum(0.01 * np.abs(w[:, 1:]).sum() for w in W)
    np.testing.assert_allclose(float(posed.objective(W)), loss + penalty, rtol=1e-12)
    gradient = posed.loss_and_gradient(W)[1]
    w, g, h = ravel(W), ravel(gradient), 1e-6
    for j in np.random.default_rng(0).permutation(w.size)[:20]:
        sides = [unravel(w + h * side * (np.arange(w.size) == j), W) for side in (1, -1)]
        slope = (float(posed.mean_loss(sides[0])) - float(posed.mean_loss(sides[1]))) / (2 * h)
        np.testing.assert_allclose(g[j], slope, atol=1e-8)


@pytest.mark.parametrize("link", [links.Tanh(), links.ReLU()], ids=str)
@pytest.mark.parametrize("which", SKIPS, ids=str)
def test_they_are_fitted_and_certified(which, link):
    posed, W = skipping(which, link, n=80)
    found = solve(posed, [W], Options(tol=1e-7))
    assert found.status == "converged" and found.certificate <= 1e-7
    np.testing.assert_allclose(found.loss, float(posed.mean_loss(found.W)), rtol=1e-12)
    straight = solve(posed, [W], Options(tol=1e-7, sweeps=0))
    assert straight.status == "converged"


def test_an_empty_hidden_block_leaves_the_lasso():
    posed, _ = skipping((False, True), alpha=0.05, loss=losses.Squared(), n=80, k=1)
    hidden, last = posed.network.blocks
    posed = replace(posed, network=Network((replace(hidden, penalty=penalties.L1(5.0)), last)))
    found = solve(posed, [initial(posed, 0)[0]], Options(tol=1e-9))
    assert not found.live.reads[1].any()
    lasso = Lasso(alpha=0.05, tol=1e-12, max_iter=100_000).fit(posed.X, posed.y[:, 0])
    np.testing.assert_allclose(found.W[1][0, 6:], lasso.coef_, atol=1e-6)
    np.testing.assert_array_equal(found.live.inputs, lasso.coef_ != 0)
    small = prune(posed.network, found.W)
    assert [w.shape for w in small.W] == [(1, 1 + np.count_nonzero(lasso.coef_))]


@pytest.mark.parametrize("which", SKIPS, ids=str)
def test_sweeps_lower_the_residuals_and_the_split_steps_their_lagrangian(which):
    posed, W = skipping(which)
    at = state.start(W, posed.network.forward(W, posed.X), (np.asarray(0.3),) * len(W))
    for _ in range(3):
        Z = z_step(posed, at, 2, 1)
        below = state.lagrangian(posed, replace(at, Z=Z))
        assert float(below) <= float(state.lagrangian(posed, at)) + 1e-12
        at, info = admm.sweep(posed, at, admm.Pace(), admm.Inner())
    assert float(info.primal) < 1


@pytest.mark.parametrize("which", SKIPS, ids=str)
def test_the_hessian_is_that_of_automatic_differentiation(which):
    posed, W = skipping(which)
    live = np.arange(ravel(W).size)
    H = hessian(posed, W, kinks.no_slopes(posed), live).loss
    told = jax.hessian(lambda w: posed.mean_loss(unpack(w, W)))(jnp.asarray(ravel(W)))
    np.testing.assert_allclose(H, told, atol=1e-12)


def unpack(w, like):
    ends = np.cumsum([x.size for x in like])
    return tuple(part.reshape(x.shape) for part, x in zip(jnp.split(w, ends[:-1]), like))


@pytest.mark.parametrize("which", SKIPS, ids=str)
def test_the_canonical_form_the_live_part_and_what_is_left_are_the_same_function(which):
    posed, _ = problem(links.Tanh(), hidden=(40, 30)[: len(which) - 1], n=30)
    reads = {False: ("before",), True: ("before", "inputs")}
    blocks = [replace(block, reads=reads[skip]) for block, skip in zip(posed.network.blocks, which)]
    posed = replace(posed, network=Network(tuple(blocks)))
    W = [np.array(w) for w in initial(posed, 0)[0]]
    W[0][5:, 1:] = 0  # constants
    W[-1][:, 3] = 0  # a unit that nothing reads
    W[0][:, 2] = 0
    for w, wired in zip(W[1:], posed.network.wiring(4)[1:]):
        w[:, 1:][:, wired.inputs][:, 1:2] = 0  # an input that nothing reads
    eta = by_hand(posed, W)
    form, live = canonical(posed.network, tuple(W))
    np.testing.assert_allclose(by_hand(posed, form), eta, atol=1e-12)
    np.testing.assert_array_equal(live.inputs, [True, False, True, True])
    part = live_part(posed, live, (1,) * (len(which) - 1))
    assert not part.all_of_it
    small = part.take(form)
    np.testing.assert_allclose(by_hand(part.problem, small), eta, atol=1e-12)
    for back, w in zip(part.put(small), form):
        np.testing.assert_array_equal(back, w)
    np.testing.assert_array_equal(part.put_rows(part.take_rows(ravel(form))), ravel(form))
    left = prune(posed.network, tuple(W))
    np.testing.assert_allclose(left.network.forward(left.W, posed.X[:, left.places[0]])[-1], eta, atol=1e-12)
    gone = posed.network.without(form, 0, 0)
    assert not posed.network.used(gone)[1][0]


def test_a_segment_holds_no_block_that_reads_the_inputs():
    posed, W = skipping((False, True, True))
    with pytest.raises(ValueError, match="within a segment"):
        solve(posed, [W], Options(splits=(2,)))


def test_a_block_says_what_it_reads():
    with pytest.raises(ValueError, match="before"):
        Dense(3, reads=("inputs", "outputs"))


def test_a_pooled_network_that_ignores_its_inputs_keeps_its_constants():
    network = Network((Dense(4, links.Softmax(2)), Dense(2)))
    W = np.zeros((4, 3)), np.ones((2, 5))
    W[0][:, 0] = 1, 2, 3, 0
    left = prune(network, W)
    X = np.ones((2, 2))
    np.testing.assert_allclose(left.network.forward(left.W, X[:, :0])[-1], network.forward(W, X)[-1])
