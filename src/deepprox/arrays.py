"""The functions that formulas are made of: NumPy's for arrays of NumPy, JAX's for all others.

A formula that takes them from ``namespace(z)`` can be differentiated and compiled, and it predicts without
JAX: at once, in any process.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.special import expit, ndtr


def namespace(z: Any) -> Any:
    """Where a formula of ``z`` finds its functions."""
    return _NUMPY if isinstance(z, np.ndarray) else _JAX


def answers_numpy(*words: Any) -> bool:
    """Whether formulas of these words give NumPy for NumPy: those of this package do, by the laws."""
    return all(_ours(type(word).__module__) for word in words)


@cache
def _ours(module: str) -> bool:
    return module.split(".")[0] == "deepprox"


def as_taken(array: Any, *words: Any) -> Any:
    """A NumPy array as these words take it: a user's own may need JAX's."""
    return array if answers_numpy(*words) else jnp.asarray(array)


def _softmax(z: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _logsumexp(z: np.ndarray, axis: int) -> np.ndarray:
    top = z.max(axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    return np.log(np.exp(z - top).sum(axis)) + top.squeeze(axis)


_SHARED = (
    "abs",
    "asarray",
    "clip",
    "concatenate",
    "exp",
    "expm1",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "ones_like",
    "sign",
    "sin",
    "sqrt",
    "tanh",
    "where",
    "zeros_like",
)
_NUMPY = SimpleNamespace(
    **{name: getattr(np, name) for name in _SHARED},
    sigmoid=expit,
    softplus=lambda z: np.logaddexp(z, 0),
    silu=lambda z: z * expit(z),
    gelu=lambda z: z * ndtr(z),
    softmax=_softmax,
    logsumexp=_logsumexp,
    stop_gradient=lambda z: z,
)
_JAX = SimpleNamespace(
    **{name: getattr(jnp, name) for name in _SHARED},
    sigmoid=jax.nn.sigmoid,
    softplus=jax.nn.softplus,
    silu=jax.nn.silu,
    gelu=lambda z: jax.nn.gelu(z, approximate=False),
    softmax=jax.nn.softmax,
    logsumexp=jax.nn.logsumexp,
    stop_gradient=lax.stop_gradient,
)
