"""Work on several processors: all of it done, as it would be here, and no error lost."""

import jax.numpy as jnp
import numpy as np
import pytest

from deepprox import runtime

MANY = runtime.WORTH


@pytest.fixture(params=[1, 2, 4])
def count(request, monkeypatch):
    monkeypatch.setattr(runtime, "processors", lambda: request.param)
    runtime._helpers.cache_clear()
    yield request.param
    runtime._helpers.cache_clear()


@pytest.mark.parametrize("products", [0, MANY])
def test_every_part_is_done_once(count, products):
    done = np.zeros(100, int)

    def work(parts):
        for k in parts:
            done[k] += 1

    runtime.share_out(work, 100, products)
    assert (done == 1).all()


@pytest.mark.parametrize("products", [0, MANY])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_are_beside_what_they_are_here(count, products, dtype):
    with runtime.precision(dtype):
        told = runtime.beside(lambda: jnp.asarray(np.ones(3, dtype)) / 3, products, dtype)
    assert told().dtype == dtype


def test_errors_beside_are_raised_here(count):
    def work(parts=()):
        for _ in parts:
            pass
        raise ArithmeticError("beside")

    with pytest.raises(ArithmeticError, match="beside"):
        runtime.beside(work, MANY, "float64")()
    with pytest.raises(ArithmeticError, match="beside"):
        runtime.share_out(work, 9, MANY)
