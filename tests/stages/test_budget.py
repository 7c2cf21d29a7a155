"""At most so many weights or inputs: which stay."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepprox.blocks import Dense
from deepprox.budget import END, Budget
from deepprox.links import ReLU
from deepprox.network import Network
from deepprox.penalties import L1, Mask

SIZES = {"penalize_bias": False, "penalty": L1(0.1)}


def network_of(hidden=4, **settings):
    return Network((Dense(hidden, ReLU(), **SIZES | settings), Dense(2, **SIZES | settings)))


def kept(budget, network, W, share=1.0):
    single = tuple(jnp.asarray(w, jnp.float32) for w in W)
    return [np.asarray(w) for w in budget.kept(network, single, jnp.float32(share))]


def count(W):
    return sum(np.count_nonzero(w) for w in W)


@given(seed=st.integers(0, 2**31), most=st.integers(2, 40), penalised=st.booleans())
def test_the_largest_weights_stay(seed, most, penalised):
    network = network_of(penalize_bias=penalised)
    W = network.init(np.random.default_rng(seed), 5)
    left = kept(Budget(weights=most), network, W)
    assert count(left) <= most
    for w, v, block in zip(W, left, network.blocks):
        stays = v != 0
        np.testing.assert_array_equal(v[stays], w.astype(np.float32)[stays])
        if penalised:  # else a bias goes with its unit
            continue
        reads = stays[:, 1:].any(1)
        np.testing.assert_array_equal(stays[:, 0], np.ones(2, bool) if block is network.blocks[-1] else reads)
    sizes = np.concatenate([np.abs(w.astype(np.float32))[:, 0 if penalised else 1 :].ravel() for w in W])
    stay = np.concatenate([(v != 0)[:, 0 if penalised else 1 :].ravel() for v in left])
    if stay.any() and not stay.all():
        assert sizes[stay].min() > sizes[~stay].max()
        # the next largest, with the bias of its unit, would be one too many
        assert count(left) >= most - 1
    if penalised:
        assert count(left) == min(most, len(sizes))


@given(seed=st.integers(0, 2**31), most=st.integers(1, 5))
def test_the_largest_inputs_stay(seed, most):
    network = network_of()
    W = network.init(np.random.default_rng(seed), 5)
    left = kept(Budget(inputs=most), network, W)
    order = np.argsort(-np.linalg.norm(W[0][:, 1:].astype(np.float32), axis=0))
    expected = W[0].astype(np.float32).copy()
    expected[:, 1 + order[most:]] = 0
    np.testing.assert_array_equal(left[0], expected)
    np.testing.assert_array_equal(left[1], W[1].astype(np.float32))


def test_weights_leave_little_by_little():
    network = network_of(20)
    W = network.init(np.random.default_rng(0), 10)
    counts = [count(kept(Budget(weights=30), network, W, share)) for share in np.linspace(0, 1, 41)]
    assert counts[0] == count(W) and (np.diff(counts) <= 0).all()
    assert counts[round(40 * END)] == counts[-1] <= 30 < counts[round(40 * END) - 6]


def test_equal_weights_are_never_too_many():
    network = network_of()
    W = tuple(np.ones((rows, columns)) for rows, columns in network.shapes(5))
    assert count(kept(Budget(weights=10), network, W)) <= 10


@pytest.mark.parametrize("budget", [Budget(weights=12), Budget(inputs=2), Budget(weights=12, inputs=2)])
def test_what_is_left_out_is_held(budget):
    network = network_of()
    W = kept(budget, network, network.init(np.random.default_rng(1), 5))
    held = budget.held(network, W)
    away = [np.where(w == 0, 1.0, w) for w in W]
    away[0][:, 0] = W[0][:, 0]  # the bias of a unit that reads nothing is free, and the unit a constant
    assert all(isinstance(block.penalty, Mask) for block in held.blocks)
    assert held.penalty(tuple(map(jnp.asarray, W))) == network.penalty(tuple(map(jnp.asarray, W)))
    back = [np.asarray(v) for v in held.prox(tuple(map(jnp.asarray, away)), 1e-9)]
    assert budget.holds(network, back) and not budget.holds(network, away)
    live = np.asarray(W[0])[:, 1:].any(0)
    assert not back[0][:, 1:][:, ~live].any()
