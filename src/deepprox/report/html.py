"""The report of a fitted model: one HTML file that needs nothing else."""

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np

from deepprox.files import path_of, write_text
from deepprox.report import figures
from deepprox.report.network import NetworkDrawing
from deepprox.report.page import Card, Section, bars, facts, figure, heat, page, paragraph, tables
from deepprox.report.paths import path_section
from deepprox.report.summary import architecture, name_of, summarize
from deepprox.report.table import Table
from deepprox.statistics.names import CRITERIA

MOST_INPUTS = 40
MOST_CLASSES = 30  # of a confusion matrix that is drawn whole
MOST_RESPONSES = 4  # columns of a response that get pictures of their own
LIBRARIES = ("deepprox", "jax", "jaxlib", "numpy", "scipy", "scikit-learn", "pandas")


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    response: str = "response",
    command: str | None = None,
    origin: Mapping[str, str] | None = None,
    path_record: Mapping[str, Any] | None = None,
    rule: str | None = None,
    draws: Any = None,
) -> None:
    """Write the report of a fitted model about the observations ``X, y`` to an HTML file.

    ``response`` names what is predicted, ``command`` is what made the model, and ``origin`` holds
    further lines on where it came from. ``path_record`` is :func:`deepprox.report.paths.record_of_path` of
    the path on which ``rule`` chose the model, ``draws`` those of its posterior.
    """
    file = path_of(path, "path")
    judged = _classes(model, X, y) if "classes_" in vars(model) else _numbers(model, X, y, response)
    output_names = None if "classes_" in vars(model) or model.n_outputs_ > 1 else [response]
    sections = [
        Section("What was fitted", _fitted(model)),
        Section("The network that is left", _network(model, output_names)),
        Section("Inputs", _inputs(model)),
        Section("Convergence", _convergence(model)),
        *([Section("The path", path_section(path_record, rule))] if path_record else []),
        *judged.sections,
        *([Section("Posterior", _posterior(draws))] if draws is not None else []),
        Section("Degrees of freedom and criteria", _statistics(model)),
        Section("How to repeat it", _repeat(model, command, origin or {})),
    ]
    text = page(
        title or f"{type(model).__name__}: {architecture(model)}",
        f"Fitted to {model.fitted_.n} observations of {model.n_features_in_} inputs; judged by {len(y)}.",
        _cards(model, judged),
        sections,
        f"Written by deepprox {version('deepprox')}.",
    )
    write_text(file, text)


class _Judged:
    """What the observations say about a model: the number for its card, and sections."""

    def __init__(self, card: Card, sections: Sequence[Section]) -> None:
        self.card = card
        self.sections = sections


def _cards(model: Any, judged: _Judged) -> list[Card]:
    found, n_weights = model.solution_, model.fitted_.n_weights
    return [
        judged.card,
        Card(f"{model.n_nonzero_} of {n_weights}", f"weights are left ({model.n_nonzero_ / n_weights:.1%})"),
        Card(f"{int(model.selected_features_.sum())} of {model.n_features_in_}", "inputs are left"),
        Card(f"{found.objective:.6g}", "objective"),
        Card(found.status, f"certificate {found.certificate:.1e}", "good" if found.done else "warn"),
    ]


def _fitted(model: Any) -> str:
    fit, blocks, _ = summarize(model).tables
    return facts(replace(fit, title="")) + tables(blocks)


def _network(model: Any, output_names: Sequence[str] | None) -> str:
    if not model.selected_features_.any():
        return paragraph("No input is left: the model predicts the same for every observation.")
    drawing = NetworkDrawing.from_estimator(model, output_names)
    words = "First weights are those of standardised inputs. Point at a line or a dot to read it."
    return f'<div class="scroll">{figure(drawing.svg(), words, "network")}</div>'


def _inputs(model: Any) -> str:
    n_in = model.n_features_in_
    names = [str(name) for name in vars(model).get("feature_names_in_", [f"x{j}" for j in range(n_in)])]
    sizes, alive = model.feature_importances_, model.selected_features_
    order = [j for j in np.argsort(-sizes, kind="stable") if alive[j]]
    rows = [(names[j], float(sizes[j]), f"{sizes[j]:.4f}") for j in order[:MOST_INPUTS]]
    parts = [paragraph("Norm of the first weights of every input that is left, inputs standardised.")]
    parts.append(bars(rows))
    if len(order) > MOST_INPUTS:
        parts.append(paragraph(f"And {len(order) - MOST_INPUTS} more.", "soft"))
    gone = [name for name, lives in zip(names, alive) if not lives]
    if gone:
        listed = ", ".join(gone[:200]) + (f" and {len(gone) - 200} more" if len(gone) > 200 else "")
        parts.append(f"<p><b>Removed ({len(gone)}):</b> {escape(listed)}</p>")
    return "".join(parts)


def _convergence(model: Any) -> str:
    return paragraph(model.solution_.message[0].upper() + model.solution_.message[1:] + ".") + figure(
        figures.convergence(model)
    )


def _classes(model: Any, X: Any, y: Any) -> _Judged:
    from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, precision_recall_fscore_support

    y, predicted = np.asarray(y), model.predict(X)
    labels = model.classes_
    counts = confusion_matrix(y, predicted, labels=labels)
    precision, recall, _, support = precision_recall_fscore_support(
        y, predicted, labels=labels, zero_division=np.nan
    )
    names = [str(label) for label in labels]
    rows = [
        (name, f"{p:.3f}", f"{r:.3f}", str(int(s)))
        for name, p, r, s in zip(names, precision, recall, support, strict=True)
    ]
    table = Table(rows, ("class", "precision", "recall", "observations"), numeric=(1, 2, 3))
    shown = heat(counts.tolist(), names) if len(names) <= MOST_CLASSES else ""
    accuracy = accuracy_score(y, predicted)
    words = f"{accuracy:.1%} of {len(y)} are in their class. Rows are observed, columns predicted."
    parts = [f'<div class="pair"><div>{shown}</div><div>{tables(table)}</div></div>']
    sections = [Section("Confusion", paragraph(words) + "".join(parts))]
    if model.fitted_.loss.likelihood:
        p = model.predict_proba(X)
        score = log_loss(y, p, labels=labels)
        sections.append(Section("Calibration", _class_calibration(p, y, labels, score)))
    return _Judged(Card(f"{accuracy:.1%}", "accuracy"), sections)


def _class_calibration(p: np.ndarray, y: np.ndarray, labels: np.ndarray, score: float) -> str:
    two = len(labels) == 2
    predicted = p[:, 1] if two else p.max(axis=1)
    observed = (y == (labels[1] if two else labels[p.argmax(axis=1)])).astype(float)
    what = f"Probability of the class {labels[1]}" if two else "Probability of the predicted class"
    words = f"{what}, predicted and observed, in {figures.GROUPS} groups. Mean logarithmic loss {score:.4g}."
    return figure(figures.calibration(predicted, observed, "probability"), words)


def _numbers(model: Any, X: Any, y: Any, response: str) -> _Judged:
    from sklearn.metrics import mean_absolute_error, r2_score

    fitted, observed = (np.asarray(a, float).reshape(len(y), -1) for a in (model.predict(X), y))
    several = observed.shape[1] > 1
    names = [f"{response} {k + 1}" if several else response for k in range(observed.shape[1])]
    rows, residuals, curves = [], [], []
    for k, name in enumerate(names):
        a, b = fitted[:, k], observed[:, k]
        error = math.sqrt(float(np.mean((a - b) ** 2)))
        rows.append((name, f"{r2_score(b, a):.4f}", f"{error:.5g}", f"{mean_absolute_error(b, a):.5g}"))
        if k < MOST_RESPONSES:
            said = name if several else ""
            pair = figure(figures.fitted_and_observed(a, b), said) + figure(figures.residuals(a, b), said)
            residuals.append(f'<div class="pair">{pair}</div>')
            curves.append(figure(figures.calibration(a, b, "response"), said))
    header = ("response", "R squared", "root mean square error", "mean absolute error")
    table = Table(rows, header, numeric=(1, 2, 3))
    words = f"Means of the predicted and of the observed response in {figures.GROUPS} groups of equal size."
    sections = [
        Section("Residuals", tables(table) + "".join(residuals)),
        Section("Calibration", paragraph(words) + f'<div class="pair">{"".join(curves)}</div>'),
    ]
    return _Judged(Card(f"{r2_score(observed, fitted):.3f}", "R squared"), sections)


def _posterior(draws: Any) -> str:
    """What was drawn, whether to trust it, and whether the model would give such data."""
    told, detail = draws.summary().tables
    words = "Responses that the draws would give at observations of the fit, beside those that were seen."
    parts = [facts(replace(told, title="")), figure(figures.of_draws(draws.plot_check()), words)]
    overview = figure(figures.of_draws(draws.plot()), "Chains, and the inputs with their intervals.", "wide")
    return "".join([*parts, tables(detail), f'<div class="scroll">{overview}</div>'])


def _statistics(model: Any) -> str:
    """Degrees of freedom and criteria, or why there are none."""
    if "df" not in model.fitted_.statistics and model.solution_.certificate <= model.tol:
        return paragraph("Not computed: call degrees_of_freedom() before the model is stored or reported.")
    df = model.degrees_of_freedom()
    rows = [("degrees of freedom", str(df))]
    if df.defined and model.fitted_.loss.likelihood:
        found = model.criteria()
        shown = {"log_likelihood": "log-likelihood"} | CRITERIA
        rows += [(words, f"{found[name]:.6g}") for name, words in shown.items()]
    return facts(Table(rows)) + paragraph("Of two models the lower criterion is the better one.", "soft")


def _repeat(model: Any, command: str | None, origin: Mapping[str, str]) -> str:
    defaults = type(model)().get_params()
    changed = {k: v for k, v in model.get_params().items() if repr(v) != repr(defaults[k])}
    call = ", ".join(f"{name}={_said(value)}" for name, value in changed.items())
    parts = [f"<pre>{escape(command)}</pre>"] if command else []
    parts.append(f"<pre>{escape(f'{type(model).__name__}({call})')}</pre>")
    rows = [(name, said) for name, said in origin.items()]
    rows += [("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    rows += [(name, version(name)) for name in LIBRARIES]
    return "".join(parts) + facts(Table(rows))


def _said(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(_said(one) for one in value)}{',' * (len(value) == 1)})"
    return name_of(value) if type(value).__module__.startswith("deepprox.") else repr(value)
