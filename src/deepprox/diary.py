"""The diary of a run: its history as it happens, and the stages that it can resume from."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

Watch = Callable[[dict[str, Any]], None]


class Diary:
    """The history of every start as it happens, for the records and for whoever watches."""

    def __init__(self, n_starts: int, watch: Watch | None) -> None:
        self.watch = watch
        self.began = self.marked = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self._chunks: list[tuple[str, dict[str, np.ndarray], np.ndarray, float]] = []
        self._all = np.ones(n_starts, int)

    def chunk(self, phase: str, info: Any, taken: Any = None) -> None:
        """Write a chunk of rows for every start and show the last of the best."""
        columns = {name: np.atleast_2d(np.asarray(column)) for name, column in info._asdict().items()}
        length = columns["objective"].shape[1]
        taken = length * self._all if taken is None else np.atleast_1d(taken)
        self._chunks.append((phase, columns, taken, self._now()))
        last = np.array([row[k - 1] if k else np.inf for row, k in zip(columns["objective"], taken)])
        if self.watch is not None and np.isfinite(last).any():
            self.watch(self.rows(int(np.nanargmin(last)), since=len(self._chunks) - 1)[-1])

    def tell(self, phase: str, rows: list[dict[str, Any]], lane: int) -> None:
        """Write the rows of one start and show the last."""
        if rows:
            columns = {name: np.array([[row[name] for row in rows]] * len(self._all)) for name in rows[0]}
            taken = np.where(np.arange(len(self._all)) == lane, len(rows), 0)
            self._chunks.append((phase, columns, taken, self._now()))
            if self.watch is not None:
                self.watch(self.rows(lane, since=len(self._chunks) - 1)[-1])

    def length(self, lane: int) -> int:
        """How many rows a start has."""
        return sum(int(taken[lane]) for _, _, taken, _ in self._chunks)

    def rows(self, lane: int, since: int = 0) -> list[dict[str, Any]]:
        """The history of one start, from a chunk on."""
        out: list[dict[str, Any]] = []
        before = sum(int(taken[lane]) for _, _, taken, _ in self._chunks[:since])
        for phase, columns, taken, seconds in self._chunks[since:]:
            lists = {name: column[lane, : taken[lane]].tolist() for name, column in columns.items()}
            for values in zip(*lists.values(), strict=True):
                at = {"phase": phase, "iteration": before + len(out) + 1}
                out.append(at | dict(zip(lists, values, strict=True)) | {"seconds": seconds})
        return out

    def lap(self, phase: str) -> None:
        """Close the account of a phase."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self.marked
        self.marked = now

    def _now(self) -> float:
        return time.perf_counter() - self.began

    def reread(self, chunks: list, seconds: float) -> None:
        """Take over what an earlier part of this run wrote, and the time that it took."""
        self._chunks += chunks
        self.began, self.marked = self.began - seconds, self.marked - seconds

    def written(self, since: int = 0) -> list:
        """The chunks from one on."""
        return self._chunks[since:]


class Stages:
    """A run as a sequence of stages, each with a result; a run that was interrupted replays those it has.

    ``done`` holds result, chunks of the diary and seconds of every finished stage, ``begun`` those of the
    stage that was interrupted, with the variables of its loop in place of a result, ``within`` those of a
    round of that loop that is long enough to be interrupted itself. ``keep`` is called whenever there is more
    to remember.
    """

    def __init__(
        self,
        done: list | None = None,
        begun: tuple | None = None,
        keep: Callable[["Stages"], None] | None = None,
        within: tuple | None = None,
    ) -> None:
        self.done, self.begun, self.keep, self.within = done or [], begun, keep, within
        self.diary = Diary(1, None)
        self._next, self._first, self._since = 0, 0, time.perf_counter()

    def run(self, work: Callable[..., Any], *args: Any) -> Any:
        """The result of the next stage: what it was, or what ``work`` makes it."""
        number, self._next = self._next, self._next + 1
        if number < len(self.done):
            result, chunks, seconds = self.done[number]
            self.diary.reread(chunks, seconds)
            return result
        self._first, self._since = len(self.diary.written()), time.perf_counter()
        if self.begun is not None:
            self.diary.reread(*self.begun[1:])
            self._since -= self.begun[2]
        result = work(*args)
        self.done.append(self._page(result))
        self._remember(None)
        return result

    def resumed(self, start: tuple) -> tuple:
        """The variables with which the loop of this stage begins: ``start``, or where it was interrupted."""
        return start if self.begun is None else self.begun[0]

    def reached(self, *variables: Any) -> None:
        """Another round of the loop of this stage is done, and goes on from these variables."""
        self._remember(self._page(variables))

    def resumed_within(self, start: tuple) -> tuple:
        """The variables with which a round begins: ``start``, or where it was interrupted."""
        within, self.within = self.within, None
        return start if within is None else within

    def reached_within(self, *variables: Any) -> None:
        """A round has come so far, and goes on from these variables."""
        self.within = variables
        if self.keep is not None:
            self.keep(self)

    def _page(self, value: Any) -> tuple:
        return value, self.diary.written(self._first), time.perf_counter() - self._since

    def _remember(self, begun: tuple | None) -> None:
        self.begun, self.within = begun, None
        if self.keep is not None:
            self.keep(self)
