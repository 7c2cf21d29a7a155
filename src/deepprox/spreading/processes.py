"""Processes that fit together: the same program on every host, each with its own rows.

``jax.distributed`` connects them. Its defaults wait for minutes when one of them dies; here all end within
seconds, and a fit with ``checkpoint=`` is resumed by starting them again. Its defaults also listen at every
address of a host, to whoever comes; here at one, if that is known.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import jax
from jax.extend.backend import register_backend_factory

COORDINATOR, RANK, WORLD = "DEEPPROX_COORDINATOR", "DEEPPROX_RANK", "DEEPPROX_WORLD"
ADDRESS = "DEEPPROX_ADDRESS"
FILE = "unix:"  # before the path of a socket that is a file, in place of host:port
LOOPBACK = "127.0.0.1"
ARRIVE = 60  # seconds to wait for all processes at the beginning
SILENCE = 10  # seconds without a word after which a process counts as lost
FAILED = 1  # exit code of a process that an exception ended


def connect() -> None:
    """Connect this process to the others, before anything else is asked of JAX.

    They are found by the environment: ``DEEPPROX_COORDINATOR`` (host:port of the first process),
    ``DEEPPROX_RANK`` (0, 1, ...) and ``DEEPPROX_WORLD`` (how many), or else Slurm's, Open MPI's or
    Kubernetes'. ``DEEPPROX_ADDRESS`` is the address of this host at which this process listens. Without it
    this is the loopback address if the first process is reached by that or by a file, else every address.
    """
    jax.config.update("jax_enable_preemption_service", False)  # it would swallow SIGTERM
    try:
        coordinator, world, rank = _by_environment()
        address = _address(coordinator)
        jax.distributed.initialize(
            coordinator,
            world,
            rank,
            initialization_timeout=ARRIVE,
            heartbeat_timeout_seconds=SILENCE,
            shutdown_timeout_seconds=SILENCE,
            coordinator_bind_address=_bound(coordinator, address),
        )
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"The processes could not be connected: set {COORDINATOR} (host:port of the first process), "
            f"{RANK} and {WORLD}, or start them with deepprox launch, Slurm, MPI or Kubernetes "
            f"({_short(error)})."
        ) from error
    if address is not None and jax.config.values["jax_cpu_collectives_implementation"] == "gloo":
        _exchange_at(address)


def _by_environment() -> tuple[str, int, int] | tuple[None, None, None]:
    """Coordinator, world and rank as the environment says; None where JAX is to find them."""
    given = [name for name in (COORDINATOR, RANK, WORLD) if name in os.environ]
    if not given and ADDRESS in os.environ:
        raise ValueError(f"{ADDRESS} is set, but none of the three")
    if not given:
        return None, None, None
    if len(given) < 3:
        raise ValueError(f"only {' and '.join(given)} of the three are set")
    try:
        rank, world = int(os.environ[RANK]), int(os.environ[WORLD])
    except ValueError:
        raise ValueError(f"{RANK} and {WORLD} must be whole numbers") from None
    if not 0 <= rank < world:
        raise ValueError(f"{RANK} is {rank}, but must be from 0 to {world - 1}")
    return os.environ[COORDINATOR], world, rank


def joined(address: str, port: int | str) -> str:
    """An address and a port as one text."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _address(coordinator: str | None) -> str | None:
    """The address at which this process listens; None for every one."""
    if ADDRESS in os.environ or coordinator is None:
        return os.environ.get(ADDRESS)
    if coordinator.startswith(FILE):
        return LOOPBACK
    host = coordinator.rpartition(":")[0].strip("[]")
    try:
        return host if ip_address(host).is_loopback else None
    except ValueError:  # a name
        return LOOPBACK if host == "localhost" else None


def _bound(coordinator: str | None, address: str | None) -> str | None:
    """Where the first process waits for the others; None where JAX is to say."""
    if coordinator is None or address is None or coordinator.startswith(FILE):
        return coordinator if address is not None else None
    return joined(address, coordinator.rpartition(":")[2])


def _exchange_at(address: str) -> None:
    """Let Gloo, by which processors exchange arrays, listen at this address in place of the host name's."""
    from jax._src import distributed, xla_bridge
    from jax._src.lib import _jax

    def client() -> Any:
        others = distributed.global_state.client
        gloo = _jax.make_gloo_tcp_collectives(distributed_client=others, hostname=address)
        return xla_bridge.make_cpu_client(gloo)

    register_backend_factory("cpu", client, fail_quietly=False)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


@contextmanager
def failing_fast() -> Iterator[None]:
    """End this process at once when an exception leaves the block: the others then end too, and none hangs.

    Without it a process that failed waits for the others in a barrier, and they for its sums.
    """
    try:
        yield
    except BaseException as error:
        code = error.code if isinstance(error, SystemExit) else FAILED
        if isinstance(error, SystemExit) and not code:
            raise  # all is well: they leave together
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else FAILED)
