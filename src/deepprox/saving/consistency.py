"""Whether the parts of a loaded network fit each other, before anything is computed with them."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import jax
import numpy as np
from sklearn.base import ClassifierMixin

from deepprox.activities import Activity
from deepprox.blocks import Block
from deepprox.links import Link
from deepprox.losses import Loss
from deepprox.penalties import Penalty
from deepprox.problem import Network
from deepprox.solution import Solution


def check_model(model: Any) -> None:
    """ValueError unless weights, network, scale, names and records of a fitted network belong together."""
    facts = _Facts(model)
    for name, kind in {"n": int, "n_features_in_": int, "one_column": bool}.items():
        _need(type(facts[name]) is kind, f"{name} is not of the type {kind.__name__}")
    _need(facts["data"] is None, "it holds data")
    _need(isinstance(facts["solution"], Solution), "the solution is not one")
    check_types(facts["solution"], "solution_")
    _check_network(facts)
    _check_weights(facts)
    _rehearse(facts)
    _check_inputs(facts)
    _check_outputs(facts, isinstance(model, ClassifierMixin))
    _need(fits(model.tol, float), "tol is not a number")
    history = facts["solution"].history
    _need(history, "the history is missing")
    _need(all("iteration" in row for row in history), "the history has strange rows")


def check_types(record: Any, name: str) -> None:
    """ValueError unless the fields of a record have the types that its class says."""
    _need(is_dataclass(record), f"{name} is not a record")
    hints = get_type_hints(type(record))
    for field in fields(record):
        right = fits(getattr(record, field.name), hints[field.name])
        _need(right, f"{name}.{field.name} is of the wrong type")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is a ``float | None``, a ``dict[str, float]`` and so on; whole numbers are floats."""
    inner = get_args(hint)
    if hint is Any:
        return True
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if get_origin(hint) in (tuple, list):
        return isinstance(value, get_origin(hint)) and all(fits(one, inner[0]) for one in value)
    if get_origin(hint) is dict:
        known = value.items() if isinstance(value, dict) else [(None, None)]
        return all(fits(key, inner[0]) and fits(one, inner[1]) for key, one in known)
    return type(value) in (int, float) if hint is float else type(value) is hint


class _Facts:
    """The fitted attributes of a model, and the fields of its record, by name."""

    def __init__(self, model: Any) -> None:
        self.values = vars(model) | vars(model.fitted_)

    def __getitem__(self, name: str) -> Any:
        _need(name in self.values, f"the fitted attribute {name} is missing")
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        return name in self.values


def _need(holds: Any, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _check_network(facts: _Facts) -> None:
    network = facts["network"]
    _need(isinstance(network, Network), "the network is not one")
    _need(isinstance(network.blocks, tuple) and network.blocks, "the network has no blocks")
    for block in network.blocks:
        right = (
            isinstance(block, Block)
            and (type(block.size) is int and block.size >= 1)
            and isinstance(block.link, Link)
            and isinstance(block.penalty, Penalty)
            and isinstance(block.activity, Activity | None)
            and type(block.bias) is bool
            and block.n_in is None
        )
        _need(right, "a block of the network has strange parts")
    _need(isinstance(facts["loss"], Loss), "the loss is not one")
    columns = [(), (1,), (network.blocks[-1].size,)]
    fits = all(np.shape(leaf) in columns for leaf in jax.tree.leaves(facts["loss"]))
    _need(fits, "the numbers of its loss do not fit its outputs")


def _check_weights(facts: _Facts) -> None:
    W, network, n_in = facts["solution"].W, facts["network"], facts["n_features_in_"]
    shapes = network.shapes(n_in)
    _need(n_in >= 1 and isinstance(W, tuple), "the weights are missing")
    _need(_shaped(W, shapes, "f"), f"the weights do not have the shapes {shapes} of the network")
    _need(len({w.dtype for w in W}) == 1, "the weights are not of one precision")
    _need(all(np.isfinite(w).all() for w in W), "some weights are not finite")
    there = all(block.bias or not block.biases(w).any() for block, w in zip(network.blocks, W))
    _need(there, "a block without a bias has one")
    sources = [(n,) for n in network.sources(n_in)]
    live = facts["solution"].live.reads
    _need(_shaped(live, sources, "b"), "live_ does not have the shapes of the network")


def _rehearse(facts: _Facts) -> None:
    """Run the network on shapes alone: fields of its words that are no numbers, or do not fit, show up."""
    W, network, loss = facts["solution"].W, facts["network"], facts["loss"]
    for leaf in jax.tree.leaves((network, loss)):
        _need(
            isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f", "a word of its network holds no numbers"
        )
    X = jax.ShapeDtypeStruct((2, facts["n_features_in_"]), W[0].dtype)

    def run(W: Any, X: Any) -> Any:
        penalties = [block.value(w) for block, w in zip(network.blocks, W)]
        return loss.mean(network.forward(W, X)[-1]), penalties

    try:
        with jax.enable_x64(W[0].dtype == np.float64):
            jax.eval_shape(run, W, X)
    except Exception as error:  # of any kind: the words come from a stranger
        raise ValueError(f"its network cannot be run ({type(error).__name__})") from None


def _check_inputs(facts: _Facts) -> None:
    n_in = facts["n_features_in_"]
    scale = facts["scale"]
    _need(
        isinstance(scale, tuple) and _shaped(scale[:2], [(n_in,)] * 2, "f"),
        "the scale does not fit the inputs",
    )
    _need(_shaped(scale[2:], [(n_in,)], "b"), "the scale does not fit the inputs")
    _need(np.isfinite(scale[0]).all() and (scale[1] > 0).all(), "the scale of the inputs is not positive")
    if "feature_names_in_" in facts:
        names = facts["feature_names_in_"]
        _need(_shaped([names], [(n_in,)], "OU"), "feature_names_in_ does not fit the inputs")
        _need(all(isinstance(name, str) for name in names), "feature_names_in_ holds more than texts")


def _check_outputs(facts: _Facts, classifies: bool) -> None:
    n_out = facts["network"].blocks[-1].size
    if classifies:
        classes = facts["classes_"]
        _need(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_ is not an array")
        _need(len(classes) == (n_out if n_out > 1 else 2), "classes_ does not fit the outputs")


def _shaped(arrays: Any, shapes: Iterable[tuple[int, ...]], kinds: str) -> bool:
    shapes = list(shapes)
    return (
        isinstance(arrays, list | tuple)
        and len(arrays) == len(shapes)
        and all(
            isinstance(array, np.ndarray) and array.shape == shape and array.dtype.kind in kinds
            for array, shape in zip(arrays, shapes)
        )
    )
