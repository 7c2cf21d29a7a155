"""``fit_stream``: a fit to more rows than memory holds.

The split phase, and the join phase after it, fit a random sample of the rows. From there Newton and
quasi-Newton steps go on over all rows, by passes over them, until the certificate over all rows is within
``tol``. It is the solver of every other fit; only its sums come by passes.
"""

import json
import os
import re
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from deepprox.checks import is_number, shown
from deepprox.diary import Stages
from deepprox.estimators import _resolve
from deepprox.estimators._base import E
from deepprox.estimators._checkpoint import checkpointing
from deepprox.estimators._plain import become, need_plain
from deepprox.estimators._response import Classes
from deepprox.estimators._seeds import seed_of
from deepprox.estimators._settings import resolve_settings
from deepprox.estimators._standardize import Moments, Scale, measured
from deepprox.estimators._watch import Silence, watching
from deepprox.estimators.session import Posed, Session
from deepprox.files import folder_of, write_text
from deepprox.joining.quasi_newton import Memory
from deepprox.memory import need, of_data
from deepprox.problem import Problem
from deepprox.runtime import precision
from deepprox.streaming.passes import Chunks, Passes
from deepprox.streaming.sources import Source, source_of
from deepprox.streaming.spool import Labels, Sample, spool
from deepprox.struct import replace

UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
PROGRAMS = 400 * 2**20  # bytes that compilers and compiled programs take
MORE = 2 * 2**30  # bytes that a fit may add to the process unless told otherwise
LEAST = 100 * 2**20  # bytes for rows below which nothing is begun
CHUNK = 2**16  # rows of a chunk, at most: more make no pass faster
SAMPLE = 200_000  # rows of the sample, at most: more start no better
SLACK = 1.1  # times as many rows as fit now that a fit which goes on may have begun with
FINE = 1e-4  # certificate of the sample from which steps over all rows begin: it differs from them by more
ROUGH = 1e-3  # certificate of the sample that is good enough to start from, without Newton steps


def fit_stream(
    model: E,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    max_memory: str | int | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> E:
    """Fit a network to rows that are read from files, in bounded memory.

    Parameters
    ----------
    model : DeepClassifier or DeepRegressor
        What to fit, in place.
    X : str, path, list of them, or ndarray
        Parquet, CSV or TSV files, a folder or a pattern of them; or a .npy file or an array, which may be
        mapped from a file.
    y : str or ndarray
        The name of the column to predict; with an array X an array or a .npy file.
    sample_weight : str or ndarray, default=None
        Weights of the observations, in the same ways.
    max_memory : str or int, default=None
        Bytes of memory that the process may take in all, libraries included, as a number or like "2GB". None:
        2 GB more than it has already.
    scratch : str or path, default=None
        A folder on a disk with room for all rows as numbers of the model's ``dtype``; by default that of
        temporary files. What is written there is removed at the end.

    Returns
    -------
    model : object
        The fitted model, with ``n_passes_``, the passes over all rows. It has no data to answer with where
        they are needed again, as for ``degrees_of_freedom``. With ``checkpoint`` it writes where it is after
        steps over all rows; with ``resume`` it reads the rows again and goes on from there.
    """
    need_streamable(model)
    dtype, room = _resolve.resolve_dtype(model.dtype), room_of(max_memory)
    source = source_of(X, y, sample_weight)
    scratch = None if scratch is None else folder_of(scratch, "scratch")
    widths = _resolve.resolve_widths(model.hidden_layer_sizes)
    with tempfile.TemporaryDirectory(prefix="deepprox-", dir=scratch) as folder:
        n_in, n_out = columns_of(source)
        need(of_data(2, n_in + n_out, 8))
        chunk = rows_of(n_in, [*widths, n_out], dtype.itemsize, room, CHUNK)
        plan = planned(model, rows_of(n_in, widths, 8, room // 2, SAMPLE), chunk)
        sample = Sample(plan.sample, np.random.default_rng(plan.seed))
        labels = Labels() if is_classifier(model) else None
        batch = rows_of(n_in, widths, 8, room // 2, CHUNK)
        spooled, moments, responses = spool(source, Path(folder), dtype, batch, labels, sample)
        centre = _resolve.resolve_centre(model.get_params(deep=False))
        scale = moments.scale(model.standardize, dtype, centre)
        with watching(model, Silence(), model.verbose, model.max_iter) as watch, precision(dtype):
            start = begin(model, plan.seed, sample, labels, scale, responses, source.names)

            def change(X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
                return scale.standardize(X), start.code(y), weight / moments.weight

            settings = model.get_params(deep=False), (*moments, plan.chunk)
            with checkpointing(model.checkpoint, model.resume, start.posed.problem, *settings) as stages:
                W, memory = stages.run(start.solve, watch)
                chunks = partial(spooled.rewrite(plan.chunk, change).chunks, plan.chunk)
                solve_stream(model, start, W, memory, chunks, scale, moments.n, watch, stages)
    if not model.solution_.done:
        warnings.warn(f"{type(model).__name__} {model.solution_.message}.", ConvergenceWarning, stacklevel=2)
    return model


def need_streamable(model: Any) -> None:
    """One sentence where an estimator asks for what a streamed fit cannot do."""
    need_plain(model, "fit_stream")
    for name, wanted in (("devices", None), ("warm_start", False), ("join", True)):
        if getattr(model, name) != wanted:
            raise ValueError(f"A streamed fit needs {name}={wanted}, got {getattr(model, name)!r}.")
    if isinstance(model.rho, np.ndarray | list | tuple) and any(np.ndim(one) for one in model.rho):
        raise ValueError("A streamed fit knows no row by its number: give rho one number per block.")
    resolve_settings(model.get_params(deep=False))


def columns_of(source: Source) -> tuple[int, int]:
    """How many inputs and responses there are, by the first rows."""
    first = next(iter(source.batches(2)), None)
    if first is None:
        return 0, 1
    return first.X.shape[1], 1 if np.ndim(first.y) == 1 else first.y.shape[1]


class Plan(NamedTuple):
    """What must stay for a fit to go on to the same bits: rows of the sample and of a chunk, and a seed."""

    sample: int
    chunk: int
    seed: int


def planned(model: Any, sample: int, chunk: int) -> Plan:
    """As many rows as the memory allows; for a fit that goes on, as many as it began with."""
    fresh = Plan(sample, chunk, seed_of(model.random_state))
    if model.checkpoint is None:
        return fresh
    file = folder_of(model.checkpoint, "checkpoint") / "stream.json"
    if not (model.resume and file.exists()):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(fresh))
        return fresh
    try:
        plan = Plan(*(int(number) for number in json.loads(file.read_text())))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error}): fit with resume=False to begin again.") from error
    if plan.sample > SLACK * fresh.sample or plan.chunk > SLACK * fresh.chunk:
        raise ValueError(
            "This fit began with more memory: give as much, or fit with resume=False to begin again."
        )
    return plan


class Start(NamedTuple):
    """The fit of the sample: its session, its problem, the order of its classes, and its certificate."""

    session: Session
    posed: Posed
    order: np.ndarray | None
    tol: float

    def solve(self, watch: Any) -> tuple[Any, Memory]:
        """Its weights, and what it learnt of the curvature; at last in the memory that a pass takes."""
        rough, problem = self.session.run(self.posed, watch), self.posed.problem
        rows: Any = tuple(np.asarray(a) for a in (problem.X, problem.y, problem.weight))
        passes = Passes(lambda: iter([rows]), self.posed.n)
        alone = self.posed._replace(problem=replace(problem, allsum=passes))
        again: Any = {"W": rough.W, "memory": rough.memory, "warm": False, "tol": self.tol}
        found = self.session.run(alone, watch, **again)
        passes.chunks = lambda: iter(())  # programs outlive the fit, and the sample need not
        return found.W, jax.tree.map(np.asarray, found.memory)

    def code(self, y: np.ndarray) -> np.ndarray:
        """Responses as the loss takes them, from those in the files."""
        Y, response = y, self.session.response
        if isinstance(response, Classes) and self.order is not None:
            Y = response.columns(self.order[y[:, 0].astype(int)])
        loss = self.posed.problem.loss
        strange = Y[~np.asarray(loss.takes(Y))]
        if strange.size:
            raise ValueError(
                f"loss={self.session.model.loss!r} takes responses that are {loss.responses}, but one "
                f"of them is {strange[0]:g}."
            )
        return Y


def begin(
    model: Any,
    seed: int,
    sample: Sample,
    labels: Labels | None,
    scale: Scale,
    responses: Moments,
    names: list[str] | None,
) -> Start:
    """The problem of the sample, its inputs and responses on the scale of all rows."""
    X, y, weight = sample.rows
    starter = clone(model).set_params(standardize=False, tol=max(model.tol, ROUGH))
    if not isinstance(model.random_state, int | np.integer):
        starter.set_params(random_state=seed)
    table: Any = scale.standardize(X)
    response: Any = y[:, 0] if y.shape[1] == 1 else y
    order = None
    if labels is not None:
        response = labels.classes[y[:, 0].astype(int)]
        order = np.argsort(np.argsort(labels.classes))
    session = Session(starter)
    if labels is None and model.standardize:
        centre = _resolve.resolve_intercept(session.settings) and not model.penalize_bias
        level = responses.scale(True, y.dtype, centre)
        loss = _resolve.resolve_loss(model.loss, session.response.losses, model.join, y, y.dtype)
        session.settings["loss"] = measured(loss, y, weight / weight.sum(), level, centre=centre)
    rows = session.read(pd.DataFrame(table, columns=names) if names else table, response, weight)
    return Start(session, session.pose(rows), order, max(model.tol, FINE))


def solve_stream(
    model: Any,
    start: Start,
    W: Any,
    memory: Memory,
    chunks: Chunks,
    scale: Scale,
    n: int,
    watch: Any,
    stages: Stages,
) -> None:
    """Steps over all rows from the solution of the sample; the model keeps what they end with."""
    passes, sampled = Passes(chunks, n), start.posed.problem
    problem = Problem(sampled.network, sampled.loss, *next(iter(chunks())), passes)
    posed = start.posed._replace(problem=problem, scale=scale, rho=None, n=n)
    become(model, start.session.model)
    session = Session(model)
    session.keep(session.run(posed, watch, W=W, memory=memory, stages=stages), posed)
    model.n_passes_ = passes.passes


def room_of(max_memory: Any) -> int:
    """Bytes that rows may take: what is allowed, less what the process has and what programs will need."""
    if isinstance(max_memory, str):
        found = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)I?B?\s*", max_memory.upper())
        if not found:
            raise ValueError(f"max_memory must be bytes, as a number or like '2GB', got {shown(max_memory)}.")
        max_memory = float(found[1]) * UNITS[found[2] + "B" * bool(found[2])]
    if max_memory is not None and not is_number(max_memory):
        raise ValueError(f"max_memory must be bytes, as a number or like '2GB', got {shown(max_memory)}.")
    room = (MORE if max_memory is None else int(max_memory) - resident()) - PROGRAMS
    if room < LEAST:
        least = (LEAST + resident() + PROGRAMS) / 2**30
        raise ValueError(
            f"max_memory is too little: the process has {resident() / 2**30:.1f} GB already, and a streamed "
            f"fit needs {least:.1f} GB in all."
        )
    return room


def resident() -> int:
    """Bytes of memory that this process has."""
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource  # not on every system

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def rows_of(n_in: int, widths: list[int], itemsize: int, room: int, most: int) -> int:
    """Rows that fit: copies of the inputs, and what the layers keep for the way back."""
    each = itemsize * (8 * n_in + 16 * sum(widths) + 8)
    return int(np.clip(room // each, 256, most))
