"""What one worker does: the plain fit on its own rows, with sums over everybody's."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from distributed import secede

from deepprox.dask.meeting import Lost, Seat
from deepprox.dask.pages import Pages
from deepprox.dask.parts import Part, load
from deepprox.diary import Stages
from deepprox.estimators._checkpoint import Checkpoints, checkpointing, fingerprint
from deepprox.estimators.session import Session
from deepprox.problem import Problem
from deepprox.runtime import precision
from deepprox.spreading import Reducer

# Programs that call back cannot be kept on disk. They are compiled for a reducer, so it serves again.
_IDLE: dict[tuple[int, int], list[Reducer]] = {}
_LOCK = Lock()


class Job(NamedTuple):
    """A rank's part in a fit: where it meets the others, and what an earlier meeting left."""

    model: Any
    meeting: str
    rank: int
    world: int
    pages: Pages | None
    topic: str | None


class Outcome(NamedTuple):
    """The fitted model, or what is left of a run that lost a worker."""

    model: Any
    pages: Pages | None
    bytes: int


def run(job: Job, parts: list[Part]) -> Outcome:
    """Fit with the others, until the end or until one of them is lost."""
    secede()  # the worker keeps its slot for tasks that load rows
    seat, stages = Seat(job.meeting, job.rank), Stages()
    try:
        with _reducer(seat, job.world) as spread:
            model = job.model.set_params(devices=spread)
            session = Session(model)
            rows = session.read(*load(parts))
            with precision(rows.X.dtype):
                posed = session.choose(session.pose(rows))
                with _stages(model, posed.problem, job.pages) as stages:
                    found = session.run(posed, _teller(seat, job), stages=stages)
                session.keep(found, posed)
        return Outcome(model.set_params(devices=None), None, seat.bytes)
    except BaseException as error:
        if isinstance(seat.left, Lost):
            return Outcome(None, Pages.of(stages) if stages.done else job.pages, seat.bytes)
        if seat.left is not None:
            raise seat.left from None
        seat.ask("stop", reason=f"Another worker failed: {' '.join(str(error).split())[:500]}")
        raise


@contextmanager
def _stages(model: Any, problem: Problem, pages: Pages | None) -> Iterator[Stages]:
    """The stages of the run: after a loss those in its files, if all workers have them, or in the pages."""
    settings, resume = model.get_params(deep=False), model.resume
    if pages is not None:
        resume = model.checkpoint is not None and _kept(model.checkpoint, problem, settings)
    with checkpointing(model.checkpoint, resume, problem, settings) as stages:
        if pages is not None and not resume:
            keep, stages = stages.keep, pages.stages(problem)
            stages.keep = keep
        yield stages


def _kept(folder: Any, problem: Problem, settings: dict[str, Any]) -> bool:
    """Whether there is a checkpoint that all workers have; where there is none, files of some are removed."""
    files = Checkpoints(Path(folder), problem.allsum, fingerprint(problem, settings))
    try:
        found = bool(files.resume().done)
    except ValueError:
        found = False
    if not found:
        for file in (files.newest, files.before):
            file.unlink(missing_ok=True)
    return found


def _teller(seat: Seat, job: Job) -> Any:
    """What tells the driver the latest row of the history, if it wants to know."""
    if job.topic is None or job.rank != 0:
        return None
    return lambda row: seat.worker.log_event(job.topic, row)


@contextmanager
def _reducer(seat: Seat, world: int) -> Iterator[Reducer]:
    """A reducer that nobody uses in this process, by preference one that has programs."""
    with _LOCK:
        idle = _IDLE.setdefault((seat.rank, world), [])
        reducer = idle.pop() if idle else Reducer(seat.reduce, seat.rank, world)
    reducer.reduce = seat.reduce
    try:
        yield reducer
    finally:
        with _LOCK:
            idle.append(reducer)
