"""Checkpoints of a fit: files of data in a folder, from which an interrupted fit goes on to the same answer.

Every process writes its own file whole or not at all, and keeps the one before. A file is refused unless it
is complete and of the same data and settings.
"""

import hashlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from deepprox import saving
from deepprox.design import Design
from deepprox.diary import Stages
from deepprox.files import folder_of, target_of
from deepprox.joining.descent import Descent
from deepprox.joining.finish import Finish, Step
from deepprox.joining.kinks import Slopes
from deepprox.joining.live import Live
from deepprox.joining.pruning import Less
from deepprox.joining.quasi_newton import Info, Memory, State
from deepprox.joining.working_set import Found
from deepprox.problem import Problem
from deepprox.solution import Solution
from deepprox.solve import After
from deepprox.splitting import state as splitting
from deepprox.spreading import Spread

SHARE = 0.1  # of its time that a fit may spend on checkpoints
LIMIT = 2**42  # bytes of a file: its folder is the user's own


def state(**fields: Any) -> Any:
    """A state of the split phase or of quasi-Newton steps, which have one name."""
    return splitting.State(**fields) if "Z" in fields else State(**fields)


RECORDED = After, Descent, Finish, Found, Info, Less, Live, Memory, Slopes, Solution, Step
RECORDS: dict[str, Any] = {saving.name_of(cls): cls for cls in RECORDED} | {"State": state}
SETTINGS = ("splits", "join", "batch_size", "n_init", "max_iter", "tol", "warm_start", "random_state")


@contextmanager
def checkpointing(
    folder: Any, resume: bool, problem: Problem, settings: dict[str, Any], more: tuple[Any, ...] = ()
) -> Iterator[Stages]:
    """The stages of a fit, kept in ``folder`` as it goes and when it is interrupted; None keeps nothing.

    ``more`` are numbers that tell the data apart, where the problem does not hold all of them.
    """
    if folder is None:
        yield Stages()
        return
    files = Checkpoints(folder_of(folder, "checkpoint"), problem.allsum, fingerprint(problem, settings, more))
    stages = files.resume() if resume else Stages()
    stages.keep = files.keep
    with ending_orderly():
        try:
            yield stages
        except BaseException as error:
            files.write()
            if files.number:
                error.add_note(f"The fit can go on from here: fit again with resume=True ({folder}).")
            raise
    files.write()


@contextmanager
def ending_orderly() -> Iterator[None]:
    """SIGTERM ends a process as an exception does: what must be kept is kept."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def fingerprint(problem: Problem, settings: dict[str, Any], more: tuple[Any, ...] = ()) -> str:
    """A digest of the data, the network, the loss and the settings of a fit, and of how it is spread."""
    seed = settings["random_state"]
    told = {name: settings[name] for name in SETTINGS}
    told["random_state"] = seed if isinstance(seed, int | np.integer) else None
    words, structure = jax.tree.flatten((problem.network, problem.loss))
    spread = problem.allsum
    text = f"{version('deepprox')} {told} {structure} {spread.rank} {spread.world} {spread.parts}"
    digest = hashlib.sha256(text.encode())
    rho = settings["rho"] if not isinstance(settings["rho"], str) else ()
    X = problem.X.parts if isinstance(problem.X, Design) else problem.X
    for leaf in jax.tree.leaves((X, problem.y, problem.weight, words, rho, more)):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(array.view(np.uint8).data if array.ndim else array.tobytes())
    return digest.hexdigest()


class Checkpoints:
    """The newest checkpoint of this process and the one before."""

    def __init__(self, folder: Path, allsum: Spread, digest: str) -> None:
        self.folder, self.allsum, self.digest = folder, allsum, digest
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"The folder {folder} for checkpoints cannot be made ({error.strerror}): give another one."
            ) from None
        self.newest = folder / f"checkpoint-{allsum.rank}-of-{allsum.world}.npz"
        self.before = self.newest.with_suffix(".previous.npz")
        for file in (self.newest, self.before):
            target_of(file)  # says now what must not be replaced
        self.number = self.written = 0
        self._pages: tuple[list[Any], tuple[Any, ...] | None, tuple[Any, ...] | None] = [], None, None
        self._last, self._cost = time.perf_counter(), 0.0

    def keep(self, stages: Stages) -> None:
        """Remember where the fit is; write it if that would not take too large a share of the time."""
        self.number += 1
        self._pages = [*stages.done], stages.begun, stages.within
        due = time.perf_counter() - self._last >= self._cost / SHARE
        if self.allsum.first(due):  # all processes write, or none
            self.write()

    def write(self) -> None:
        """Write what was remembered last, unless it is written."""
        if self.written == self.number:
            return
        began = time.perf_counter()
        draft = self.newest.with_suffix(".next.npz")
        try:
            saving.write(draft, self._archive(), quick=True)
            if self.newest.exists():
                os.replace(self.newest, self.before)
            os.replace(draft, self.newest)
        except OSError as error:
            warnings.warn(
                f"The checkpoint {self.newest} could not be written ({error.strerror or error}): the fit "
                f"goes on, and the checkpoint before it stays.",
                RuntimeWarning,
                stacklevel=2,
            )
        self.written, self._last = self.number, time.perf_counter()
        self._cost = self._last - began

    def _archive(self) -> saving.Archive:
        arrays: list[np.ndarray] = []
        here = lambda leaf: self.allsum.rows(leaf) if isinstance(leaf, jax.Array) else leaf  # noqa: E731
        done, begun, within = jax.tree.map(here, self._pages)
        document = {
            "format": saving.FORMAT,
            "library": version("deepprox"),
            "fingerprint": self.digest,
            "number": self.number,
            "done": saving.encode(done, arrays, "the checkpoint"),
            "begun": saving.encode(begun, arrays, "the checkpoint"),
            "within": saving.encode(within, arrays, "the checkpoint"),
        }
        return saving.Archive(document, arrays)

    def resume(self) -> Stages:
        """The stages in the newest checkpoint that every process has; none where no process has a file."""
        found: dict[int, Stages] = {}
        refused: list[str] = []
        for path in (self.newest, self.before):
            if path.exists():
                try:
                    number, stages = self._read(path)
                    found[number] = stages
                except (ValueError, OSError) as error:
                    refused.append(f"{path} is refused: {error}")
        numbers = np.full(2, -1)
        numbers[: len(found)] = [*found]
        theirs = [{*row} - {-1} for row in self.allsum.gather(numbers).tolist()]
        common = set.intersection(*theirs)
        if not common and not self.allsum(np.asarray(len(found) + len(refused))):
            return Stages()
        if not common:
            reason = ". ".join(refused) or "the processes have different ones"
            raise ValueError(
                f"There is no checkpoint in {self.folder} to resume from. {reason}. Fit with resume=False to "
                f"begin again."
            )
        for sentence in refused:
            warnings.warn(f"{sentence}. The one before it is used.", RuntimeWarning, stacklevel=4)
        self.number = self.written = int(max(common))
        return found[self.number]

    def _read(self, path: Path) -> tuple[int, Stages]:
        archive = saving.read(path, LIMIT)
        number, digest = archive.document.get("number"), archive.document.get("fingerprint")
        if digest != self.digest:
            raise ValueError("it is of other data, other settings or another number of processes")
        done, begun, within = (
            saving.decode(archive.document.get(name), archive.arrays, RECORDS, _nothing)
            for name in ("done", "begun", "within")
        )
        pages = type(done) is list and type(begun) in PAGES and type(within) in PAGES
        if type(number) is not int or number < 1 or not pages:
            raise ValueError("it is no checkpoint")
        return number, Stages(done, begun, within=within)


PAGES = (tuple, type(None))


def _nothing(model: Any) -> None:
    """A checkpoint holds no estimators."""
    raise ValueError("it holds an estimator")
