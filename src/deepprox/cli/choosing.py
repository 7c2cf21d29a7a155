"""A path of strengths and what rules choose on it: ``path``, ``select``, and ``fit --alpha auto``."""

from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold

from deepprox.cli.fitting import keep, quietly
from deepprox.cli.predicting import need_kind, write_table
from deepprox.cli.training import Prepared, estimator, largest_unit, prepare
from deepprox.cli.voice import OK, Voice
from deepprox.estimators import DeepClassifier
from deepprox.estimators._response import loss_of
from deepprox.files import need_writable, replacing
from deepprox.folds import FOLDS
from deepprox.report.paths import picks_table, record_of_path
from deepprox.report.table import Table
from deepprox.selection import Path, path
from deepprox.selection.choosing import RULES, choices
from deepprox.selection.fold_networks import Task, Walks

SHOWN = ("alpha", "objective", "loss", "n_inputs", "n_nonzero", "df", "aic", "bic", "ebic", "fold_loss")


class Walked(NamedTuple):
    """A path, and its record on the scale of the options.

    Where factors are groups, the path names the strongest of them, which is not ``alpha``.
    """

    path: Path
    record: dict[str, Any]


def walk(prepared: Prepared, options: dict[str, Any], voice: Voice) -> Walked:
    """The path that the options ask for; a loss that is no likelihood needs folds to choose by."""
    start = estimator(prepared, options, 1.0, voice.progress)
    loss = loss_of(start)
    rule = options["criterion"] = options["criterion"] or ("1se" if loss and not loss.likelihood else "bic")
    unit = 1.0 if isinstance(start.penalty, str) else largest_unit(prepared.columns.groups_)
    with quietly():
        if rule not in RULES:
            found = path(start, prepared.X, prepared.y, options["alphas"])
            return Walked(found, record_of_path(found, unit))
        walks = by_folds(start, prepared, options)
    losses = np.array([walks.judged(k)[0] for k in range(FOLDS)]).T
    best, within = choices(losses)
    record = record_of_path(walks.path, unit, {"1se": within, "min": best})
    record["frame"]["fold_loss"] = losses.mean(axis=1).tolist()
    return Walked(walks.path, record)


def by_folds(start: Any, prepared: Prepared, options: dict[str, Any]) -> Walks:
    """The path of all rows and those of five folds, which judge it."""
    split = StratifiedKFold if isinstance(start, DeepClassifier) else KFold
    cv = split(FOLDS, shuffle=True, random_state=options["seed"])
    task = Task.of(start, prepared.X, prepared.y, None, cv, None)
    return Walks(task, options["alphas"])


def choose_and_save(voice: Voice, options: dict[str, Any], command: str) -> int:
    """Walk a path, let a rule choose, save the model; the exit code."""
    need_writable(options["out"])
    prepared = prepare(voice, options)
    walked = walk(prepared, options, voice)
    rule = options["criterion"]
    if rule not in walked.record["picks"]:
        walked.path.select(rule)  # says why it cannot choose
    pick = walked.record["picks"][rule]
    model = walked.path[pick["index"]]
    voice.note(f"{rule} chooses alpha {pick['alpha']:.4g}, number {pick['index'] + 1} of {len(walked.path)}.")
    if pick["index"] == 0:
        voice.note("That is the weakest strength of the path: a weaker one, given by --alpha, may be better.")
    return keep(
        voice, model, prepared, options["out"], {"command": command, "rule": rule, "path": walked.record}
    )


def show_path(voice: Voice, options: dict[str, Any]) -> int:
    """Walk a path and show it."""
    for out in filter(None, (options["out"], options["plot"])):
        need_writable(out)
    if options["out"]:
        need_kind(options["out"])
    if options["plot"]:
        _need_picture(options["plot"])
    prepared = prepare(voice, options)
    walked = walk(prepared, options, voice)
    frame = pd.DataFrame(walked.record["frame"])
    if options["out"]:
        write_table(frame, options["out"])
        voice.note(f"Saved in {options['out']}.")
    if options["plot"]:
        kind = PurePath(options["plot"]).suffix[1:] or None
        with replacing(options["plot"]) as file:
            walked.path.plot().figure_.savefig(file, format=kind)
        voice.note(f"Saved in {options['plot']}.")
    shown = [name for name in SHOWN if name in frame]
    rows = [[f"{value:.5g}" for value in row] for row in frame[shown].to_numpy(float)]
    table = Table(rows, shown, f"Path of {len(frame)} strengths", numeric=range(len(shown)))
    picks = picks_table(walked.record["picks"], "What each rule chooses")
    voice.result(walked.record, f"{table.text(width=120)}\n\n{picks.text()}")
    return OK


def _need_picture(path: str) -> None:
    """ValueError for a name that does not say which kind of picture."""
    from matplotlib.backend_bases import FigureCanvasBase

    known, kind = FigureCanvasBase.get_supported_filetypes(), PurePath(path).suffix[1:].lower()
    if kind and kind not in known:
        raise ValueError(f"{path} is of an unknown kind {kind!r}: name it .svg, .png or .pdf.")
