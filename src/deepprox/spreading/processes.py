"""Processes that fit together: the same program on every host, each with its own rows.

``jax.distributed`` connects them. Its defaults wait for minutes when one of them dies; here all end within
seconds, and a fit with ``checkpoint=`` is resumed by starting them again.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import jax

COORDINATOR, RANK, WORLD = "DEEPPROX_COORDINATOR", "DEEPPROX_RANK", "DEEPPROX_WORLD"
ARRIVE = 60  # seconds to wait for all processes at the beginning
SILENCE = 10  # seconds without a word after which a process counts as lost
FAILED = 1  # exit code of a process that an exception ended


def connect() -> None:
    """Connect this process to the others, before anything else is asked of JAX.

    They are found by the environment: ``DEEPPROX_COORDINATOR`` (host:port of the first process),
    ``DEEPPROX_RANK`` (0, 1, ...) and ``DEEPPROX_WORLD`` (how many), or else Slurm's, Open MPI's or
    Kubernetes'.
    """
    jax.config.update("jax_enable_preemption_service", False)  # it would swallow SIGTERM
    try:
        coordinator, world, rank = _by_environment()
        jax.distributed.initialize(
            coordinator,
            world,
            rank,
            initialization_timeout=ARRIVE,
            heartbeat_timeout_seconds=SILENCE,
            shutdown_timeout_seconds=SILENCE,
        )
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"The processes could not be connected: set {COORDINATOR} (host:port of the first process), "
            f"{RANK} and {WORLD}, or start them with deepprox launch, Slurm, MPI or Kubernetes "
            f"({_short(error)})."
        ) from error


def _by_environment() -> tuple[str, int, int] | tuple[None, None, None]:
    """Coordinator, world and rank as the environment says; None where JAX is to find them."""
    given = [name for name in (COORDINATOR, RANK, WORLD) if name in os.environ]
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
