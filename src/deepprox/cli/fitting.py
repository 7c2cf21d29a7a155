"""``deepprox fit``: from a table to a saved model."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from deepprox import saving
from deepprox.cli.training import Prepared, estimator, prepare
from deepprox.cli.voice import NOT_CONVERGED, OK, Voice, plain
from deepprox.files import need_writable


def fit_and_save(voice: Voice, options: dict[str, Any], command: str) -> int:
    """Fit, save, tell; the exit code."""
    need_writable(options["out"])
    prepared = prepare(voice, options)
    model = fit_one(prepared, options, voice)
    return keep(voice, model, prepared, options["out"], {"command": command})


def fit_one(prepared: Prepared, options: dict[str, Any], voice: Voice) -> Any:
    """The network at one strength."""
    model = estimator(prepared, options, options["alpha"], voice.progress)
    model.set_params(checkpoint=options.get("checkpoint"), resume=options.get("resume", False))
    with quietly():
        return model.fit(prepared.X, prepared.y)


@contextmanager
def quietly() -> Iterator[None]:
    """No warnings about convergence: the status and the exit code say it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def keep(
    voice: Voice,
    model: Any,
    prepared: Prepared,
    out: str,
    notes: dict[str, Any],
    record: dict[str, Any] | None = None,
) -> int:
    """Save a fitted network with its columns, and tell what it is next to the record; the exit code."""
    model.set_params(verbose=0)
    summary = model.summary()  # asks for the statistics, which need the data of the fit
    saving.save(model, out, prepared.columns, plain(prepared.facts | notes))
    told = record_of(model) | prepared.facts | (record or {}) | {"model": out}
    voice.result(told, f"{summary}\n\nSaved in {out}.")
    if model.solution_.status in ("converged", "settled"):
        return OK
    voice.note(f"Not converged: the fit {model.solution_.message}.")
    return NOT_CONVERGED


def record_of(model: Any) -> dict[str, Any]:
    """A fitted network in numbers."""
    found, fitted = model.solution_, model.fitted_
    names = [str(name) for name, lives in zip(model.feature_names_in_, model.selected_features_) if lives]
    record = {
        "class": type(model).__name__,
        "objective": found.objective,
        "loss": found.loss,
        "certificate": found.certificate,
        "status": found.status,
        "converged": found.done,
        "n_iter": found.n_iter,
        "n_nonzero": model.n_nonzero_,
        "n_weights": fitted.n_weights,
        "selected": names,
    }
    if fitted.loss.likelihood and "df" in fitted.statistics:
        record["criteria"] = dict(model.criteria())
    return record
