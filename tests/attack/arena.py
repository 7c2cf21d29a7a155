"""What hostile cases are written in: small data, small settings, fitted models, and objects that misbehave.

Every case is a line of Python in this namespace, so that it can be run again by itself.
"""

# ruff: noqa: F401 - cases use these names
import datetime
import decimal
import fractions
import os
import pathlib
import warnings
from functools import cache

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np
import pandas as pd
import pyarrow
import scipy.sparse as sp
import xarray
from sklearn.exceptions import ConvergenceWarning

import deepprox
from deepprox import (
    activities,
    compare,
    fit_stream,
    links,
    load,
    losses,
    path,
    penalties,
    stability_selection,
)

matplotlib.use("Agg")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
y = X[:, 0] + 0.1 * RNG.normal(size=24)
labels = np.where(y > 0, "up", "down")
counts = np.arange(24.0) % 3 + 1  # what every loss of numbers takes
ones = np.ones(24)

PLAIN = {"hidden_layer_sizes": (2,), "link": "tanh", "max_iter": 20, "random_state": 0}
CHOOSING = PLAIN | {"hidden_layer_sizes": (), "alphas": [0.3, 0.1]}
LAYER = {"hidden_layer_sizes": (4,), "max_iter": 20, "random_state": 0}  # wide enough for links of groups


def small(name, **given):
    """An estimator by name that fits in no time, with some of its parameters as given."""
    cls = getattr(deepprox, name)
    chooses = {"CV": CHOOSING | {"cv": 2}, "IC": CHOOSING}.get(name[-2:], PLAIN)
    return cls(**chooses | given)


def response(model):
    """What a model takes as its response."""
    return labels if "Classifier" in type(model).__name__ else y


@cache
def fitted(name):
    """A fitted estimator by name."""
    model = small(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, response(model))


@cache
def drawn(name):
    """Draws of the posterior of a fitted estimator."""
    return fitted(name).sample_posterior("laplace", 2, 10, 10, random_state=0)


@cache
def along():
    """A path, with data to judge it by."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return path(small("DeepRegressor", hidden_layer_sizes=()), X, y, [0.3, 0.1], validation=(X, y))


@cache
def compared():
    """Two models side by side."""
    return compare([fitted("DeepRegressor"), small("DeepRegressor", hidden_layer_sizes=())], X, y)


@cache
def stability():
    """How often inputs survive."""
    model = small("DeepRegressor", hidden_layer_sizes=())
    return stability_selection(model, X, y, [0.3, 0.1], n_pairs=1, random_state=0)


@cache
def saved():
    """The path of a saved model."""
    fitted("DeepRegressor").save("saved.deepprox")
    return "saved.deepprox"


class Endless:
    """A sequence that says it has a thousand million entries."""

    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        return 1


class Word(str):
    """A text of a class of its own."""


class Number(float):
    """A number of a class of its own."""


class Shy:
    """An object that cannot even be shown."""

    def __repr__(self):
        return "<shy\nobject>"


def broken_rows(kind):
    """A sparse matrix whose own arrays contradict each other."""
    good = sp.csr_array(X)
    if kind == "column":
        good.indices[3] = 10**6
    elif kind == "negative":
        good.indices[3] = -7
    elif kind == "pointer":
        good.indptr[5] = 10**6
    elif kind == "falling":
        good.indptr[5] = 0
        good.indptr[4] = 9
    elif kind == "short":
        good.data = good.data[:5]
    return good


def twice(values=X):
    """A table with two columns of one name."""
    return pd.DataFrame(values, columns=["a", "a"])


def table(**columns):
    """A table of 24 rows."""
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1]} | columns)
