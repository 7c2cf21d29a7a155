"""A frozen dataclass that is a pytree: fields are leaves, ``static()`` fields are structure."""

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar, dataclass_transform

import jax

C = TypeVar("C")


def static(**kwargs: Any) -> Any:
    """A field that shapes the program (a width, a name) and is compared, never traced."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def struct(cls: type[C]) -> type[C]:
    """Make ``cls`` a frozen dataclass and register it as a pytree."""
    frozen = dataclasses.dataclass(frozen=True)(cls)
    fields = dataclasses.fields(frozen)  # type: ignore[arg-type]
    meta = [f.name for f in fields if f.metadata.get("static")]
    data = [f.name for f in fields if not f.metadata.get("static")]

    def flatten(record: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(record, name) for name in data], tuple(getattr(record, name) for name in meta)

    def flatten_with_keys(record: Any) -> tuple[list[Any], tuple[Any, ...]]:
        leaves, structure = flatten(record)
        return [(jax.tree_util.GetAttrKey(name), leaf) for name, leaf in zip(data, leaves)], structure

    def unflatten(structure: tuple[Any, ...], leaves: Iterable[Any]) -> C:
        return frozen(**dict(zip(data, leaves)), **dict(zip(meta, structure)))

    # Not jax.tree_util.register_dataclass: its tree structures compare equal between classes with
    # the same number of leaves (jaxlib 0.10), and jit then runs the program of another class.
    jax.tree_util.register_pytree_with_keys(frozen, flatten_with_keys, unflatten, flatten)
    return frozen


def replace(record: C, **changes: Any) -> C:
    """Copy ``record`` with some fields changed."""
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]
