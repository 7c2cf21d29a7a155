"""Words of the vocabulary, a user's own class included, as what programs take: tried before a fit."""

from collections.abc import Callable
from dataclasses import fields
from numbers import Real
from typing import Any

import jax
import numpy as np

_REHEARSED: set[tuple] = set()  # what went well: to run it again would take longer than a small fit


def as_arrays(word: Any, dtype: np.dtype) -> Any:
    """``word`` with its numbers as arrays of ``dtype``: a new strength then compiles nothing."""
    leaves = jax.tree.leaves(word)
    if len(leaves) == 1 and leaves[0] is word:
        _register(type(word))
        leaves = jax.tree.leaves(word)
    if any(np.asarray(leaf).dtype.kind not in "biuf" for leaf in leaves):
        raise TypeError(f"A field of {word!r} is not a number: mark it with deepprox.struct.static().")
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype), word)


def rehearse(
    word: Any, part: str, function: Callable, example: jax.ShapeDtypeStruct, wanted: tuple[int, ...]
) -> None:
    """Run a function of a word on shapes alone, so that a mistake in it is told by name."""
    leaves, structure = jax.tree.flatten(word)
    if _fits_every_shape(word, leaves):
        return
    known = part, structure, tuple(np.shape(leaf) for leaf in leaves), example, wanted
    if _hashable(known) and known in _REHEARSED:
        return
    try:
        shape = jax.eval_shape(function, example).shape
    except Exception as error:
        raise ValueError(
            f"{word!r} cannot take an array of shape {example.shape}: {type(error).__name__}: {error}"
        ) from error
    if shape != wanted:
        raise ValueError(
            f"{word!r} returns shape {shape} for an array of shape {example.shape}, where {wanted} is needed."
        )
    if _hashable(known):
        _REHEARSED.add(known)


def _fits_every_shape(word: Any, leaves: list[Any]) -> bool:
    """Whether it is one of our own words, with single numbers and nothing else to it."""
    if not type(word).__module__.startswith(("deepprox.links", "deepprox.losses", "deepprox.penalties")):
        return False
    return not any(np.ndim(leaf) for leaf in leaves) and not any(f.metadata for f in fields(word))


def _hashable(key: tuple) -> bool:
    """Whether all of it can be looked up: fields of a user's class may be anything."""
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _register(cls: type) -> None:
    """Make a plain user class a pytree: its numbers are leaves, everything else is structure."""

    def flatten(word: Any) -> tuple[list[Any], tuple[Any, ...]]:
        fields = dict(vars(word))
        # JAX also builds words with placeholders for numbers: such a word remembers its leaves
        names = fields.pop("_leaves", None) or tuple(k for k, v in fields.items() if _is_number(v))
        return [fields.pop(name) for name in names], (names, tuple(fields.items()))

    def unflatten(structure: tuple[Any, ...], leaves: Any) -> Any:
        names, rest = structure
        word: Any = object.__new__(cls)
        vars(word).update(zip(names, leaves), _leaves=names, **dict(rest))
        return word

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.ndarray | jax.Array) and not isinstance(value, bool)
