"""Derivatives by the chain rule are those of passes through the network."""

import numpy as np
import pytest

from deepprox import links, losses, penalties
from deepprox.activities import ActivityGroup, ActivityL1
from deepprox.joining import bends, kinks
from deepprox.joining.hessian import loss_hessian
from deepprox.joining.products import columns
from deepprox.problem import Network
from deepprox.struct import replace
from stages.problems import problem

CASES = [
    (links.Tanh(), (4,), losses.Softmax(), None),
    (links.ReLU(), (5,), losses.Squared(), None),
    (links.Sigmoid(), (4, 3), losses.Softmax(), None),
    (links.ReLU(), (4, 3, 3), losses.Softmax(), None),
    (links.Tanh(), (4, 3), losses.Squared(), ActivityL1(0.1, "z")),
    (links.Softplus(), (4, 3), losses.Softmax(), ActivityGroup(0.1, "reads")),
]


@pytest.mark.parametrize("blurred", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_chain_rule_gives_what_passes_through_the_network_give(case, blurred):
    link, hidden, loss, activity = case
    posed, W = problem(link, penalties.L1(0.01), hidden=hidden, loss=loss)
    blocks = [replace(block, activity=activity) for block in posed.network.blocks[:-1]]
    posed = replace(posed, network=Network((*blocks, posed.network.blocks[-1])))
    rng = np.random.default_rng(0)
    W = tuple(w + 0.3 * rng.normal(size=w.shape) for w in W)
    W[0][1, 1:] = W[1][:, 2] = 0  # a unit that neither reads nor is read
    slopes = kinks.no_slopes(posed)
    if link.kinks:
        slopes.held[0][3, 2], slopes.slope[0][3, 2] = True, 0.3
    n_hidden, n_out = sum(hidden), len(W[-1])
    some = np.delete(np.arange(n_hidden), 1)
    pull = rng.normal(size=n_out)
    found = bends.bends(posed, W, slopes, some, pull, blurred)
    every = np.arange(n_hidden)
    told = bends._unit_derivatives(posed, W, slopes, every.astype(np.int32), pull, blurred)
    units = np.append(some, n_hidden + np.arange(n_out))
    np.testing.assert_allclose(found.g, np.asarray(told.g)[units], atol=1e-14)
    np.testing.assert_allclose(found.F, told.F, atol=1e-14)
    np.testing.assert_allclose(found.dF, np.asarray(told.dF)[some], atol=1e-14)
    np.testing.assert_allclose(found.dg_out, told.dg_out, atol=1e-14)
    block = np.repeat(np.arange(len(W)), [len(w) for w in W])[units]
    checked = 0
    for k, unit in enumerate(some):
        later = block >= block[k]
        np.testing.assert_allclose(found.dg[k, later], np.asarray(told.dg)[unit, units[later]], atol=1e-14)
        checked += np.abs(found.dg[k, later]).max() > 1e-6
    assert checked >= len(some) - 1  # a rectified unit may be off everywhere


@pytest.mark.parametrize("case", CASES, ids=str)
def test_products_give_what_the_units_give(case):
    link, hidden, loss, activity = case
    posed, W = problem(link, penalties.L1(0.01), hidden=hidden, loss=loss)
    blocks = [replace(block, activity=activity) for block in posed.network.blocks[:-1]]
    posed = replace(posed, network=Network((*blocks, posed.network.blocks[-1])))
    rng = np.random.default_rng(0)
    W = tuple(w + 0.3 * rng.normal(size=w.shape) for w in W)
    slopes = kinks.no_slopes(posed)
    if link.kinks:
        slopes.held[0][3, 2], slopes.slope[0][3, 2] = True, 0.3
    live = np.flatnonzero(rng.random(sum(w.size for w in W)) < 0.6)
    pull = rng.normal(size=len(W[-1]))
    told = loss_hessian(posed, W, slopes, live, pull)
    np.testing.assert_allclose(columns(posed, W, slopes, live, pull, False), told, atol=1e-12)
