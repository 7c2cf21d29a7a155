"""Bad input gets one clear sentence, and never a traceback from JAX."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from deepprox import DeepClassifier, DeepRegressor, links, penalties
from deepprox.penalties import Penalty
from deepprox.struct import struct

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)


@struct
class Wide(Penalty):
    """A penalty with a mistake: its value is not a number."""

    def value(self, w):
        return abs(w)

    def prox(self, v, step):
        return v


@struct
class Broken(Penalty):
    """A penalty with another mistake."""

    def value(self, w):
        raise KeyError("alpha")

    def prox(self, v, step):
        return v


@struct
class Named(Penalty):
    """A penalty with a field that is no number, and not marked as such."""

    name: str = "mine"

    def value(self, w):
        return abs(w).sum()

    def prox(self, v, step):
        return v


SETTINGS = [
    ({"penalty": "l7"}, ValueError, "Unknown penalty 'l7'.*'l1'.*'mcp'"),
    ({"link": "rlu"}, ValueError, "Unknown link 'rlu'.*'relu'"),
    ({"loss": "huber"}, ValueError, "Unknown loss 'huber'.*'softmax'"),
    ({"penalty": 0.5}, TypeError, "penalty must be a name .* or an instance of deepprox.penalties.Penalty"),
    ({"penalty": penalties.L1}, TypeError, r"write L1\(\)"),
    ({"link": np.tanh}, TypeError, "link must be a name"),
    ({"loss": links.ReLU()}, TypeError, "loss must be a name"),
    ({"penalty": ("l1", "l1", "l1")}, ValueError, "penalty has 3 entries, but there are 2 blocks"),
    ({"link": ("relu", "relu")}, ValueError, "link has 2 entries, but there is 1 hidden layer:"),
    ({"alpha": -1.0}, ValueError, "alpha must be a finite number of at least 0, got -1.0"),
    ({"alpha": np.nan}, ValueError, "alpha must be a finite number"),
    ({"alpha": "big"}, ValueError, "alpha must be a finite number"),
    ({"penalty": penalties.L1(-0.1)}, ValueError, "strength of a penalty must be at least 0"),
    ({"penalty": penalties.L1(0.1), "alpha": 0.2}, ValueError, "one or the other"),
    ({"penalty": penalties.GroupL2(0.1, by="row")}, ValueError, "by must be 'input'"),
    ({"penalty": Wide()}, ValueError, r"Wide\(\) returns shape"),
    ({"penalty": Broken()}, ValueError, r"Broken\(\) cannot take an array"),
    ({"penalty": Named()}, TypeError, "A field of .* is not a number"),
    ({"hidden_layer_sizes": (5, 0)}, ValueError, "hidden_layer_sizes must be whole numbers of at least 1"),
    ({"hidden_layer_sizes": 2.5}, ValueError, "hidden_layer_sizes must be whole numbers"),
    ({"splits": (2,)}, ValueError, "splits must be .* at most 1; got"),
    ({"splits": (1, 1)}, ValueError, "a tuple of different hidden layers to split at, numbered from 1"),
    ({"splits": (0.5,)}, ValueError, "splits must be 'all', 'none', or a tuple"),
    ({"splits": 1}, ValueError, "splits must be 'all', 'none', or a tuple"),
    ({"splits": "some"}, ValueError, "splits must be 'all', 'none', or a tuple"),
    ({"splits": "none", "join": False}, ValueError, "leave nothing to do"),
    ({"rho": -1.0}, ValueError, "rho must be 'auto', a positive number"),
    ({"rho": "grow"}, ValueError, "rho must be 'auto'"),
    ({"rho": (1.0,)}, ValueError, r"one entry per block \(2\)"),
    ({"rho": (1.0, np.ones(3))}, ValueError, "array of 40 positive numbers"),
    ({"batch_size": 0}, ValueError, "batch_size must be 'auto', a whole number of at least 1, or None"),
    ({"batch_size": 8, "join": False}, ValueError, "takes the place of the split phase"),
    ({"n_init": 0}, ValueError, "n_init must be a whole number of at least 1, got 0"),
    ({"max_iter": 0}, ValueError, "max_iter must be a whole number of at least 1, got 0"),
    ({"tol": 0.0}, ValueError, "tol must be a positive number, got 0.0"),
    ({"dtype": "float16"}, ValueError, "dtype must be 'float64' or 'float32'"),
    ({"dtype": None}, ValueError, "dtype must be"),
    ({"random_state": "seed"}, ValueError, "cannot be used to seed"),
]


@pytest.mark.parametrize("settings, error, sentence", SETTINGS, ids=lambda part: str(part)[:40])
def test_settings(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        DeepClassifier(**{"hidden_layer_sizes": (4,)} | settings).fit(X, y)


DATA = [
    (np.where(X > 2, np.nan, X) + np.nan, y, None, "NaN"),
    (X * np.inf, y, None, "infinity|NaN"),
    (X[:, 0], y, None, "Expected 2D array"),
    (X, y[:-1], None, "inconsistent numbers of samples"),
    (X, np.zeros(40), None, "only one class"),
    (X, y, np.where(y == 0, 0.0, 1.0), "only one class"),
    (X, X[:, 1], None, "Unknown label type: continuous"),
    (X, y, -np.ones(40), "Negative values in sample_weight"),
    (X, y, np.zeros(40), "sample_weight|[Ss]ample weights"),
    (X, y, np.ones(3), "sample_weight.shape"),
    (X[:1], y[:1], None, "minimum of 2 is required"),
]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("X, y, weight, sentence", DATA, ids=[row[3][:30] for row in DATA])
def test_data(X, y, weight, sentence):
    with pytest.raises(ValueError, match=sentence):
        DeepClassifier((4,)).fit(X, y, sample_weight=weight)


def test_a_sparse_input_too_big_to_be_dense():
    huge = scipy.sparse.csr_array((40, 10**8))
    with pytest.raises(ValueError, match="GiB once dense"):
        DeepRegressor(()).fit(huge, X[:, 0])


def test_too_few_iterations_are_told():
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        DeepClassifier((), max_iter=1, random_state=0).fit(X, y)


def test_divergence_is_told_and_leaves_finite_weights():
    wild = DeepRegressor((4,), link=links.Identity(), standardize=False, alpha=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning), np.errstate(all="ignore"):
        wild.fit(X * 1e160, X[:, 0])
    assert all(np.isfinite(w).all() for w in wild.coefs_)
