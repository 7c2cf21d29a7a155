"""Documents of format 1, in which a fitted network was a set of attributes, as those of today."""

from typing import Any

DERIVED = (
    "coefs_",
    "intercepts_",
    "coefs_standardized_",
    "intercepts_standardized_",
    "n_layers_",
    "n_outputs_",
    "n_iter_",
    "loss_",
    "objective_",
    "n_nonzero_",
    "selected_features_",
    "feature_importances_",
)
RENAMED = {
    "_network": "network",
    "_loss": "loss",
    "_scale": "scale",
    "_n": "n",
    "_one_column": "one_column",
    "_known": "statistics",
    "_stream": "stream",
}


def upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """The document with one record of the fit; what is missing or strange is for the reader to refuse."""
    match document.get("model"):
        case {"fitted": dict(before), **model} if "_W" in before:
            return document | {"model": {**model, "fitted": _with_record(before)}}
    return document


def _with_record(before: dict[str, Any]) -> dict[str, Any]:
    match before.get("solution_"):
        case {"fields": dict(facts)}:
            own = {name: value for name, value in facts.items() if name != "n_nonzero"}
        case _:
            own = {}
    live = {"record": "Live", "fields": {"reads": before.get("live_")}}
    own |= {"W": before["_W"], "live": live, "history": before.get("_history")}
    fields = {name: before[old] for old, name in RENAMED.items() if old in before}
    fields = {"one_column": True} | fields | {"solution": {"record": "Solution", "fields": own}}
    gone = {*RENAMED, *DERIVED, "_W", "_history", "live_", "solution_"}
    kept = {name: value for name, value in before.items() if name not in gone}
    return kept | {"fitted_": {"record": "Fitted", "fields": fields}}
