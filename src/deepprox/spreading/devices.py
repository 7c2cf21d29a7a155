"""Observations over the devices of this process, and of others that ``jax.distributed`` connected.

A program runs under ``jax.shard_map`` over one axis of devices: each works on its own rows, and ``allsum`` is
``psum``. The ``rows()`` of records are cut along it; everything else is the same everywhere. On the host a
process sees its own rows, as NumPy.
"""

import inspect
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from threading import Lock
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import tree_map_with_path

from deepprox.spreading.contract import Spread, same
from deepprox.struct import axis_of_rows, replace

AXIS = "obs"

_LAUNCH = Lock()  # programs enter the queues of all devices in one order, or their sums would wait for ever


class Devices(Spread):
    """``psum`` over a row of devices; equal for equal devices, so that programs compile once."""

    def __init__(self, devices: Sequence[Any]) -> None:
        self.devices = tuple(devices)
        self.parts = len(self.devices)
        self._placed: dict[int, jax.Array] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Devices) and self.devices == other.devices

    def __hash__(self) -> int:
        return hash(self.devices)

    @cached_property
    def mesh(self) -> Mesh:
        """The devices as JAX wants them."""
        return Mesh(np.array(self.devices), (AXIS,))

    @cached_property
    def here(self) -> int:
        """How many of the devices are of this process; every process has as many."""
        counts = np.bincount([device.process_index for device in self.devices], minlength=jax.process_count())
        if counts.min() != counts.max():
            raise ValueError(
                f"Every process must have as many devices as the others, but they have {counts.tolist()}: "
                f"use devices='all'."
            )
        return int(counts[0])

    @property
    def rank(self) -> int:  # type: ignore[override]
        """The number of this process."""
        return jax.process_index()

    @property
    def world(self) -> int:  # type: ignore[override]
        """The number of processes."""
        return jax.process_count()

    def __call__(self, tree: Any) -> Any:
        """``psum`` in a program; on the host the sum over processes."""
        leaves, structure = jax.tree.flatten(tree)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            vector, apart = ravel_pytree(tree)  # one message: it is the wait that costs
            return apart(lax.psum(vector, AXIS))
        if self.world == 1:
            return tree
        return jax.tree.unflatten(structure, self._add_up([np.asarray(leaf) for leaf in leaves]))

    def _add_up(self, leaves: list[np.ndarray]) -> list[np.ndarray]:
        """The sum over processes: one vector, of few lengths, so that few programs compile."""
        ends = np.cumsum([leaf.size for leaf in leaves])
        room = 1 << int(ends[-1] - 1).bit_length()
        vector = np.zeros((self.here, room))
        vector[0, : ends[-1]] = np.concatenate([leaf.ravel() for leaf in leaves])
        with jax.enable_x64(True), _LAUNCH:
            total = np.asarray(_sum_of_rows(self, self._put(vector, 0)))[: ends[-1]]
        parts = np.split(total, ends[:-1])
        return [part.reshape(leaf.shape).astype(leaf.dtype) for part, leaf in zip(parts, leaves)]

    def compile(self, function: Callable, static: tuple[str, ...]) -> Callable:
        """The function on every device's rows."""
        signature = inspect.signature(function)

        @partial(jax.jit, static_argnames="shape")
        def run(given: dict[str, Any], shape: tuple) -> Any:
            def together(given: dict[str, Any]) -> Any:
                problem = replace(given["problem"], allsum=same)
                return function(**given | {"problem": problem}, **dict(shape))

            each = jax.shard_map(
                lambda given: function(**given, **dict(shape)),
                mesh=self.mesh,
                in_specs=(_specs(given),),
                out_specs=_specs(jax.eval_shape(together, given)),
                check_vma=False,  # gradients stay those of a device's own rows until they are added
            )
            return each(given)

        def call(*args: Any, **kwargs: Any) -> Any:
            given, shape = prepare(*args, **kwargs)
            with _LAUNCH:
                return run(given, shape)

        def prepare(*args: Any, **kwargs: Any) -> tuple[dict[str, Any], tuple]:
            bound = signature.bind(*args, **kwargs).arguments
            shape = tuple((name, value) for name, value in bound.items() if name in static)
            return self.place({k: v for k, v in bound.items() if k not in static}), shape

        call.lower = lambda *args, **kwargs: run.lower(*prepare(*args, **kwargs))  # type: ignore[attr-defined]
        return call

    def place(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a program, this process's rows on its devices; data once and for all."""

        def put(path: tuple, leaf: Any) -> Any:
            if isinstance(leaf, jax.Array) and isinstance(leaf.sharding, NamedSharding):
                return leaf
            axis = axis_of_rows(path, leaf)
            if axis is None:
                return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
            return self._once(leaf, axis) if path[0].key == "problem" else self._put(leaf, axis)

        return tree_map_with_path(put, given)

    def _once(self, array: Any, axis: int) -> jax.Array:
        """The array on the devices, for as long as it lives on the host."""
        key = id(array)
        if key not in self._placed:
            self._placed[key] = self._put(array, axis)
            weakref.finalize(array, self._placed.pop, key, None)
        return self._placed[key]

    def _put(self, array: Any, axis: int) -> jax.Array:
        array = np.asarray(array)
        if array.shape[axis] % self.here:
            raise ValueError(
                f"{array.shape[axis]} observations do not divide among {self.here} devices: pad them with "
                f"weight 0."
            )
        sharding = NamedSharding(self.mesh, _spec(array.ndim, axis))
        return jax.make_array_from_process_local_data(sharding, array)

    def rows(self, tree: Any) -> Any:
        """The rows of this process, as NumPy."""
        return jax.tree.map(self._rows, tree)

    def _rows(self, array: Any) -> np.ndarray:
        if not isinstance(array, jax.Array) or array.is_fully_addressable or array.is_fully_replicated:
            return np.asarray(array)
        axis = array.sharding.spec.index(AXIS)  # type: ignore[attr-defined]
        shards = sorted(array.addressable_shards, key=lambda shard: shard.index[axis].start)
        return np.concatenate([np.asarray(shard.data) for shard in shards], axis)

    def room(self, n: int) -> int:
        """As many rows as the largest process needs, for its devices alike."""
        most = int(self.gather(np.asarray(n)).max())
        return -(-most // self.here) * self.here


@partial(jax.jit, static_argnums=0)
def _sum_of_rows(devices: Devices, rows: jax.Array) -> jax.Array:
    add = lambda rows: lax.psum(rows.sum(0), AXIS)  # noqa: E731
    cut, whole = PartitionSpec(AXIS), PartitionSpec()
    return jax.shard_map(add, mesh=devices.mesh, in_specs=cut, out_specs=whole, check_vma=False)(rows)


def _spec(ndim: int, axis: int | None) -> PartitionSpec:
    """An array cut along an axis, or the same everywhere."""
    return PartitionSpec(*[AXIS if k == axis else None for k in range(ndim)] if axis is not None else [])


def _specs(tree: Any) -> Any:
    """How the leaves of a tree are cut."""
    return tree_map_with_path(lambda path, leaf: _spec(np.ndim(leaf), axis_of_rows(path, leaf)), tree)
