"""Architectures side by side: loss, degrees of freedom, criteria, and the evidence for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from deepprox.checks import need_name, need_spread, need_verbose, shown
from deepprox.estimators._base import DeepBase
from deepprox.estimators._plain import copied
from deepprox.estimators._response import loss_of
from deepprox.posterior.laplace import laplace
from deepprox.report.summary import architecture
from deepprox.report.table import Report, Table
from deepprox.runtime import precision
from deepprox.selection.progress import counting
from deepprox.statistics.criteria import need_likelihood
from deepprox.statistics.names import CRITERIA

MEASURES = (*CRITERIA, "evidence")
COLUMNS = {  # of the printed table; the frame has more
    "n_nonzero": "non-zeros",
    "df": "df",
    "aic": "AIC",
    "bic": "BIC",
    "log_evidence": "log p(y)",
    "weight_aic": "by AIC",
    "weight_bic": "by BIC",
    "weight_evidence": "by p(y)",
}


@dataclass(frozen=True)
class Comparison:
    """Fitted models of one response side by side; lower criteria and higher evidence are better.

    ``weight_c = exp(-c / 2) / sum exp(-c / 2)`` for a criterion ``c`` (Akaike weights); for the evidence
    ``c = -2 log p(y)``, with Laplace's approximation on the live weights, and ratios of ``p(y)`` are Bayes
    factors. A model for which a measure is not defined has weight 0 in it, and ``why`` says so.
    """

    names: tuple[str, ...]
    estimators: tuple[Any, ...]
    log_evidence: tuple[float, ...]
    why: tuple[str, ...]

    @cached_property
    def criteria(self) -> list[Any]:
        """The criteria of every model."""
        return [model.criteria() for model in self.estimators]

    def values(self, by: str) -> np.ndarray:
        """A criterion of every model, or minus twice its log evidence; nan where it is not defined."""
        need_name("by", by, MEASURES)
        if by == "evidence":
            return -2 * np.array(self.log_evidence)
        return np.array([getattr(one, by) for one in self.criteria], float)

    def weights(self, by: str = "aic") -> np.ndarray:
        """How much each model counts: they sum to one."""
        values = self.values(by)
        if not np.isfinite(values).any():
            raise ValueError(
                f"The {by} is defined for none of the models: {'; '.join(filter(None, self.why))}"
            )
        relative = np.exp(-(values - np.nanmin(values)) / 2)
        relative = np.where(np.isfinite(values), relative, 0.0)
        return np.asarray(relative / relative.sum())

    def best(self, by: str = "bic") -> Any:
        """The model with the lowest criterion, or the highest evidence."""
        return self.estimators[int(np.argmax(self.weights(by)))]

    def bayes_factors(self) -> Any:
        """``p(y | row) / p(y | column)``: a DataFrame."""
        import pandas as pd

        log_p = np.array(self.log_evidence)
        return pd.DataFrame(np.exp(log_p[:, None] - log_p[None, :]), self.names, self.names)

    def frame(self) -> Any:
        """One row for every model, as a pandas DataFrame."""
        import pandas as pd

        models = self.estimators
        columns: dict[str, Any] = {
            "loss": [model.loss_ for model in models],
            "n_inputs": [int(model.selected_features_.sum()) for model in models],
            "n_nonzero": [model.n_nonzero_ for model in models],
            "df": [one.df for one in self.criteria],
        }
        columns |= {name: self.values(name) for name in CRITERIA}
        columns["log_evidence"] = np.array(self.log_evidence)
        for name in ("aic", "bic", "evidence"):
            if np.isfinite(self.values(name)).any():
                columns[f"weight_{name}"] = self.weights(name)
        return pd.DataFrame(columns, index=pd.Index(self.names, name="model"))

    def predict_proba(self, X: Any, by: str = "aic") -> np.ndarray:
        """Probabilities averaged over the models with their weights."""
        if not is_classifier(self.estimators[0]):
            raise ValueError("These models predict numbers, which have no probabilities: ask for predict().")
        return self._average("predict_proba", X, by)

    def predict(self, X: Any, by: str = "aic") -> np.ndarray:
        """The response averaged over the models, or the class whose averaged probability is largest."""
        if is_classifier(self.estimators[0]):
            return np.asarray(self.estimators[0].classes_[self.predict_proba(X, by).argmax(axis=1)])
        return self._average("predict", X, by)

    def _average(self, method: str, X: Any, by: str) -> np.ndarray:
        counted = [(w, model) for w, model in zip(self.weights(by), self.estimators) if w > 0]
        return np.asarray(sum(w * getattr(model, method)(X) for w, model in counted))

    def plot(self, by: Sequence[str] = ("aic", "bic", "evidence")) -> Any:
        """Draw how far each model is behind the best, and the weights.

        Parameters
        ----------
        by : sequence of str, default=("aic", "bic", "evidence")
            What to compare by; measures that are defined for no model are left out.

        Returns
        -------
        display : deepprox.plotting.ComparisonDisplay
            The drawing, with its ``figure_`` and ``axes_``.
        """
        from deepprox.plotting import ComparisonDisplay

        if not isinstance(by, list | tuple):
            raise TypeError(f"by must be a list of measures, got {shown(by)}.")
        return ComparisonDisplay.from_comparison(self, by=by)

    def report(self) -> Report:
        """The table, and why a number is missing where one is."""
        frame = self.frame()
        shown = {column: words for column, words in COLUMNS.items() if column in frame}
        cells = zip(frame.index, frame[list(shown)].to_numpy())
        rows = [(str(name), *map(_said, row)) for name, row in cells]
        tables = [Table(rows, ("model", *shown.values()), numeric=tuple(range(1, 1 + len(shown))))]
        missing = [(name, reason) for name, reason in zip(self.names, self.why) if reason]
        if missing:
            tables.append(Table(missing, ("model", "not defined"), "What is missing, and why"))
        return Report(tables)

    def __str__(self) -> str:
        return str(self.report())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def compare(
    estimators: Any,
    X: Any,
    y: Any,
    *,
    sigma: float | None = None,
    sample_weight: Any = None,
    verbose: int = 0,
) -> Comparison:
    """Fit estimators of one response and put them side by side.

    Parameters
    ----------
    estimators : list of estimators, or dict from names to estimators
        Networks that differ in links, widths, depths, penalties or strengths, with the same loss. They are
        cloned and fitted; those of a list are named by their architecture.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Response.
    sigma : float, default=None
        Standard deviation of the response for the evidence of squared loss, the same for all models; by
        default the least ``sqrt(RSS / (n - df))`` among them.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the observations.
    verbose : int, default=0
        1 shows a progress bar over the estimators.

    Returns
    -------
    comparison : Comparison
        Prints as a table; ``frame()``, ``plot()``, ``best()``, ``predict()`` and ``predict_proba()``.
    """
    given = dict(estimators) if isinstance(estimators, Mapping) else None
    each: Any = list(given.values()) if given is not None else estimators
    if not isinstance(each, list | tuple) or not all(isinstance(one, DeepBase) for one in each):
        raise TypeError(
            f"estimators must be a list or a dict of deepprox's estimators, got {shown(estimators)}."
        )
    each = list(each)
    if len(each) < 2:
        raise ValueError(f"A comparison needs at least 2 estimators, got {len(each)}.")
    if sigma is not None:
        need_spread("sigma", sigma)
    need_verbose(verbose)
    _check_losses(each)
    fitted = [
        copied(model).fit(X, y, sample_weight=sample_weight) for model in counting(each, "models", verbose)
    ]
    names = tuple(map(str, given)) if given is not None else _names(fitted)
    if sigma is None and fitted[0].fitted_.loss.free_scale:
        known = [model.sure().sigma for model in fitted if not model.criteria().message]
        sigma = min(known, default=None)
    evidence = [_evidence(model, sigma) for model in fitted]
    return Comparison(names, tuple(fitted), *zip(*evidence, strict=True))


def _check_losses(models: list[Any]) -> None:
    """ValueError unless all have one loss, which is a likelihood; what no loss is, a fit will say."""
    losses = [loss_of(model) for model in models]
    known = {type(loss).__name__: loss for loss in losses if loss is not None}
    if len(known) > 1:
        kinds = " and ".join(sorted(known))
        raise ValueError(
            f"Criteria compare models with the same loss, and these have {kinds}: give all the same loss, or "
            f"compare what folds leave out with sklearn.model_selection.cross_val_score."
        )
    for name, loss in known.items():
        need_likelihood(name, loss.likelihood)


def _names(models: list[Any]) -> tuple[str, ...]:
    """Architectures, with a number where two are the same."""
    names = [architecture(model) for model in models]
    return tuple(f"{name} #{k + 1}" if names.count(name) > 1 else name for k, name in enumerate(names))


def _evidence(model: Any, sigma: float | None) -> tuple[float, str]:
    """The log evidence on the live weights, or nan and why."""
    known, fitted = model.criteria(), model.fitted_
    if known.message:
        return np.nan, known.message
    with precision(np.float64):
        try:
            found = laplace(fitted.problem(), fitted.W, fitted.n, sigma)
        except ValueError as error:  # no strict minimum, or no proper posterior: a reason to show
            return np.nan, f"evidence: {error}"
    return (np.nan, f"evidence: {found.message}") if found.log_evidence is None else (found.log_evidence, "")


def _said(value: float) -> str:
    if np.isnan(value):
        return "-"
    return (
        f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}" if abs(value) > 1 else f"{value:.3f}"
    )
