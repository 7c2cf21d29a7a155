"""Where the workers of a fit meet: the scheduler adds what they bring, in the order of their ranks.

Every worker can reach the scheduler, by the cluster's own connections, and the scheduler is the first to know
of a lost worker. A sum is made once and sent to all, so that it is equal to the last bit for everybody. A
meeting that lost a member is over: the others are told at once, and hold another.
"""

import asyncio
import time
from typing import Any

import numpy as np
from distributed import get_worker
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.protocol.serialize import ToPickle
from distributed.utils import sync

SILENCE = 15  # seconds without a heartbeat after which a worker counts as lost
LOOK = 1  # seconds between two looks at the heartbeats
ROOM = 2**31 - 1  # bytes of a message that Dask sends


class Lost(Exception):
    """A member of the meeting was lost."""


class Refused(Exception):
    """The meeting was ended, by the driver or by a member that failed."""


class Sum:
    """``sum_r arrays_r``, in the order of the ranks, when all are here."""

    def __init__(self) -> None:
        self.brought: dict[int, list[np.ndarray]] = {}
        self.found: list[np.ndarray] | None = None
        self.done = asyncio.Event()

    def add_up(self) -> None:
        """All are here."""
        ranks = [self.brought[rank] for rank in sorted(self.brought)]
        kinds = {tuple((a.dtype.str, a.shape) for a in arrays) for arrays in ranks}
        if len(kinds) > 1:
            raise ValueError("The workers are out of step: they brought arrays of different kinds.")
        self.found = []
        for first, *others in zip(*ranks, strict=True):
            total = np.array(first)
            for array in others:
                total += array
            self.found.append(total)
        self.done.set()


class Meeting(SchedulerPlugin):
    """One fit, or what is left of it after a loss: ``addresses`` are the workers, one for each rank."""

    def __init__(self, name: str, client: str, addresses: list[str]) -> None:
        self.name, self.client, self.addresses = name, client, addresses
        self.over: dict[str, str] | None = None
        self.sums: dict[int, Sum] = {}

    async def start(self, scheduler: Any) -> None:
        """Open the meeting."""
        self.scheduler = scheduler
        self.handlers = {
            f"{self.name}_{what.__name__}": what for what in (self.add, self.state, self.stop, self.end)
        }
        scheduler.handlers.update(self.handlers)
        for address in {*self.addresses} - {*scheduler.workers}:
            self._lose(address)
        self.watch = asyncio.create_task(self._watch())

    async def add(self, rank: int, number: int, arrays: Any) -> dict[str, Any] | None:
        """The ``number``-th sum, when every rank has brought its arrays; or why there is none."""
        if self.over is not None:
            return self.over
        wanted = self.sums.setdefault(number, Sum())
        wanted.brought[rank] = arrays
        if len(wanted.brought) < len(self.addresses):
            await wanted.done.wait()
        else:
            del self.sums[number]
            try:
                wanted.add_up()
            except ValueError as error:
                self._close({"refused": str(error)})
                wanted.done.set()
        # arrays go beside a message as they are; inside it they would be copied four times
        return {"sums": ToPickle(wanted.found)} if wanted.found is not None else self.over

    async def state(self) -> dict[str, str]:
        """Empty while the meeting goes on; else why it is over."""
        return self.over or {}

    async def stop(self, reason: str) -> None:
        """Send everybody home."""
        self._close({"refused": reason})

    async def end(self) -> None:
        """Send everybody home, and leave no trace on the scheduler."""
        await self.stop("The fit has ended.")
        self.watch.cancel()
        for name in self.handlers:
            self.scheduler.handlers.pop(name, None)
        self.scheduler.plugins.pop(self.name, None)

    def remove_worker(self, scheduler: Any, worker: str, **facts: Any) -> None:
        """A worker is gone."""
        if worker in self.addresses:
            self._lose(worker)

    def remove_client(self, scheduler: Any, client: str) -> None:
        """The driver is gone."""
        if client == self.client:
            self.ending = asyncio.create_task(self.end())

    def _lose(self, address: str) -> None:
        self._close({"lost": address})

    def _close(self, why: dict[str, str]) -> None:
        self.over = self.over or why
        for waiting in self.sums.values():
            waiting.done.set()
        self.sums.clear()

    async def _watch(self) -> None:
        """A worker that is frozen, or whose network is gone, is restarted, and so removed."""
        while self.over is None:
            await asyncio.sleep(LOOK)
            known = self.scheduler.workers
            since = {one: time.time() - known[one].last_seen for one in self.addresses if one in known}
            silent = [one for one, seconds in since.items() if seconds > SILENCE]
            for address in silent:
                self._lose(address)
            if silent:
                await self.scheduler.restart_workers(
                    silent, wait_for_workers=False, on_error="return", stimulus_id=f"{self.name}-silence"
                )


class Seat:
    """A worker's place in a meeting: ``reduce`` is what a :class:`deepprox.spreading.Reducer` asks for."""

    def __init__(self, meeting: str, rank: int) -> None:
        self.meeting, self.rank, self.number = meeting, rank, 0
        self.worker: Any = get_worker()
        self.left: Exception | None = None  # why; a program that it ended raises something else
        self.bytes = 0

    def reduce(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Everybody's sums."""
        self.number += 1
        size = sum(a.nbytes for a in arrays)
        if size > ROOM:
            raise ValueError(
                f"A sum of {size / 2**30:.1f} GiB is more than a message of Dask holds: use narrower layers."
            )
        self.bytes += size
        try:
            answer = self.ask("add", rank=self.rank, number=self.number, arrays=ToPickle(arrays))
        except OSError as error:  # this worker is leaving
            self.left = Lost(str(error))
            raise self.left from error
        if answer is None:  # the meeting has left the scheduler
            answer = {"refused": "The fit has ended."}
        if "sums" not in answer:
            self.left = Lost(answer["lost"]) if "lost" in answer else Refused(answer["refused"])
            raise self.left
        return answer["sums"]

    def ask(self, what: str, **message: Any) -> Any:
        """Ask the meeting, from any thread but that of the worker's loop."""
        return sync(self.worker.loop, getattr(self.worker.scheduler, f"{self.meeting}_{what}"), **message)
