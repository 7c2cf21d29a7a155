"""Blocks: one linear map, its adjoint, a majoriser, and weights that come and go without changing it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deepprox import links, losses, penalties
from deepprox.blocks import Block, Dense
from deepprox.joining.live import canonical, live_part
from deepprox.problem import Network, Problem
from deepprox.pruned import prune
from deepprox.solve import Options, initial, solve
from deepprox.splitting import admm, state
from deepprox.splitting.w_step import w_steps
from deepprox.splitting.z_step import z_step
from deepprox.struct import replace
from rows import BLOCKS, Table, Window

each_block = pytest.mark.parametrize("row", BLOCKS, ids=str)
each_table = pytest.mark.parametrize("block", [Table(4), Window(2), Window(3, stride=2)], ids=str)


def drawn(row, n=7):
    """Weights of a block, something to read, and the map written with loops over its table."""
    rng = np.random.default_rng(0)
    W, reads = rng.normal(size=row.block.shape(row.n_in)), rng.normal(size=(n, row.n_in))
    at = row.block.columns(row.n_in)
    z = np.empty((n, len(at), row.block.size))
    for i, p, u in np.ndindex(z.shape):
        z[i, p, u] = W[u, 0] + sum(W[u, 1 + k] * reads[i, j] for k, j in enumerate(at[p]) if j >= 0)
    return W, reads, z.reshape(n, -1)


def the_map(row, W):
    """The matrix ``A`` of what is read, a row for every number that the block gives."""
    zero = jnp.zeros((1, row.n_in))
    return np.asarray(jax.jacobian(lambda a: row.block.linear(W, a)[0])(zero))[:, 0]


@each_block
def test_it_is_the_map_that_its_table_says(row):
    W, reads, z = drawn(row)
    np.testing.assert_allclose(row.block.linear(W, reads), z, atol=1e-12)
    F = np.asarray(row.block.features(reads))
    np.testing.assert_allclose((F @ W.T).reshape(len(reads), -1), z, atol=1e-12)
    assert z.shape[1] == row.block.numbers(row.n_in)
    assert row.block.init(np.random.default_rng(0), row.n_in).shape == W.shape


@each_block
def test_back_is_the_adjoint_and_the_bound_a_majoriser(row):
    W = drawn(row)[0]
    A, r = the_map(row, W), np.random.default_rng(1).normal(size=(7, row.block.numbers(row.n_in)))
    np.testing.assert_allclose(row.block.back(W, r, row.n_in), r @ A, atol=1e-12)
    bound = np.diag(row.block.bound(W, row.n_in))
    assert np.linalg.eigvalsh(bound - A.T @ A).min() > -1e-12


@each_block
@pytest.mark.parametrize("n_inputs", [0, 2])
def test_facing_is_the_gradient_of_what_it_misses(row, n_inputs):
    W, reads, _ = drawn(row)
    a, inputs = reads[:, : row.n_in - n_inputs], reads[:, row.n_in - n_inputs :] if n_inputs else None
    target = np.random.default_rng(2).normal(size=(7, row.block.numbers(row.n_in)))
    facing = row.block.facing(W, target, a.shape[1], inputs)
    A = the_map(row, W)[:, : a.shape[1]]
    np.testing.assert_allclose(facing.down(a), (target - row.block.linear(W, reads)) @ A, atol=1e-12)
    assert np.linalg.eigvalsh(np.diag(facing.bound) - A.T @ A).min() > -1e-12


@each_block
def test_what_is_constant_goes_into_the_biases_and_what_is_left_out_is_not_read(row):
    W, reads, _ = drawn(row)
    constant = np.arange(row.n_in) % 2 == 0
    reads[:, constant] = 0.7
    after = row.block.absorbed(W, np.where(constant, 0.7, np.nan))
    np.testing.assert_allclose(row.block.linear(after, reads), row.block.linear(W, reads), atol=1e-12)
    gone = row.block.without(W, constant)
    assert not (row.block.used(gone) & ~row.block.used(W)).any()
    moved = reads + np.where(row.block.used(gone), 0, 1.0)
    np.testing.assert_allclose(row.block.linear(gone, moved), row.block.linear(gone, reads), atol=1e-12)
    if type(row.block) is Dense:
        np.testing.assert_array_equal(row.block.used(after), ~constant)
        np.testing.assert_array_equal(row.block.used(gone), ~constant)


@each_block
def test_units_and_their_numbers(row):
    n, units = row.block.numbers(row.n_in), np.arange(row.block.size)
    np.testing.assert_array_equal(row.block.by_owner(row.block.by_place(units == 1, n)), units == 1)
    W = drawn(row)[0]
    row.block.slopes(W)[1] = 0
    row.block.biases(W)[:] = 3
    np.testing.assert_array_equal(row.block.reading(W), units != 1)
    assert (W[:, 0] == 3).all()


@each_block
def test_places_in_a_grid_and_back(row):
    W, units, numbers = drawn(row)[0], np.array([0]), np.arange(row.n_in)[1:]
    grid = row.block.grid(units, numbers, row.n_in)
    out = np.zeros_like(W)
    out[grid] = W[grid]
    kept = [0, *(1 + np.flatnonzero(np.isin(row.block.columns(row.n_in), numbers).any(0)))]
    np.testing.assert_array_equal(out[0, kept], W[0, kept])
    assert np.count_nonzero(out) == len(kept)


@each_block
def test_norms_are_of_all_weights_for_a_number(row):
    W = drawn(row)[0]
    at = row.block.columns(row.n_in)
    for number, norm in enumerate(row.block.norms(W)):
        columns = [k for k in range(at.shape[1]) if number in at[:, k]]
        np.testing.assert_allclose(norm, np.sqrt((W[:, 1:][:, columns] ** 2).sum()))


def posed(block, link=None, first=False, n=50, loss=None, penalty=None):
    """A network with a block before a dense one, or after, and weights to begin with."""
    rng = np.random.default_rng(0)
    link, penalty = link or links.Tanh(), penalty or penalties.L1(0.01)
    X = rng.normal(size=(n, 6))
    y = np.stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 0]], 1) + 0.1 * rng.normal(size=(n, 2))
    block = replace(block, link=link, penalty=penalty, n_in=6 if first else 5)
    hidden = [block] if first else [Dense(5, link, penalty), block]
    network = Network((*hidden, Dense(2, links.Identity(), penalty)))
    made = Problem(network, loss or losses.Squared(), X, y, np.full(n, 1 / n))
    return made, initial(made, 0)[0]


@each_table
@pytest.mark.parametrize("first", [False, True])
def test_the_split_steps_never_raise_the_lagrangian(block, first):
    made, W = posed(block, first=first)
    at = state.start(W, made.network.forward(W, made.X), (np.asarray(0.3),) * len(W))
    for _ in range(2):
        at = replace(at, Z=z_step(made, at, 2, 1))
        level = float(state.lagrangian(made, at))
        new, _ = w_steps(made, at, state.features(made, at.Z), list(at.Z), 5)
        assert float(state.lagrangian(made, replace(at, W=new))) <= level + 1e-12
        before = float(state.lagrangian(made, replace(at, W=new)))
        Z = z_step(made, replace(at, W=new), 2, 1)
        assert float(state.lagrangian(made, replace(at, W=new, Z=Z))) <= before + 1e-12
        at, _ = admm.sweep(made, at, admm.Pace(), admm.Inner())


@each_table
@pytest.mark.parametrize("first", [False, True])
def test_the_canonical_form_and_what_is_left_are_the_same_function(block, first):
    made, W = posed(block, first=first)
    W = [np.array(w) for w in W]
    W[0][0, 1:] = W[-2][1, 1:] = 0  # constants
    W[-1][:, 3] = 0
    eta = made.network.forward(W, made.X)[-1]
    form, live = canonical(made.network, tuple(W))
    np.testing.assert_allclose(made.network.forward(form, made.X)[-1], eta, atol=1e-12)
    assert sum(map(np.count_nonzero, form)) < sum(map(np.count_nonzero, W))
    assert live_part(made, live, (1,) * (len(W) - 1)).all_of_it
    left = prune(made.network, tuple(W))
    np.testing.assert_allclose(left.network.forward(left.W, made.X)[-1], eta, atol=1e-12)
    for w, mask in zip(form, (live.weights(made.network, l) for l in range(len(W)))):
        assert not w[~mask].any()


def test_a_table_of_one_place_has_the_fit_of_the_dense_block():
    dense, W = posed(Dense(4), first=True, penalty=penalties.L1(0.02))
    table, same = posed(Table(4), first=True, penalty=penalties.L1(0.02))
    for a, b in zip(W, same, strict=True):
        np.testing.assert_array_equal(a, b)
    found, by_table = (solve(made, [W], Options(tol=1e-8)) for made in (dense, table))
    assert found.status == by_table.status == "converged"
    np.testing.assert_allclose(by_table.objective, found.objective, rtol=1e-9)
    for a, b in zip(found.W, by_table.W, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
        np.testing.assert_array_equal(a != 0, b != 0)


@pytest.mark.parametrize("first, link", [(False, links.ReLU()), (True, links.Tanh())], ids=str)
def test_a_block_of_places_is_fitted_and_certified(first, link):
    made, W = posed(Window(2), link, first=first, n=80)
    found = solve(made, [W], Options(tol=1e-7))
    assert found.status == "converged" and found.certificate <= 1e-7
    assert found.objective < float(made.objective(W))


def test_blocks_of_places_say_how_many_numbers_they_read():
    with pytest.raises(ValueError, match="needs n_in"):
        Window(2).used(np.ones((2, 4)))


def test_the_last_block_is_dense():
    with pytest.raises(ValueError, match="last block"):
        Network((Dense(3), Window(2, n_in=3))).init(np.random.default_rng(0), 4)


def test_a_block_has_columns():
    with pytest.raises(TypeError, match="columns"):
        Block(3)
