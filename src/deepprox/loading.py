"""From a file back to a fitted model: the closed list of classes that a file may name."""

import inspect
import os
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from deepprox import activities, links, losses, penalties, saving
from deepprox.blocks import Dense
from deepprox.checks import is_number, shown
from deepprox.estimators import DeepClassifier, DeepRegressor
from deepprox.estimators._base import DeepBase
from deepprox.estimators._fitted import Fitted
from deepprox.estimators._standardize import Scale
from deepprox.files import path_of
from deepprox.joining.live import Live
from deepprox.network import Network
from deepprox.report.paths import check_record
from deepprox.selection import DeepClassifierCV, DeepClassifierIC, DeepRegressorCV, DeepRegressorIC
from deepprox.selection.choosing import ByFolds
from deepprox.selection.held_out import HeldOut
from deepprox.solution import Solution
from deepprox.statistics.criteria import Likelihood
from deepprox.statistics.degrees_of_freedom import DegreesOfFreedom
from deepprox.tables import Columns


def _vocabulary() -> Iterator[type]:
    for module in (links, losses, penalties, activities):
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__.startswith(module.__name__) and is_dataclass(cls):
                yield cls


ESTIMATORS = (
    DeepClassifier,
    DeepClassifierCV,
    DeepClassifierIC,
    DeepRegressor,
    DeepRegressorCV,
    DeepRegressorIC,
)
CLASSES = {
    saving.name_of(cls): cls
    for cls in (*ESTIMATORS, Columns, HeldOut, Fitted, Solution, Live, Scale, Network, Dense, *_vocabulary())
}
MOST_SAID = 300  # characters of what is wrong with a file


class Saved(NamedTuple):
    """A fitted network, how it reads a table (None where it takes numbers), and notes about the fit."""

    network: Any
    columns: Columns | None
    notes: dict[str, Any]

    @property
    def model(self) -> Any:
        """What predicts: the network, or a pipeline that takes the raw table."""
        if self.columns is None:
            return self.network
        from sklearn.pipeline import Pipeline

        return Pipeline([("columns", self.columns), ("network", self.network)])


def load(path: str | os.PathLike[str], *, max_bytes: int = saving.LIMIT) -> Any:
    """A fitted model from a file that ``save`` or the command line wrote.

    Files hold data and no code: loading one constructs classes of this library alone, and a damaged or
    hostile file raises ValueError and runs nothing.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default=2**31
        The most that the file may unpack to.

    Returns
    -------
    model : estimator or Pipeline
        The fitted estimator; for a file of the command line a pipeline that takes the raw table.
    """
    return read(path, max_bytes=max_bytes).model


def read(path: str | os.PathLike[str], *, max_bytes: int = saving.LIMIT) -> Saved:
    """The parts of a saved file."""
    file = path_of(path, "path")
    if not is_number(max_bytes):
        raise ValueError(f"max_bytes must be a number of bytes, got {shown(max_bytes)}.")
    try:
        archive = saving.read(file, max_bytes)
        parts: dict[str, Any] = {name: archive.document.get(name) for name in ("model", "columns", "notes")}
        network, columns = (
            saving.decode(parts[name], archive.arrays, CLASSES, check) for name in ("model", "columns")
        )
        fitted = isinstance(network, DeepBase) and "fitted_" in vars(network)
        if not fitted or not isinstance(columns, Columns | None):
            raise ValueError("it holds no fitted network")
        _check_notes(parts["notes"])
        names = [*columns.get_feature_names_out()] if columns is not None else None
        if names is not None and names != [*vars(network).get("feature_names_in_", [])]:
            raise ValueError("its columns are not those that the network reads")
    except ValueError as error:
        said = " ".join(str(error).split())[:MOST_SAID]  # names in a file may be of any length
        raise ValueError(f"{file} cannot be loaded: {said}.") from None
    return Saved(network, columns, parts["notes"])


def _check_notes(notes: Any) -> None:
    """ValueError unless the notes are those that the command line writes, or none."""
    if not isinstance(notes, dict):
        raise ValueError("its notes are missing")
    if not all(
        isinstance(notes.get(name, ""), str)
        for name in ("command", "target", "rule", "data", "sha256", "na_values")
    ):
        raise ValueError("its notes are not texts")
    if "path" in notes:
        check_record(notes["path"])


def check(model: Any) -> None:
    """ValueError unless the parts of a loaded estimator fit each other."""
    if isinstance(model, DeepBase):
        fitted = vars(model).get("fitted_")
        if not isinstance(fitted, Fitted):
            raise ValueError("it holds no fitted network")
        saving.check_model(model)
        _check_statistics(fitted.statistics)
        if isinstance(model, ByFolds):
            model.check_fitted()
    else:
        model.check_fitted()


def _check_statistics(known: Any) -> None:
    """ValueError unless the statistics of a loaded network are those that it can have."""
    records = {"df": DegreesOfFreedom, "likelihood": Likelihood}
    if not isinstance(known, dict) or not known.keys() <= records.keys():
        raise ValueError("its statistics are missing")
    for name, facts in known.items():
        saving.check_types(saving.build(records[name], facts if isinstance(facts, dict) else {}), name)
