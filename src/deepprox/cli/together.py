"""``deepprox fit --distributed``: one of several processes that fit a table together, each its own rows."""

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from deepprox.cli.fitting import keep, quietly
from deepprox.cli.training import Prepared, _complete, asked, columns_of, estimator, missing_texts, task_of
from deepprox.cli.voice import NOT_CONVERGED, OK, WRONG, Voice, complain, sentence
from deepprox.files import need_writable
from deepprox.spreading import Devices
from deepprox.spreading.processes import FAILED, connect
from deepprox.tables import Columns, gathering, read_response, read_table, refuse
from deepprox.tables.columns import MISSING


def fit_together(voice: Voice, options: dict[str, Any], command: str) -> int:
    """Fit as one of several processes; the exit code. Whatever fails ends this process at once."""
    if options["alpha"] is None:
        raise ValueError("A fit of several processes needs a strength: give --alpha a number.")
    if task_of(options) == "auto":
        raise ValueError("A process sees some rows only: say what the response is with --task.")
    if options["data"] == "-":
        raise ValueError("Several processes cannot share standard input: give a file.")
    need_writable(options["out"])
    with speaking_last():
        connect()
        allsum = Devices(jax.devices())
        try:
            voice = voice if allsum.rank == 0 else Voice(voice.as_json, True)
            prepared = prepare_rows(voice, options, allsum)
            model = estimator(prepared, options, options["alpha"], voice.progress)
            model.set_params(devices="all", checkpoint=options["checkpoint"], resume=options["resume"])
            with quietly():
                model.fit(prepared.X, prepared.y)
        except BaseException as error:
            leave(error, allsum)
    code = OK if model.solution_.status in ("converged", "settled") else NOT_CONVERGED
    if allsum.rank == 0:
        model.set_params(devices=None)
        code = keep(voice, model, prepared, options["out"], {"command": command})
        sys.stdout.flush()
    allsum(np.zeros(1))  # all leave together, when the first has saved the model
    return code


def leave(error: BaseException, allsum: Devices) -> None:
    """Say what happened and end the process without waiting for the others: they would wait for it."""
    code, said = FAILED, ""
    if isinstance(error, ValueError | OSError | ImportError | MemoryError):
        code, said = WRONG, sentence(error)
    elif isinstance(error, jax.errors.JaxRuntimeError):
        said = f"process {allsum.rank} lost another one, and stops."
    elif isinstance(error, KeyboardInterrupt | SystemExit):
        code, said = 128 + signal.SIGTERM, f"process {allsum.rank} was asked to stop."
    else:
        traceback.print_exception(error)
    if said:
        complain(said if code == WRONG else " ".join([said, *getattr(error, "__notes__", [])]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def speaking_last() -> Iterator[None]:
    """Nothing on standard output in this block: the libraries that connect processes write there."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def prepare_rows(voice: Voice, options: dict[str, Any], allsum: Devices) -> Prepared:
    """This process's rows of the table as numbers, by what all processes know of its columns."""
    data, target = options["data"], options["target"]
    table = read_table(data, options["separator"], (allsum.rank, allsum.world), options["na_values"])
    used = _complete(asked(table, options), target, options["missing"], voice)
    inputs, columns = used.drop(columns=[target]), columns_of(options)
    reasons: list[str] = []
    with gathering(reasons):
        response = read_response(used[target], task_of(options))
    with gathering(reasons):
        columns.fit(inputs)
    refuse(reasons)
    agree(columns, inputs, allsum)
    n_rows, n_used = (int(n) for n in allsum((np.asarray(len(table)), np.asarray(len(used)))))
    facts = {"data": Path(data).name, "rows": n_rows, "rows_used": n_used, "target": target}
    facts |= {"task": response.task, "processes": allsum.world} | missing_texts(options)
    return Prepared(columns.transform(inputs), response.values, response.task, columns, facts)


def agree(columns: Columns, inputs: Any, allsum: Devices) -> None:
    """Levels and means over the rows of all processes, in place of those of this one."""
    counts = [int(inputs[name].notna().sum()) for name in inputs.columns]
    told = allsum.collect([columns.names_, columns.levels_, columns.means_, counts])
    if any(names != columns.names_ for names, *_ in told):
        raise ValueError("The processes read tables with different columns.")
    for k, name in enumerate(columns.names_):
        levels = [one[1][k] for one in told]
        if any(of is None for of in levels) and any(of is not None for of in levels):
            raise ValueError(
                f"Column {name!r} is numbers in some rows and text in others: mend it, or say --factor "
                f"{name!r}."
            )
        if columns.levels_[k] is not None:
            every = {level for of in levels for level in of}
            columns.levels_[k] = sorted(every - {MISSING}) + [MISSING] * (MISSING in every)
        else:
            n = np.array([one[3][k] for one in told])
            columns.means_[k] = float(n @ np.array([one[2][k] for one in told]) / n.sum())
