"""How much memory work will take, from shapes alone, and how much is free: what cannot fit does not begin.

Estimates are of what programs hold at their largest, and true to about a factor of two. They count arrays
that grow with the data, the network or the number of results; compilers and libraries take some 100 MB more.
"""

import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

MOST = 10**300  # bytes: counts that users give may be larger than any float
SMALL = 2**28  # bytes that are not worth looking for
COPIES = 3  # of the data: as given, standardised, and padded for programs
GRAMS = 3  # matrices of products that the split phase holds for each block
STEPS = 90  # numbers for each weight: the pairs of quasi-Newton steps of two routes, before and after
COLUMNS = 16  # numbers for each weight where columns are taken as they are needed
PASS = 8  # numbers for each unit and observation: what sweeps and gradients keep
DRAWN = 6  # numbers for each entry of a row of a batch, and of what its units do
ROWS = 16 * 50  # bytes for each row of a batch: its number, in the batches whose rows are drawn at once
SUMS = 5  # copies of moving sums while a batch joins them
STAGE = 24  # numbers for each weight that a solution of a path keeps: weights, pairs
RECORD = 30_000  # bytes of its history
DRAWS = 4  # copies of draws while they are put together


class Cost(NamedTuple):
    """Bytes that something takes, what it is in words, and what to do about it."""

    size: int
    what: str
    change: str


def available() -> float:
    """Bytes of memory that this process may still take; infinite where the system does not tell."""
    return min([_free(), *_left_in_groups(), *_left_in_limits()])


def need(*costs: Cost) -> None:
    """ValueError where all costs together are more than the memory that is free; it names the largest."""
    total = float(min(sum(cost.size for cost in costs), MOST))
    if total <= SMALL:
        return
    there = available()
    if total > there:
        largest = max(costs, key=lambda cost: cost.size)
        raise ValueError(
            f"This would take about {total / 1e9:.3g} GB of memory, most of it for {largest.what}, and "
            f"{there / 1e9:.3g} GB are free: {largest.change}."
        )


def of_data(n: int, columns: int, itemsize: int) -> Cost:
    """Cost of posing a problem of ``n`` rows that are there already."""
    change = "take fewer rows or columns, dtype='float32', or fit files with deepprox.fit_stream"
    return Cost(COPIES * itemsize * n * columns, f"copies of {n} rows of {columns} columns", change)


def of_fit(
    n: int,
    n_in: int,
    shapes: Sequence[tuple[int, int]],
    numbers: Sequence[int],
    itemsize: int,
    starts: int,
    sweeps: bool,
    batch: int,
) -> list[Cost]:
    """Costs of a fit to ``n`` rows: blocks with weights of such shapes that give so many numbers each.

    ``sweeps`` says whether all hidden blocks are split, ``batch`` how many rows a step draws.
    """
    each = itemsize if starts == 1 else 4  # many starts are compared in single precision
    reads = [given // size * (columns - 1) for (size, columns), given in zip(shapes, numbers, strict=True)]
    units = sum(numbers) + sum(reads) - n_in  # what is read at every place; the inputs themselves are data
    weights = sum(size * columns for size, columns in shapes)
    fewer = "take fewer starts (n_init)" if starts > 1 else "take fewer or narrower hidden layers"
    costs = [
        Cost(starts * weights * (8 + each * STEPS), "the weights and the curvature of their steps", fewer),
        Cost(starts * n * units * each * PASS, "what units do at all observations", fewer),
    ]
    if sweeps:
        products = max(sum(columns**2 for _, columns in shapes), 1)
        wide = "inputs" if reads[0] == max(reads) else "units"
        costs.append(
            Cost(
                each * (starts * products * GRAMS + 2 * n * reads[0]),
                f"the products of {min(max(reads), MOST):.6g} {wide} with each other in the split phase",
                "set splits='none'" if starts == 1 else "take fewer starts (n_init), or set splits='none'",
            )
        )
    if batch:
        row = starts * 4 * DRAWN * (reads[0] + units) + ROWS
        costs.append(Cost(batch * row, "batches of rows", "take a smaller batch_size"))
    return costs


def of_columns(weights: int) -> Cost:
    """Cost of a fit that takes columns of the inputs as it needs them."""
    return Cost(COLUMNS * 8 * weights, f"numbers for each of {weights:.6g} weights", "select columns first")


def of_sums(shapes: Sequence[tuple[int, int]], itemsize: int) -> Cost:
    """Cost of the moving sums of a stream, for blocks of weights of such shapes."""
    numbers = sum(a**2 + b**2 + a * b for a, b in shapes)
    return Cost(
        SUMS * itemsize * numbers, "sums over the rows", "take fewer inputs or narrower hidden layers"
    )


def of_path(count: int, weights: int) -> Cost:
    """Cost of the solutions of a path."""
    return Cost(count * (RECORD + 8 * STAGE * weights), "its solutions", "take fewer alphas")


def of_draws(n_chains: int, n_draws: int, weights: int) -> Cost:
    """Cost of draws from a posterior."""
    return Cost(
        DRAWS * 8 * n_chains * n_draws * weights,
        f"draws of {weights} weights",
        "take fewer n_draws or n_chains, or vary='last_block'",
    )


def of_parts(count: int, n: int, name: str) -> Cost:
    """Cost of so many parts of ``n`` rows, as row numbers."""
    return Cost(count * (8 * n + 200), "the rows of every part", f"take fewer of them ({name})")


def of_word(size: int, name: str) -> Cost:
    """Cost of an array that a word of the vocabulary holds."""
    return Cost(COPIES * 8 * size, f"copies of {name}", f"make {name} one number or an array of few")


def of_square(size: int, copies: int, what: str, change: str) -> Cost:
    """Cost of square matrices in double precision."""
    return Cost(8 * copies * size**2, what, change)


def _free() -> float:
    """What the system has to give."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except OSError:  # not Linux
        pass
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        if pages in getattr(os, "sysconf_names", {}):
            return float(os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _left_in_groups(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> Iterator[float]:
    """What the control groups of this process leave it: containers and schedulers set limits there."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    for _, kind, name in lines:
        if kind and "memory" not in kind.split(","):
            continue
        base = root / "memory" if kind else root
        limit, used = ("limit_in_bytes", "usage_in_bytes") if kind else ("max", "current")
        place = base / name.lstrip("/")
        for folder in (place, *place.parents):
            if folder.is_relative_to(base):
                yield _left(folder / f"memory.{limit}", folder / f"memory.{used}", folder / "memory.stat")


def _left_in_limits() -> Iterator[float]:
    """What the limits of this process leave it: ``ulimit -v`` and ``ulimit -d``."""
    try:
        import resource  # not on every system

        text = Path("/proc/self/status").read_text()
    except (ImportError, OSError):
        return
    held = dict(re.findall(r"^(VmSize|VmData):\s*(\d+) kB$", text, re.MULTILINE))
    for limit, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY and name in held:
            yield float(max(most - 1024 * int(held[name]), 0))


def _left(limit: Path, used: Path, stat: Path) -> float:
    """What a group has left; files that it keeps in memory can be given up."""
    try:
        most, taken = limit.read_text().strip(), int(used.read_text())
        rows = dict(line.split() for line in stat.read_text().splitlines())
    except (OSError, ValueError):
        return math.inf
    files = int(rows.get("total_inactive_file", rows.get("inactive_file", 0)))
    return math.inf if most == "max" else float(max(int(most) - taken + files, 0))
