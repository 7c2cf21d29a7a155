"""The driver: one task for each worker, and another meeting when a worker is lost."""

import logging
import time
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import uuid4

from dask import is_dask_collection
from distributed import Client, Future, wait

from deepprox.dask import rank as rank_
from deepprox.dask.meeting import Meeting, Refused
from deepprox.dask.pages import Pages
from deepprox.dask.parts import Part, deal

LOSSES = 10  # workers that a fit may lose
RETURN = 20  # seconds for a lost worker to be replaced before the others take its rows
LEAVE = 5  # seconds for workers to leave a meeting that has ended
LOOK = 0.2  # seconds between two looks at a meeting

logger = logging.getLogger(__name__)


class Fit(NamedTuple):
    """The fitted model, the workers that were lost on the way, and the bytes that a worker sent."""

    model: Any
    lost: list[str]
    bytes: int


def fit(client: Client, model: Any, parts: list[Part], topic: str | None = None) -> Fit:
    """Fit by meetings of the workers, as many as it takes."""
    lost: list[str] = []
    pages, world = None, 0
    while True:
        addresses = _workers(client, min(world, len(parts)))[: len(parts)]
        world = len(addresses)
        outcome, address = _meet(client, model, deal(parts, world), addresses, pages, topic)
        if outcome.model is not None:
            return Fit(outcome.model, lost, outcome.bytes)
        lost.append(address)
        pages = outcome.pages or pages
        logger.warning("Worker %s was lost: its rows are loaded again, and the fit goes on.", address)
        if len(lost) > LOSSES:
            raise RuntimeError(
                f"{len(lost)} workers were lost in this fit, the last of them {address}: see their logs; if "
                f"they ran out of memory, give them more of it, or use more workers."
            )


def _workers(client: Client, wanted: int) -> list[str]:
    """The workers, one for each process; after a loss it may take a while until they are as many again."""
    deadline = time.monotonic() + RETURN
    while True:
        known = client.scheduler_info(n_workers=-1)["workers"]
        # two programs that wait for each other in one process share its threads, and may wait for ever
        found = sorted({_process(address): address for address in sorted(known, reverse=True)}.values())
        if found and (len(found) >= wanted or time.monotonic() > deadline):
            return found
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"The cluster has had no worker for {RETURN} seconds: start some, and fit again."
            )
        time.sleep(LOOK)


def _process(address: str) -> str:
    """What tells the processes of workers apart: workers that share one have ``inproc://host/process/k``."""
    return address.rsplit("/", 1)[0] if address.startswith("inproc") else address


def _meet(
    client: Client,
    model: Any,
    dealt: list[list[Part]],
    addresses: list[str],
    pages: Pages | None,
    topic: str | None,
) -> tuple[rank_.Outcome, str]:
    """One meeting: the outcome, with a model at its end, or with the address of a worker that was lost."""
    name = f"deepprox-{uuid4().hex}"
    client.register_plugin(Meeting(name, client.id, addresses), name=name)
    futures: list[Future] = []
    try:
        for rank, (address, parts) in enumerate(zip(addresses, dealt, strict=True)):
            loaded = _loading(client, parts, address)
            job = rank_.Job(model, name, rank, len(addresses), pages, topic)
            futures.append(
                client.submit(
                    rank_.run, job, loaded, workers=[address], key=f"{name}-{rank}", pure=False, retries=0
                )
            )
        return _follow(client, name, futures, addresses)
    finally:
        client.sync(getattr(client.scheduler, f"{name}_end"))
        with suppress(TimeoutError):  # who computes hears of it at the next sum
            wait(_present(client, futures, addresses), timeout=LEAVE)
        client.cancel(futures)


def _loading(client: Client, parts: list[Part], address: str) -> list[Part]:
    """The parts, as futures where they are to be computed: near their worker, and elsewhere if it is lost."""
    lazy = [value for part in parts for value in part if is_dask_collection(value)]
    futures = iter(client.compute(lazy, workers=[address], allow_other_workers=True))
    return [
        Part(*(next(futures) if is_dask_collection(value) else value for value in part)) for part in parts
    ]


def _follow(
    client: Client, name: str, futures: list[Future], addresses: list[str]
) -> tuple[rank_.Outcome, str]:
    """The outcome of a meeting, when it has one."""
    while True:
        over = client.sync(getattr(client.scheduler, f"{name}_state"))
        left = all(future.done() for future in _present(client, futures, addresses))
        failed = [future.exception() for future in futures if future.status == "error"]
        if failed:
            raise next((error for error in failed if not isinstance(error, Refused)), failed[0])
        outcomes = [future.result() for future in futures if future.status == "finished"]
        for outcome in outcomes:
            if outcome.model is not None:
                return outcome, ""
        if "lost" in over and left:
            return next(iter(outcomes), rank_.Outcome(None, None, 0)), over["lost"]
        time.sleep(LOOK)


def _present(client: Client, futures: list[Future], addresses: list[str]) -> list[Future]:
    """The futures whose workers are still there."""
    known = client.scheduler_info(n_workers=-1)["workers"]
    return [future for future, address in zip(futures, addresses) if address in known]
