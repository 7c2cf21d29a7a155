"""The summary of a fitted network: what was fitted, how well it was solved, and what was selected."""

from typing import Any

import jax
import numpy as np

from deepprox.penalties import Mask
from deepprox.report.table import Report, Table
from deepprox.statistics.names import CRITERIA

MOST_INPUTS = 20
FEW = 1500  # live weights up to which degrees of freedom are worth the wait


def summarize(model: Any) -> Report:
    """Three tables of a fitted estimator: the fit, its blocks, and the selected inputs."""
    title = f"{type(model).__name__}: {architecture(model)}"
    return Report((Table(_fit_rows(model), title=title), _block_table(model), _input_table(model)))


def architecture(model: Any) -> str:
    """Widths and links from the inputs to the loss, as in ``4 - 10 sigmoid - 3 softmax``."""
    fitted = model.fitted_
    hidden = [f"{block.size} {name_of(block.link)}" for block in fitted.network.blocks[:-1]]
    return " - ".join([str(model.n_features_in_), *hidden, f"{model.n_outputs_} {name_of(fitted.loss)}"])


def name_of(word: Any) -> str:
    """The name of a vocabulary object with its numbers, as in ``l1(0.01)``."""
    if isinstance(word, Mask):
        return f"{name_of(word.penalty)} beside held zeros"
    numbers = [f"{float(leaf):.4g}" for leaf in jax.tree.leaves(word) if np.ndim(leaf) == 0]
    return type(word).__name__.lower() + (f"({', '.join(numbers)})" if numbers else "")


def _fit_rows(model: Any) -> list[tuple[str, str]]:
    found, fitted = model.solution_, model.fitted_
    penalties = dict.fromkeys(name_of(block.penalty) for block in fitted.network.blocks)
    n_weights = fitted.n_weights
    rows = [
        ("observations", f"{fitted.n}"),
        ("loss", f"{name_of(fitted.loss)}, mean {found.loss:.6g}"),
        ("penalty", f"{' / '.join(penalties)}, value {found.penalty:.6g}" + _bias_note(model)),
        *_strength_rows(model),
        ("objective", f"{found.objective:.8g}"),
        ("certificate", f"{found.certificate:.1e} (tol {model.tol:.0e})"),
        ("status", f"{found.message} after {found.n_iter} iterations"),
        ("non-zeros", f"{model.n_nonzero_} of {n_weights} ({model.n_nonzero_ / n_weights:.1%})"),
        *_statistics_rows(model),
        ("seconds", ", ".join(f"{phase} {time:.2f}" for phase, time in found.seconds.items())),
    ]
    if len(found.starts) > 1:
        low, middle, high = np.percentile(found.starts, [0, 50, 100])
        starts = f"{len(found.starts)}: objectives {low:.6g} best, {middle:.6g} median, {high:.6g} worst"
        rows.insert(6, ("starts", starts))
    return rows


def _strength_rows(model: Any) -> list[tuple[str, str]]:
    """The strength and how it was chosen, where it was, and what predicts where it is not this network."""
    facts = vars(model)
    if "alpha_" in facts and "loss_path_" not in facts and "risks_" not in facts:
        chosen = "criterion_" in facts
        by = "of the least criterion" if chosen else "the constant, or that of the fit before: no folds here"
        return [("alpha", f"{model.alpha_:.3g}, {by}")]
    if "estimators_" not in facts and "risks_" not in facts:
        return []
    count, n_folds = facts["risks_" if "risks_" in facts else "loss_path_"].shape
    folds = f"{n_folds} held-out folds" if n_folds > 1 else "the rows that were held out"
    if "risks_" in facts:
        return [("alpha", f"{model.alpha_:.3g}, of {count} the one that predicts {folds} best")]
    rule = f"the one that predicts {folds} best"
    if model.alpha_ != model.alpha_min_:
        rule = f"the strongest that predicts {folds} as well, within a standard error"
    words = [("alpha", f"{model.alpha_:.3g}, of {count} {rule}")]
    if model.average:
        many = f"mean of the {n_folds} networks of the folds" if n_folds > 1 else "network of the fold"
        words.append(("predictions", f"{many}; all else here is of the network of all rows"))
    return [*words, ("out of fold", f"score {model.oof_score_:.6g}")]


def _statistics_rows(model: Any) -> list[tuple[str, str]]:
    """Degrees of freedom and criteria, or why there are none."""
    fitted, loss = model.fitted_, model.fitted_.loss
    name, none = "degrees of freedom", ("criteria", f"none: {name_of(loss)} is not a likelihood")
    if loss.binary and not loss.likelihood:
        return [none]
    if "df" not in fitted.statistics and model.n_nonzero_ > FEW:
        return [(name, "not computed for so many weights: call degrees_of_freedom(), then summary() again")]
    certified = model.solution_.certificate <= model.tol  # else there are none, stored or not
    if certified and "df" not in fitted.statistics and fitted.data is None:
        return [(name, "not computed before the estimator was stored")]
    df = model.degrees_of_freedom()
    if not df.defined or not loss.likelihood:
        return [(name, str(df))] if loss.likelihood else [(name, str(df)), none]
    found = model.criteria()
    words = ", ".join(f"{written} {found[one]:.6g}" for one, written in CRITERIA.items())
    return [(name, str(df)), ("criteria", words)]


def _bias_note(model: Any) -> str:
    blocks = model.fitted_.network.blocks
    free = ", biases free" if any(block.free_bias for block in blocks) else ""
    return free if blocks[-1].bias else free + ", outputs without a bias"


def _block_table(model: Any) -> Table:
    widths = (*(int(mask.sum()) for mask in model.live_), model.n_outputs_)
    fitted = model.fitted_
    sizes = model.n_features_in_, *fitted.network.numbers(model.n_features_in_)
    rows = []
    for l, (block, w) in enumerate(zip(fitted.network.blocks, fitted.W)):
        count = f"{np.count_nonzero(w)} of {block.own(w).size}"
        reads, units = (f"{widths[k]} of {sizes[k]}" for k in (l, l + 1))
        link = name_of(block.link) if l < len(fitted.W) - 1 else name_of(fitted.loss)
        rows.append((str(l + 1), reads, units, link, name_of(block.penalty), count))
    header = ("block", "live inputs", "live units", "link", "penalty", "non-zeros")
    return Table(rows, header, numeric=(1, 2, 5))


def _input_table(model: Any) -> Table:
    n_in = model.n_features_in_
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(n_in)])
    sizes, alive = model.feature_importances_, model.selected_features_
    order = [j for j in np.argsort(-sizes, kind="stable") if alive[j]]
    fan = model.fitted_.network.blocks[0].readers(model.fitted_.W[0])
    rows = [(str(names[j]), f"{sizes[j]:.4f}", str(fan[j])) for j in order[:MOST_INPUTS]]
    if len(order) > MOST_INPUTS:
        rows.append((f"and {len(order) - MOST_INPUTS} more", "", ""))
    title = f"Selected inputs: {len(order)} of {n_in}"
    return Table(rows, ("input", "norm of its weights", "units that read it"), title, numeric=(1, 2))
