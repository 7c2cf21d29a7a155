"""What a solver asks of its inputs, sparse or not, is what the dense standardised matrix says."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from deepprox import memory
from deepprox.design import Sparse, Whole
from deepprox.estimators._standardize import scale_of

seeds = st.integers(0, 2**32 - 1)


def drawn(seed, n=12, p=7, share=0.4):
    """A matrix with zeros, one column that is constant, one that is empty, and uneven weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(3, 2, (n, p)) * (rng.random((n, p)) < share)
    X[:, 0], X[:, 1] = 2.0, 0.0
    weight = rng.random(n) + 0.1
    return rng, X, weight / weight.sum()


@settings(max_examples=30, deadline=None)
@given(seeds, st.booleans(), st.booleans(), st.sampled_from(["csr_matrix", "csc_array", "csr_array"]))
def test_sparse_inputs_are_the_dense_ones(seed, standardize, centre, kind):
    rng, X, weight = drawn(seed)
    given = getattr(scipy.sparse, kind)(X)
    scale, same = (
        scale_of(given, weight, standardize, centre=centre),
        scale_of(X, weight, standardize, centre=centre),
    )
    for one, other in zip(scale, same, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    dense, few = scale.standardize(X), np.array([5, 0, 3])
    w, d = rng.normal(size=(2, 7)), rng.normal(size=(12, 2))
    keep = rng.random(7) < 0.5
    for design in (Sparse.of(given, *scale), Whole(dense)):
        np.testing.assert_allclose(design.array(), dense, atol=1e-13)
        np.testing.assert_allclose(np.asarray(design, np.float32), dense.astype(np.float32), rtol=1e-6)
        np.testing.assert_allclose(design.columns(few), dense[:, few], atol=1e-13)
        np.testing.assert_allclose(
            design.take(few).forward(w[:, few]), dense[:, few] @ w[:, few].T, atol=1e-12
        )
        np.testing.assert_allclose(design.forward(w), dense @ w.T, atol=1e-12)
        np.testing.assert_allclose(design.gradient(d), d.T @ dense, atol=1e-12)
        np.testing.assert_allclose(design.squares(weight), weight @ dense**2, atol=1e-12)
        np.testing.assert_allclose(design.only(keep).array(), dense * keep, atol=1e-13)
        np.testing.assert_allclose(design.rows(few).array(), dense[few], atol=1e-13)
        assert (len(design), *design.shape) == (12, 12, 7)


def test_what_was_given_is_not_changed_and_not_copied_without_need():
    _, X, weight = drawn(0)
    given = scipy.sparse.csc_array(X)
    before = given.copy()
    Sparse.of(given, *scale_of(given, weight, True))
    assert (given != before).nnz == 0
    plain = Sparse.of(given, *scale_of(given, weight, False))
    assert np.shares_memory(plain.A.data, given.data)


def test_an_entry_that_is_stored_twice_is_a_sum():
    twice = scipy.sparse.csc_array(([1.0, 2.0, 4.0], [1, 1, 2], [0, 2, 3]), shape=(4, 2))
    scale = scale_of(twice, np.full(4, 0.25), True)
    np.testing.assert_allclose(Sparse.of(twice, *scale).array(), scale.standardize(twice.toarray()))
    assert twice.nnz == 3


def test_precision_stays():
    rng, X, weight = drawn(1)
    given = scipy.sparse.csr_array(X.astype(np.float32))
    design = Sparse.of(given, *scale_of(given, weight.astype(np.float32), True))
    d = rng.normal(size=(12, 1))
    assert {design.gradient(d).dtype, design.forward(np.ones((1, 7))).dtype, design.array().dtype} == {
        design.dtype
    }


def test_what_is_too_big_to_be_dense_says_so(monkeypatch):
    monkeypatch.setattr(memory, "_free", lambda: 2.0**30)
    wide = scipy.sparse.csc_array((10**5, 10**6))
    with pytest.raises(ValueError, match="100000 rows of 1000000 columns"):
        np.asarray(Sparse(wide, np.zeros(10**6)))
