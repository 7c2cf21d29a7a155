"""A word whose parameters are no numbers, or of the wrong shape, is told in one sentence before a fit."""

import datetime
from dataclasses import fields, is_dataclass

import jax
import numpy as np
import pytest

from deepprox import DeepClassifier, DeepRegressor, activities, links, losses, penalties

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y, LABELS = np.exp(X[:, 0] / 4), (X[:, 0] > 0).astype(int)
ENDLESS = -np.inf
STRANGE = [
    [1, 2],
    (1.0,),
    {},
    "a",
    None,
    True,
    1j,
    np.nan,
    ENDLESS,
    10**400,
    datetime.date(2020, 1, 1),
    np.array("2020", "M8[D]"),
    np.array([1.0, np.nan, 1.0]),
    np.array(["a", "b", "c"]),
    np.array([None, 1.0, 1.0]),
]
WORDS = [
    cls
    for home in (penalties, links, losses, activities)
    for cls in map(vars(home).get, sorted(vars(home)))
    if isinstance(cls, type) and is_dataclass(cls)
]
FIELDS = [
    (cls, field.name)
    for cls in WORDS
    for field in fields(cls)
    if not field.metadata.get("static") and field.name not in ("mask", "penalty")
]


def fit(word):
    """A fit with this word; it is not to begin."""
    if isinstance(word, penalties.Penalty):
        return DeepRegressor((), penalty=word).fit(X, Y)
    if isinstance(word, links.Link):
        return DeepRegressor((3,), link=word).fit(X, Y)
    if isinstance(word, activities.Activity):
        return DeepRegressor((3,), activity=word).fit(X, Y)
    if word.binary:
        return DeepClassifier((), loss=word).fit(X, LABELS)
    return DeepRegressor((), loss=word).fit(X, Y)


@pytest.mark.parametrize("cls, field", FIELDS, ids=lambda part: getattr(part, "__name__", part))
def test_every_parameter_is_a_finite_number(cls, field):
    for value in STRANGE:
        endless = value is ENDLESS and field in getattr(cls, "endless", ())
        if endless or (value is None and field in ("width", "centre", "spread")):
            continue  # these mean something
        with pytest.raises(ValueError, match=rf"^{field} of {cls.__name__} must be a finite number") as told:
            fit(cls(**{field: value}))
        assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "word",
    [
        penalties.L1(np.ones(7)),
        penalties.L1(np.ones((2, 1, 3))),
        penalties.MCP(gamma=np.ones(2)),
        penalties.Nuclear(np.ones(3)),
        losses.Hinge(width=np.ones(2)),
        losses.Huber(np.ones(2)),
        losses.Gamma(np.ones(40)),
        links.LeakyReLU(np.ones(2)),
        links.LeakyReLU(np.ones((2, 1))),
        links.LeakyReLU(np.ones((3, 3))),
        activities.ActivityL1(np.ones(3)),
        activities.ActivityGroup(np.ones((1, 1))),
        penalties.Mask(np.ones((2, 2))),
    ],
    ids=lambda word: type(word).__name__,
)
def test_arrays_fit_the_shapes(word):
    with pytest.raises(ValueError, match=r"cannot take an array|returns shape|mask has shape") as told:
        fit(word)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("mask", [None, "a", True, 1.0, [[1], [2, 3]], {}, np.array(["a"])], ids=repr)
def test_masks(mask):
    with pytest.raises(ValueError, match=r"needs a mask of numbers|mask has shape"):
        fit(penalties.Mask(mask))


@pytest.mark.parametrize("penalty", [None, 0.1, "l1", penalties.L1], ids=repr)
def test_a_mask_takes_a_penalty_for_the_others(penalty):
    with pytest.raises(TypeError, match="Mask needs a penalty for the free weights"):
        fit(penalties.Mask([[1, 0, 1]], penalty))
    with pytest.raises(ValueError, match="alpha of L1 must be a finite number"):
        fit(penalties.Mask([[1, 0, 1]], penalties.L1(np.nan)))


@pytest.mark.parametrize("by", [[0, 1, 1], np.array([0, 1]), None, 5, (0, 2), (0.5,)], ids=repr)
def test_groups(by):
    with pytest.raises(ValueError, match="by must be 'input', 'unit', or a tuple"):
        fit(penalties.GroupL2(by=by))


@pytest.mark.parametrize("on", [None, "x", np.ones(2), ["z"]], ids=repr)
def test_what_an_activity_charges(on):
    with pytest.raises(ValueError, match="on must be 'reads' or 'z'"):
        fit(activities.ActivityL1(on=on))


@pytest.mark.parametrize("q", ["a", None, [0.5], 0, 1, 1j], ids=repr)
def test_powers_of_a_bridge(q):
    with pytest.raises(ValueError, match="Bridge needs 0 < q < 1"):
        penalties.Bridge(q=q)


def test_single_precision_is_told_where_it_is_too_small():
    with pytest.raises(ValueError, match=r"A number of L1\(alpha=1e\+300\) is too large for float32"):
        DeepRegressor((), penalty=penalties.L1(1e300), dtype="float32").fit(X, Y)


@pytest.mark.parametrize(
    "word",
    [
        penalties.Box(-np.inf, np.inf),
        penalties.MCP(0.1, gamma=np.inf),
        penalties.L1(np.array([0.1, 0.2, 0.3])),
        penalties.L1(np.float32(0.1)),
        penalties.L1(1),
        penalties.Mask([[1, 0, 1]]),
        losses.Huber(np.inf),
        losses.Quantile(q=np.array([0.5])),
    ],
    ids=repr,
)
def test_what_is_a_number_is_taken(word):
    assert fit(word).solution_.status == "converged"


def test_words_are_rebuilt_with_anything():
    # trees of placeholders are made by JAX itself: a word asks for numbers when it is used, not before
    for word in (penalties.L1(), losses.Huber(), links.LeakyReLU(), activities.ActivityL1()):
        for leaf in (object(), None, True, jax.ShapeDtypeStruct((2,), np.float32)):
            jax.tree.map(lambda _, leaf=leaf: leaf, word)
