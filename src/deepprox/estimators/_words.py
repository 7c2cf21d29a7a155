"""Words of the vocabulary, a user's own class included, as what programs take: tried before a fit."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from deepprox.checks import shown
from deepprox.memory import need, of_word

VOCABULARY = ("deepprox.links", "deepprox.losses", "deepprox.penalties", "deepprox.activities")
_REHEARSED: set[tuple[Any, ...]] = set()  # what went well: to run it again would take longer than a small fit


def need_numbers(word: Any) -> None:
    """A sentence about a field of one of our own words that holds no finite number, and no array of them.

    It is asked before a word is used. Not when a word is made: JAX makes words with whatever it has to put in
    the place of numbers. What the fields of a user's class are is the user's; a field of ours that takes
    ``Any`` is the word's own to check.
    """
    for field in fields(word) if _is_ours(word) else ():
        value = getattr(word, field.name)
        if is_dataclass(value):
            need_numbers(value)
        need(of_word(np.size(value) if isinstance(value, np.ndarray | jax.Array) else 1, field.name))
        given = field.metadata.get("static") or field.type is Any or (value is None and field.default is None)
        if not given and not _are_numbers(value, finite=field.name not in getattr(word, "endless", ())):
            raise ValueError(
                f"{field.name} of {type(word).__name__} must be a finite number or a NumPy array of them, "
                f"got {shown(value)}."
            )


def need_strength(word: Any, noun: str) -> None:
    """A sentence about a strength below zero."""
    strength = np.asarray(getattr(word, "alpha", 0.0))
    if strength.dtype.kind in "biuf" and not np.all(strength >= 0):
        raise ValueError(f"The strength of {noun} must be at least 0, got {shown(word)}.")


def _are_numbers(value: Any, finite: bool) -> bool:
    if not isinstance(value, Real | np.ndarray | np.generic | jax.Array):
        return False
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return False
    array = np.asarray(value)
    if array.dtype.kind not in ("biuf" if array.ndim else "iuf"):
        return False
    return bool((np.isfinite(array) if finite else ~np.isnan(array)).all())


def as_arrays(word: Any, dtype: np.dtype) -> Any:
    """``word`` with its numbers as arrays of ``dtype``: a new strength then compiles nothing."""
    leaves = jax.tree.leaves(word)
    if len(leaves) == 1 and leaves[0] is word:
        _register(type(word))
        leaves = jax.tree.leaves(word)
    if any(np.asarray(leaf).dtype.kind not in "biuf" for leaf in leaves):
        raise TypeError(f"A field of {shown(word)} is not a number: mark it with deepprox.struct.static().")
    with np.errstate(over="ignore"):
        arrays = [np.asarray(leaf, dtype) for leaf in leaves]
    if any((np.isinf(array) > np.isinf(leaf)).any() for array, leaf in zip(arrays, leaves, strict=True)):
        raise ValueError(f"A number of {shown(word)} is too large for {dtype}: take a smaller one.")
    return jax.tree.unflatten(jax.tree.structure(word), arrays)


def example(*shape: int, dtype: Any) -> jax.ShapeDtypeStruct:
    """An array of this shape without its numbers."""
    make: Any = jax.ShapeDtypeStruct  # JAX has no types for it
    made: jax.ShapeDtypeStruct = make(shape, dtype)
    return made


def rehearse(
    word: Any, part: str, function: Callable[..., Any], example: jax.ShapeDtypeStruct, wanted: tuple[int, ...]
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
            f"{shown(word)} cannot take an array of shape {example.shape}: {type(error).__name__}: "
            f"{' '.join(str(error).split())}"
        ) from error
    if shape != wanted:
        raise ValueError(
            f"{shown(word)} returns shape {shape} for an array of shape {example.shape}, where {wanted} is "
            f"needed."
        )
    if _hashable(known):
        _REHEARSED.add(known)


def _fits_every_shape(word: Any, leaves: list[Any]) -> bool:
    """Whether it is one of our own words, with single numbers and nothing else to it."""
    if not _is_ours(word):
        return False
    return not any(np.ndim(leaf) for leaf in leaves) and not any(f.metadata for f in fields(word))


def _is_ours(word: Any) -> bool:
    return type(word).__module__.startswith(VOCABULARY)


def _hashable(key: tuple[Any, ...]) -> bool:
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
