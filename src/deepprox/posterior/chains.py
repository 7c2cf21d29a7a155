"""Chains side by side, in chunks: a bar moves after each, and an interruption keeps what is done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from deepprox.report.bar import bar

CHUNK = 50  # draws of every chain that one call of a compiled program makes

Record = dict[str, np.ndarray]  # arrays over (chain, draw, ...); "w" holds the weights


class Sampler(Protocol):
    """What draws: its state moves with every chunk."""

    def warm_up(self, done: int, total: int) -> None:
        """The next ``CHUNK`` draws while it adapts, ``done`` of ``total`` being behind it."""

    def draw(self) -> Record:
        """The next ``CHUNK`` draws of every chain."""


def collect(sampler: Sampler, n_warmup: int, n_draws: int, verbose: int = 0) -> tuple[Record, bool]:
    """Draws after a warm-up, and whether all of them were made before an interruption.

    The warm-up is rounded up to whole chunks. An interruption before the first chunk of draws is raised:
    there is nothing to keep.
    """
    chunks: list[Record] = []
    complete = True
    with _bar(n_warmup + n_draws, verbose) as told:
        try:
            for done in range(0, n_warmup, CHUNK):
                sampler.warm_up(done, n_warmup)
                told(min(done + CHUNK, n_warmup), "warm-up")
            for done in range(0, n_draws, CHUNK):
                chunks.append(sampler.draw())
                told(n_warmup + min(done + CHUNK, n_draws), "draws")
        except KeyboardInterrupt:
            if not chunks:
                raise
            complete = False
    joined = {name: np.concatenate([chunk[name] for chunk in chunks], axis=1) for name in chunks[0]}
    return {name: values[:, :n_draws] for name, values in joined.items()}, complete


@contextmanager
def _bar(total: int, verbose: int) -> Iterator[Callable[[int, str], None]]:
    """What is told after every chunk, shown as a bar where somebody looks."""
    if not verbose:
        yield lambda done, words: None
        return
    with bar("compiling or loading the program", total) as moved:
        yield lambda done, words: moved(completed=done, description=words)
