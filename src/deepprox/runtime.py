"""How a fit meets JAX: the cache of compiled programs, the precision, and the shapes that compile."""

import hashlib
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jax
import jaxlib
import numpy as np

from deepprox import programs
from deepprox.cache import Doubt, Sealed, sealed
from deepprox.program_cache import keep_in

WORTH = 2**23  # products that take longer than waking a thread does
SMALL = 2**17  # numbers of a table, with its padding, whose fit takes less than a second
MANY = 8  # processors: a container may see more than it is given, and more do not gain much
T = TypeVar("T")

_ASKED: ContextVar[str | None] = ContextVar("products as the user set them")


def bucket(n: int) -> int:
    """The smallest multiple of ``2^(floor(log2 n) - 2)`` that holds ``n`` observations, at least 64.

    Observations are padded with weight 0 up to it, by a quarter at most, so that folds of nearby
    sizes, and all small data, run the same compiled program.
    """
    grain = 2 ** max(n.bit_length() - 3, 1)
    return max(64, -(-n // grain) * grain)


def shelf(n: int, n_inputs: int) -> int:
    """How many rows a network is fitted to, with their padding.

    Of a small table a power of two: its programs take longer to compile than twenty fits.
    """
    size = max(64, 1 << (n - 1).bit_length())
    return size if size * lattice(n_inputs) <= SMALL else bucket(n)


def lattice(n: int) -> int:
    """The smallest size that is a power of two, or from 96 on half more than one, and holds ``n`` inputs.

    Columns of zeros up to it cost products, and every other size costs programs: small problems have few.
    """
    size = 1 << max(n - 1, 3).bit_length()
    return size * 3 // 4 if size > 64 and n <= size * 3 // 4 else size


@contextmanager
def precision(dtype: Any) -> Iterator[None]:
    """A context in which arrays of ``dtype`` stay what they are; nothing global changes.

    Products keep all digits of single precision, unless the user set JAX otherwise: accelerators would round
    their factors to eleven bits, and no certificate below a thousandth could be reached. Where many programs
    are held they are let go first; in a forked process that cannot run any this is an error.
    """
    programs.HERE.ready()
    asked = products_asked()
    token = _ASKED.set(asked)
    try:
        with jax.enable_x64(np.dtype(dtype) == np.float64), jax.default_matmul_precision(asked or "highest"):
            yield
    finally:
        _ASKED.reset(token)


def products_asked() -> str | None:
    """How the user told JAX to multiply in single precision, if at all: what ``precision`` sets is not it."""
    return _ASKED.get(jax.config.values["jax_default_matmul_precision"])


@cache
def processors() -> int:
    """How many processors work on the host is shared among."""
    here = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(here, MANY)


@cache
def _helpers() -> ThreadPoolExecutor:
    """Threads for all processors but the one that asks."""
    return ThreadPoolExecutor(processors() - 1, "deepprox")


def beside(work: Callable[[], T], products: int, dtype: Any) -> Callable[[], T]:
    """``work`` on arrays of ``dtype``, begun on another processor if as many ``products`` are made here."""

    def as_here() -> T:
        with precision(dtype):
            return work()

    if products < WORTH or processors() == 1:
        return work
    return _helpers().submit(as_here).result


def share_out(work: Callable[[Iterable[int]], None], n: int, products: int) -> None:
    """``work`` on the parts ``range(n)``; each is taken by the next processor that is free, if they pay."""
    parts, others = iter(range(n)), 0 if products < WORTH else processors() - 1
    begun = [_helpers().submit(work, parts) for _ in range(others)]
    work(parts)
    for one in begun:
        one.result()


@cache
def keep_memory() -> None:
    """Let freed arrays be used again from here on, in place of fresh memory, which costs more than most sums.

    The C library of Linux gives memory back that is twice as large as the largest array it saw freed, and
    asks for it again at the next step. An array of 32 MB, the largest that counts, is never touched.
    """
    np.empty(2**25 - 2**13, np.uint8)


@cache
def keep_programs() -> Sealed | None:
    """Keep compiled programs on disk from here on, unless the user chose otherwise.

    Called at the first fit, never at import. ``DEEPPROX_CACHE=off`` switches it off, and a cache that
    JAX already has stays. Programs of another version or another processor live elsewhere. A folder that
    others might write to is not used, nor is one that cannot be made; a warning says why.
    """
    wanted = os.environ.get("DEEPPROX_CACHE", "").lower() not in ("off", "0", "no", "false")
    settings = jax.config.values
    if not wanted or settings["jax_compilation_cache_dir"] or not settings["jax_enable_compilation_cache"]:
        return None
    try:
        kept = sealed(f"programs-{jaxlib.__version__}-{_processor()}")
        keep_in(kept)
    except Doubt as doubt:
        warnings.warn(
            f"Compiled programs are not kept on disk: {doubt}. Every process compiles its own; "
            f"DEEPPROX_CACHE=off asks for that without a warning.",
            stacklevel=2,
        )
        return None
    return kept


def kept_programs() -> Sealed | None:
    """Where compiled programs are kept, once :func:`keep_programs` was asked to; None where they are not."""
    return keep_programs() if keep_programs.cache_info().currsize else None


def _processor() -> str:
    """A short name for this processor and its instructions: programs compiled for it run on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        told = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})
    except OSError:
        told = [platform.processor()]
    return platform.machine() + "-" + hashlib.sha256("\n".join(told).encode()).hexdigest()[:8]
