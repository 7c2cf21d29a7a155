"""A fitted model as a tree of plain values, and back: words are written as a name and their fields.

``encode`` knows numbers, texts, lists, tuples, dicts, arrays, and records and estimators of this library.
A generator of random numbers, which moves on, is written as None, and so is where a run kept its checkpoint.
Arrays are put aside in a list and stand in the tree by their number. ``decode`` builds only what the given
table of classes names.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator

KINDS = "biufUSmM"  # of arrays: numbers, truth values, texts and times, but no Python objects
DEEPEST = 40  # levels of a tree; a fitted model has about ten
# attributes that are scikit-learn's own: its version, callbacks during a fit, and routed metadata
PASSING = ("_skl", "_callback", "_metadata_request")
# parameters of a run on the machine of its author, which are no facts of the model
OF_A_RUN = {"checkpoint": None, "resume": False}
FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # numbers that JSON does not have


def name_of(cls: type) -> str:
    """The name of a class in a file: ``DeepClassifier``, ``links.Softmax`` for a word of the vocabulary."""
    module = cls.__module__.split(".")[1]
    vocabulary = module in ("links", "losses", "penalties", "activities")
    return f"{module}.{cls.__name__}" if vocabulary else cls.__name__


def encode(value: Any, arrays: list[np.ndarray], where: str = "the model") -> Any:
    """``value`` as what JSON can hold; its arrays are appended to ``arrays``."""
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, str):
        _need_text(value, where)
        return value
    if value is None or isinstance(value, bool) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is list:
        return [encode(one, arrays, where) for one in value]
    if type(value) is tuple:
        return {"tuple": [encode(one, arrays, where) for one in value]}
    if type(value) is dict and all(isinstance(key, str) for key in value):
        _need_text("".join(value), where)
        return {"dict": {key: encode(one, arrays, f"{where}[{key!r}]") for key, one in value.items()}}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _encode_array(value, arrays, where)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return {"dtype": np.dtype(value).name}
    if type(value).__module__.split(".")[0] == "deepprox":
        if isinstance(value, BaseEstimator):
            return _encode_estimator(value, arrays)
        if dataclasses.is_dataclass(value) or isinstance(value, tuple):
            fields = {name: encode(one, arrays, f"{where}.{name}") for name, one in _fields(value).items()}
            return {"record": name_of(type(value)), "fields": fields}
    raise TypeError(
        f"{where} is {value!r}, of the class {type(value).__qualname__}, which is not a part of deepprox: a "
        f"saved file holds data and no code, so keep such a model with joblib.dump(model, path)."
    )


def _fields(record: Any) -> dict[str, Any]:
    if isinstance(record, tuple):
        return record._asdict()  # type: ignore[attr-defined]
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _encode_array(value: Any, arrays: list[np.ndarray], where: str) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype == object:
        return {
            "objects": [encode(one, arrays, where) for one in array.ravel().tolist()],
            "shape": [*array.shape],
        }
    if array.dtype.kind not in KINDS:
        raise TypeError(f"{where} is an array of {array.dtype}, which a saved file cannot hold.")
    need_characters(array, where)
    arrays.append(array)
    return {"scalar" if isinstance(value, np.generic) else "array": len(arrays) - 1}


def _need_text(text: str, where: str) -> None:
    """ValueError for a text with half of a character, which UTF-8 cannot write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where} has half of a character in {text[:40]!r}: rename it.") from None


def need_characters(array: np.ndarray, where: str) -> None:
    """ValueError for an array of texts in which a number is no character, or half of one."""
    if array.dtype.kind == "U":
        codes = np.frombuffer(array.tobytes(), f"{array.dtype.byteorder}u4")
        if ((codes > 0x10FFFF) | (codes >> 11 == 0xD800 >> 11)).any():
            raise ValueError(f"{where} has half of a character in a text: rename it.")


def _of_no_run(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters without those of a run, whose author would choose where a later fit writes."""
    return {name: OF_A_RUN.get(name, value) for name, value in parameters.items()}


def _encode_estimator(model: BaseEstimator, arrays: list[np.ndarray]) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    given = _of_no_run(parameters)
    state = model.__getstate__()  # without what a stored model does not carry
    fitted = {k: v for k, v in state.items() if k not in parameters and not k.startswith(PASSING)}
    return {
        "estimator": name_of(type(model)),
        "parameters": {name: encode(value, arrays, name) for name, value in given.items()},
        "fitted": {name: encode(value, arrays, name) for name, value in fitted.items()},
    }


def decode(
    node: Any,
    arrays: list[np.ndarray],
    classes: Mapping[str, type],
    check: Callable[[Any], None],
    deepest: int = DEEPEST,
) -> Any:
    """What ``encode`` was given, every estimator checked; ValueError for a tree that it did not make."""
    if deepest == 0:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")

    def inner(node: Any) -> Any:
        return decode(node, arrays, classes, check, deepest - 1)

    if node is None or isinstance(node, bool | str | int | float):
        return node
    if isinstance(node, list):
        return [inner(one) for one in node]
    match node:
        case {"float": "nan" | "inf" | "-inf" as name, **rest} if not rest:
            return FLOATS[name]
        case {"tuple": list(items), **rest} if not rest:
            return tuple(inner(one) for one in items)
        case {"dict": dict(items), **rest} if not rest:
            return {key: inner(one) for key, one in items.items()}
        case {"dtype": "float32" | "float64" as name, **rest} if not rest:
            return np.dtype(name)
        case {"array": int(number), **rest} if not rest:
            return _taken(arrays, number)
        case {"scalar": int(number), **rest} if not rest and _taken(arrays, number).ndim == 0:
            return arrays[number][()]
        case {"objects": list(items), "shape": list(shape), **rest} if not rest:
            return _decode_objects([inner(one) for one in items], shape)
        case {"record": str(name), "fields": dict(fields), **rest} if not rest:
            fields = {key: inner(one) for key, one in fields.items()}
            return build(_named(name, classes), fields)
        case {"estimator": str(name), "parameters": dict(given), "fitted": dict(fitted), **rest} if not rest:
            given, fitted = ({key: inner(one) for key, one in part.items()} for part in (given, fitted))
            model = _build_estimator(_named(name, classes), given, fitted)
            if fitted:
                check(model)
            return model
    raise ValueError(f"it has an entry of an unknown form: {repr(node)[:60]}")


def _taken(arrays: list[np.ndarray], number: int) -> np.ndarray:
    if not 0 <= number < len(arrays):
        raise ValueError(f"array {number} is missing")
    return arrays[number]


def _decode_objects(items: list[Any], shape: list[Any]) -> np.ndarray:
    if not all(type(size) is int and size >= 0 for size in shape) or math.prod(shape) != len(items):
        raise ValueError(f"{len(items)} objects do not fit the shape {shape}")
    if not all(item is None or isinstance(item, bool | int | float | str) for item in items):
        raise ValueError("an array of objects holds more than numbers and texts")
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)


def _named(name: str, classes: Mapping[str, type]) -> type:
    if name not in classes:
        raise ValueError(f"it names {name!r}, which is no class of this version of deepprox")
    return classes[name]


def build(cls: type, fields: dict[str, Any]) -> Any:
    """An object of a class from its fields; ValueError where they are not those of the class."""
    try:
        return cls(**fields)
    except TypeError as error:
        raise ValueError(f"the fields of {cls.__name__} do not fit: {error}") from None


def _build_estimator(cls: type, parameters: dict[str, Any], fitted: dict[str, Any]) -> Any:
    model = build(cls, _of_no_run(parameters))
    # what a class has by itself, its methods above all, is not a fitted fact
    strange = [name for name in fitted if name in dir(model) or not name.isidentifier()]
    if strange:
        raise ValueError(f"{strange[0]!r} is not a fitted attribute of {cls.__name__}")
    vars(model).update(fitted)
    return model
