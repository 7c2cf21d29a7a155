"""Traced programs, kept on disk beside the compiled ones.

JAX compiles a program once and finds it on disk later, but every process traces it again to know which: most
of a first fit. Here the trace is kept too, as StableHLO, which is data. Its name is a digest of all that
tracing depends on: the code of this package, versions, settings of JAX, shapes, and the classes and static
fields of what is given. What has classes or static fields that are not known here is traced as ever.
"""

import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

from deepprox.cache import Sealed
from deepprox.runtime import kept_programs

CODE = ".", "blocks", "joining", "losses", "penalties", "splitting", "spreading"  # folders of what is traced
BEGAN = time.time()
AS_EVER = "jax_disable_jit", "jax_debug_nans", "jax_debug_infs"  # settings that look at single operations


class Unknown(Exception):
    """Something that a name on disk cannot stand for."""


def jit(function: Callable, static_argnames: tuple[str, ...] = ()) -> Callable:
    """``jax.jit``, but for a program that any process has traced before: its trace is read from disk."""
    signature = inspect.signature(function)

    @wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        static = {name: given.pop(name) for name in static_argnames if name in given}
        leaves, tree = jax.tree.flatten(given)
        kept = _kept()
        try:
            name = _name(function, static, tree, leaves) if kept else None
        except Unknown:
            name = None
        if kept is None or name is None:
            return function(*args, **kwargs)
        of_arrays = lambda *rows: function(**jax.tree.unflatten(tree, rows), **static)  # noqa: E731
        program = _read(kept, name) or _trace(kept, name, of_arrays, leaves)
        return program(leaves)

    return jax.jit(traced, static_argnames=static_argnames)


def _kept() -> Sealed | None:
    """Where traces are kept: with compiled programs, if these are of one processor and need no mesh."""
    kept = kept_programs()
    plain = jax.default_backend() == "cpu" and jax.sharding.get_abstract_mesh().empty
    watched = any(getattr(jax.config, name) for name in AS_EVER)
    if not plain or watched or not _code() or find_spec("flatbuffers") is None:
        return None
    return kept


def _name(function: Callable, static: dict[str, Any], tree: Any, leaves: list[Any]) -> str:
    """A digest of all that the trace depends on."""
    settings = {k: repr(getattr(jax.config, k, v)) for k, v in jax.config.values.items() if "cache" not in k}
    types = [jax.typeof(leaf) for leaf in leaves]
    arrays = [(t.shape, t.dtype.name, t.weak_type) for t in types]
    facts = _code(), settings, _told(function), _told(static), [*_nodes(tree)], arrays
    return "trace-" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@cache
def _code() -> str:
    """A digest of the code that is traced, and of what it is traced with.

    Empty where it cannot be read, or where a file has changed since this process began to import it: then it
    is not what will be traced.
    """
    here = Path(__file__).parent
    files = sorted(path for folder in CODE for path in (here / folder).glob("*.py"))
    changed = [max(path.stat().st_mtime, path.stat().st_ctime) for path in files]
    if max(changed, default=BEGAN) >= BEGAN:
        return ""
    versions = jax.__version__, jaxlib.__version__, np.__version__, sys.version
    digest = hashlib.sha256(repr(versions).encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _nodes(tree: Any) -> Iterator[Any]:
    """The classes of a tree and their static fields, from the root to the leaves."""
    node = tree.node_data()
    yield None if node is None else [_told(part) for part in node]
    for child in tree.children():
        yield from _nodes(child)


def _told(thing: Any) -> Any:
    """A class or a static field in words that mean the same in every process."""
    if thing is None or isinstance(thing, bool | int | float | str):
        return [type(thing).__name__, repr(thing)]
    if isinstance(thing, tuple | list):
        return [_told(type(thing)), *map(_told, thing)]
    if isinstance(thing, dict):
        return [_told([*item]) for item in thing.items()]
    named = thing if inspect.isfunction(thing) or isinstance(thing, type) else type(thing)
    package = named.__module__.split(".")[0]
    if package != "deepprox" and not (package == "builtins" and named is thing):
        raise Unknown(repr(thing))
    if named is not thing and vars(thing):
        raise Unknown(repr(thing))
    return [named.__module__, named.__qualname__, named is thing]


def _trace(kept: Sealed, name: str, function: Callable, leaves: list[Any]) -> Callable:
    """The program of a function of arrays, and the same on disk."""
    from jax import export

    shapes = []

    def flat(*rows: Any) -> list[Any]:
        out: list[Any] = []
        shapes.append(_shape(function(*rows), out))
        return out

    arrays = [jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak_type) for t in map(jax.typeof, leaves)]
    exported = export.export(jax.jit(flat))(*arrays)
    kept.write(name, json.dumps(shapes[0]).encode() + b"\n" + exported.serialize())
    return _program(shapes[0], exported)


def _read(kept: Sealed, name: str) -> Callable | None:
    """The program on disk, if there is one and it is whole."""
    from jax import export

    body = kept.read(name)
    if body is None:
        return None
    shape, _, program = body.partition(b"\n")
    kinds = json.loads(shape)
    return _program(kinds, export.deserialize(bytearray(program))) if _ours(kinds) else None


def _program(shape: Any, exported: Any) -> Callable:
    return lambda leaves: _shaped(shape, iter(exported.call(*leaves)))


def _shape(out: Any, leaves: list[Any]) -> Any:
    """The tuples and records of a result by name, and its arrays, which go to ``leaves``."""
    if is_dataclass(out):
        parts = [getattr(out, field.name) for field in fields(out)]
    elif isinstance(out, tuple):
        parts = [*out]
    else:
        leaves.append(out)
        return None
    return [type(out).__module__, type(out).__qualname__, [_shape(part, leaves) for part in parts]]


def _ours(shape: Any) -> bool:
    """Whether what a file names is of this package: it names nothing else to be imported."""
    if shape is None:
        return True
    module, name, parts = shape
    known = module.split(".")[0] == "deepprox" or (module, name) == ("builtins", "tuple")
    return known and all(map(_ours, parts))


def _shaped(shape: Any, leaves: Iterator[Any]) -> Any:
    """The result that has this shape."""
    if shape is None:
        return next(leaves)
    module, name, parts = shape
    kind = getattr(import_module(module), name)
    made = [_shaped(part, leaves) for part in parts]
    return tuple(made) if kind is tuple else kind(*made)
