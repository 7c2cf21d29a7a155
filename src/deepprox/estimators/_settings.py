"""The settings that are no words: counts, tolerances, switches, seeds and folders."""

from collections.abc import Mapping
from typing import Any

from deepprox.checks import is_number, is_whole, need_switches, shown
from deepprox.estimators._limits import need_limits
from deepprox.estimators._resolve import resolve_sizes, resolve_splits
from deepprox.estimators._seeds import need_seed
from deepprox.files import folder_of


def resolve_settings(params: Mapping[str, Any]) -> None:
    """Complain about what remains: counts, tolerances, switches and seeds."""
    for name in ("n_init", "max_iter"):
        if not is_whole(params[name]):
            raise ValueError(f"{name} must be a whole number of at least 1, got {shown(params[name])}.")
    batch = params["batch_size"]
    named = batch is None or (isinstance(batch, str) and batch == "auto")
    if not (named or is_whole(batch)):
        raise ValueError(
            f"batch_size must be 'auto', a whole number of at least 1, or None, got {shown(batch)}."
        )
    need_switches(params)
    need_limits(params)
    need_seed(params["random_state"])
    if not named and not params["join"]:
        raise ValueError("batch_size takes the place of the split phase, and join=False leaves only that.")
    tol = params["tol"]
    if not is_number(tol) or tol <= 0:
        raise ValueError(f"tol must be a positive number, got {shown(tol)}.")
    if params.get("checkpoint") is not None:
        folder_of(params["checkpoint"], "checkpoint")
    if params.get("resume") and params.get("checkpoint") is None:
        raise ValueError("resume=True needs the folder of the interrupted fit: give checkpoint='...'.")
    resolve_splits(params["splits"], len(resolve_sizes(params["hidden_layer_sizes"])))
    if params["splits"] == "none" and not params["join"]:
        raise ValueError("splits='none' and join=False leave nothing to do: keep one of the two phases.")
