"""NumPy in, NumPy out, and the same numbers as from JAX: what predictions rest on."""

import jax
import numpy as np
import pytest
from hypothesis import given

from deepprox.arrays import answers_numpy
from numerics import seeds, wide
from rows import GROUP_LINKS, LINKS, LOSSES, PENALTIES

SHAPE = (20, 6)
FORMULAS = [
    *(pytest.param(row.link, lambda link, z, _: link(z), None, id=f"{row}") for row in LINKS + GROUP_LINKS),
    *(pytest.param(row.loss, lambda loss, z, _: loss.mean(z), None, id=f"mean of {row}") for row in LOSSES),
    *(
        pytest.param(row.loss, lambda loss, z, y: loss.value(z, y), row.response, id=f"value of {row}")
        for row in LOSSES
    ),
]
for row in LOSSES:
    if row.loss.by_formula:
        FORMULAS += [
            pytest.param(
                row.loss,
                lambda loss, z, y, k=k: loss.derivatives(z, y)[k],
                row.response,
                id=f"{k + 1}. of {row}",
            )
            for k in range(2)
        ]
for row in PENALTIES:
    if row.penalty.by_formula and row.penalty.any_shape:
        each = {
            "prox": lambda penalty, z, _: penalty.prox(z, 0.7),
            "1.": lambda penalty, z, _: penalty.derivatives(z)[0],
            "2.": lambda penalty, z, _: penalty.derivatives(z)[1],
        }
        FORMULAS += [pytest.param(row.penalty, f, None, id=f"{name} of {row}") for name, f in each.items()]
every = pytest.mark.parametrize("word, formula, response", FORMULAS)
in_both = pytest.mark.parametrize("dtype", ["float32", "float64"])


def as_fitted(word, dtype):
    """The word with numbers of one precision, as an estimator keeps it."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype), word)


def by_jax(formula, word, z, y):
    """As compiled programs have it; one for all arrays of a word."""
    return np.asarray(jax.jit(formula)(word, z, y))


@every
@in_both
@given(rng=seeds)
def test_numpy_and_jax_agree_to_rounding(word, formula, response, dtype, rng):
    word, z = as_fitted(word, dtype), wide(rng, SHAPE, zeros=0.1).astype(dtype)
    y = None if response is None else response(rng, SHAPE).astype(dtype)
    ours, theirs = formula(word, z, y), by_jax(formula, word, z, y)
    assert type(ours) is np.ndarray and ours.dtype == theirs.dtype == dtype
    digits = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(ours, theirs, rtol=digits, atol=digits)


@every
@in_both
def test_they_agree_where_numbers_end(word, formula, response, dtype):
    most = np.finfo(dtype).max
    ends = np.array([-most / 100, -np.sqrt(most), -0.0, 0.0, np.sqrt(most), most / 100], dtype)
    z, word = np.resize([ends, -ends, np.roll(ends, 1), ends**0], SHAPE), as_fitted(word, dtype)
    y = None if response is None else response(np.random.default_rng(0), SHAPE).astype(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(formula(word, z, y), by_jax(formula, word, z, y), rtol=1e-5, atol=1e-30)


def test_words_of_others_are_not_taken_for_ours():
    class Mine(type(LINKS[1].link)):
        pass

    assert answers_numpy(LINKS[0].link, LOSSES[0].loss) and not answers_numpy(LINKS[0].link, Mine())
