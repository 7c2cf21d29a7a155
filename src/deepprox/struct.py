"""A frozen dataclass that is a pytree: fields are leaves, ``static()`` fields are structure.

What has a row for every observation is a ``rows()`` field of such a record and stands nowhere else: how
observations are spread, and what is about single ones, is read from there.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import jax
import numpy as np

C = TypeVar("C")


def static(**kwargs: Any) -> Any:
    """A field that shapes the program (a width, a name) and is compared, never traced."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


def rows(axis: int = -2, **kwargs: Any) -> Any:
    """A field of arrays with a row for every observation along ``axis``, counted from the last.

    Axes before it are starts side by side. An array without that axis is the same for all observations.
    """
    return dataclasses.field(metadata={"rows": axis}, **kwargs)


class RowsKey(NamedTuple):
    """The name of such a field on the way to a leaf."""

    name: str
    axis: int

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass_transform(frozen_default=True, field_specifiers=(static, rows, dataclasses.field))
def struct(cls: type[C]) -> type[C]:
    """Make ``cls`` a frozen dataclass and register it as a pytree."""
    frozen = dataclasses.dataclass(frozen=True)(cls)
    fields = dataclasses.fields(frozen)  # type: ignore[arg-type]
    meta = [f.name for f in fields if f.metadata.get("static")]
    data = [f.name for f in fields if not f.metadata.get("static")]
    along = {f.name: f.metadata["rows"] for f in fields if "rows" in f.metadata}
    keys = [RowsKey(name, along[name]) if name in along else jax.tree_util.GetAttrKey(name) for name in data]

    def flatten(record: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(record, name) for name in data], tuple(getattr(record, name) for name in meta)

    def flatten_with_keys(record: Any) -> tuple[list[Any], tuple[Any, ...]]:
        leaves, structure = flatten(record)
        return [*zip(keys, leaves, strict=True)], structure

    def unflatten(structure: tuple[Any, ...], leaves: Iterable[Any]) -> C:
        return frozen(**dict(zip(data, leaves)), **dict(zip(meta, structure)))

    # Not jax.tree_util.register_dataclass: its tree structures compare equal between classes with
    # the same number of leaves (jaxlib 0.10), and jit then runs the program of another class.
    jax.tree_util.register_pytree_with_keys(frozen, flatten_with_keys, unflatten, flatten)
    return frozen


def replace(record: C, **changes: Any) -> C:
    """Copy ``record`` with some fields changed."""
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]


def axis_of_rows(path: tuple[Any, ...], leaf: Any) -> int | None:
    """The axis of a leaf that runs over observations, by the fields on the way to it, or None."""
    axes = [key.axis for key in path if isinstance(key, RowsKey)]
    return np.ndim(leaf) + axes[-1] if axes and np.ndim(leaf) >= -axes[-1] else None


def change_rows(change: Callable[[Any, int], Any], tree: C) -> C:
    """``change(array, axis)`` in place of every array with a row for every observation."""

    def each(path: tuple[Any, ...], leaf: Any) -> Any:
        axis = axis_of_rows(path, leaf)
        return leaf if axis is None else change(leaf, axis)

    return jax.tree_util.tree_map_with_path(each, tree)
