"""Bad input gets one clear sentence, and never a traceback from JAX."""

import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from deepprox import DeepClassifier, DeepRegressor, fit_stream, links, load, losses, path, penalties
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
    ({"alpha": -1.0}, ValueError, "alpha must be 'auto' or a finite number of at least 0, got -1.0"),
    ({"alpha": np.nan}, ValueError, "alpha must be 'auto' or a finite number"),
    ({"alpha": "big"}, ValueError, "alpha must be 'auto' or a finite number"),
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
    *(
        ({name: value}, ValueError, f"{name} must be True or False, got")
        for name in ("join", "standardize", "penalize_bias", "warm_start", "resume")
        for value in ("no", np.nan, None, [], 2)
    ),
    *(({"verbose": value}, ValueError, "verbose must be a whole number") for value in ("no", np.nan, 2.5)),
    *(
        ({"random_state": value}, ValueError, "random_state must be None, a whole number from 0 to")
        for value in (-1, 2**32, True, [1], 1.5, b"1", np.random.default_rng(0))
    ),
    *(
        ({"hidden_layer_sizes": value}, ValueError, "hidden_layer_sizes must be whole numbers")
        for value in (iter([3]), b"3", {3}, {3: 4}, True, (2, False), np.ones((1, 1), int))
    ),
    *(
        ({"checkpoint": value}, TypeError, "checkpoint must be a path")
        for value in (b"run", True, 1, ["run"])
    ),
    *(({"checkpoint": value}, ValueError, "checkpoint is .* no path") for value in ("a\0b", "")),
    ({"checkpoint": __file__}, ValueError, "checkpoint must be a folder, but .* is a file"),
    *(
        ({name: value}, ValueError, f"{name} must be .* got")
        for name in ("alpha", "tol")
        for value in (10**400, True, np.inf, 1j, None)
    ),
    *(({name: True}, ValueError, f"{name} must be") for name in ("n_init", "max_iter", "batch_size")),
    ({"batch_size": np.ones(2)}, ValueError, "batch_size must be"),
    ({"rho": 10**400}, ValueError, "rho must be"),
    ({"dtype": 5}, ValueError, "dtype must be 'float64' or 'float32'"),
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
    (X, y, ["1"] * 40, "sample_weight must be one finite number for each observation"),
    (X, y, np.full(40, "2020", "M8[Y]"), "sample_weight holds datetime64"),
    (X, y, [datetime.date(2020, 1, 1)] * 40, "sample_weight must be one finite number"),
    (X, y, [10**400] * 40, "sample_weight must be one finite number"),
    (X, y, np.ma.array(np.ones(40), mask=y), "sample_weight has masked cells"),
    (X, y, np.full(40, 1e308), "The sum of sample_weight is not finite"),
    (np.ma.array(X, mask=X > 1), y, None, "X has masked cells"),
    (X, np.ma.array(y, mask=y), None, "y has masked cells"),
    (X, y + 1j, None, "Complex data not supported: y holds complex128."),
]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("X, y, weight, sentence", DATA, ids=[row[3][:30] for row in DATA])
def test_data(X, y, weight, sentence):
    with pytest.raises(ValueError, match=sentence):
        DeepClassifier((4,)).fit(X, y, sample_weight=weight)


DAYS = pd.Series(pd.date_range("2020", periods=40))
SPANS = {
    "datetime": DAYS,
    "datetime with a zone": DAYS.dt.tz_localize("UTC"),
    "timedelta": DAYS - DAYS[0],
    "period": DAYS.dt.to_period("D"),
    "interval": pd.Series(pd.interval_range(0, 40)),
}


@pytest.mark.parametrize("kind", SPANS)
def test_dates_and_spans_are_no_numbers(kind):
    table, model = pd.DataFrame({"a": X[:, 0], "when": SPANS[kind]}), DeepRegressor(())
    for inputs in (table, table[["when"]]):
        with pytest.raises(ValueError, match=r"Column 'when' of X holds .*, which is no number"):
            model.fit(inputs, X[:, 0])
    with pytest.raises(ValueError, match=r"y holds .*, which is no number"):
        model.fit(X, SPANS[kind])
    with pytest.raises(ValueError, match=r"sample_weight holds .*, which is no number"):
        model.fit(X, y, SPANS[kind])


@pytest.mark.parametrize("cell", [datetime.datetime(2020, 1, 1), datetime.timedelta(1), 10**400], ids=str)
def test_objects_that_are_no_numbers(cell):
    column = np.array([cell] * 40, object)
    with pytest.raises(TypeError, match="X and y must be of numbers"):
        DeepRegressor(()).fit(column[:, None], y)
    with pytest.raises(TypeError, match="X and y must be of numbers"):
        DeepRegressor(()).fit(X, column)


def test_columns_of_one_name():
    with pytest.raises(ValueError, match="2 columns of X are named 'a'"):
        DeepRegressor(()).fit(pd.DataFrame(X, columns=["a", "b", "a"]), y)


def broken(kind, part, place, value):
    rng = np.random.default_rng(0)
    table = np.where(rng.random((40, 3)) < 0.5, rng.normal(size=(40, 3)), 0)
    matrix = scipy.sparse.coo_array(table).asformat(kind)
    getattr(matrix, part)[place] = value
    return matrix


@pytest.mark.parametrize(
    "way",
    [
        ("csr", "indices", 0, 99),
        ("csr", "indices", 0, -1),
        ("csr", "indptr", -1, 10**6),
        ("csr", "indptr", 0, 5),
        ("csr", "indptr", 3, -7),
        ("csc", "indices", 0, 40),
        ("csc", "indptr", 1, 10**6),
        ("bsr", "indices", 0, 10**6),
        ("coo", "row", 0, 40),
        ("coo", "col", 0, -4),
    ],
    ids=str,
)
def test_a_broken_sparse_matrix_is_not_read(way):
    # SciPy reads and writes wherever such indices point to
    model = DeepRegressor((), alpha=0.1)
    with pytest.raises(ValueError, match=r"X is a broken sparse matrix, .* of its shape \(40, 3\)"):
        model.fit(broken(*way), X[:, 0])
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        model.fit(X, X[:, 0]).predict(broken(*way))


@pytest.mark.parametrize(
    "weight", [np.full(40, "1"), np.full(40, "2020", "M8[Y]"), np.full(40, 1j)], ids=lambda w: str(w.dtype)
)
def test_weights_of_a_stream(weight):
    with pytest.raises(ValueError, match=r"sample_weight (must be one finite number|holds)"):
        fit_stream(DeepRegressor(()), X, X[:, 0], weight)


def test_a_sparse_response():
    with pytest.raises(TypeError, match="y is sparse, and a response must be dense"):
        DeepRegressor(()).fit(X, scipy.sparse.csr_array(X))


def test_a_loss_of_columns_needs_columns_that_it_takes():
    with pytest.raises(ValueError, match="compares the columns of a response, and this one has one column"):
        DeepRegressor((), loss=losses.Softmax()).fit(X, X[:, 0])
    for response in (X[:, :2], np.ones((40, 2)), np.column_stack([-y, 1 + y])):
        with pytest.raises(ValueError, match="at least 0 and add up to 1 in every row"):
            DeepRegressor((), loss=losses.Softmax()).fit(X, response)
    shares = np.column_stack([y / 4, 1 - y / 4])
    assert DeepRegressor((), loss=losses.Softmax(), alpha=0.1).fit(X, shares).solution_.status == "converged"


@pytest.mark.parametrize("level", ["0.9", None, 0, 1, 2, np.nan, [0.1, 0.9], True, 1j], ids=str)
def test_levels_of_intervals(level):
    model = DeepRegressor((), alpha=0.1).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="level must be a probability between 0 and 1"):
        model.predict_interval(X, level=level)


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"alphas": True}, "alphas must be"),
        ({"alphas": [10**400]}, "alphas must be"),
        ({"alphas": DAYS.to_numpy()}, "alphas must be"),
        ({"eps": None}, "eps must be"),
        ({"relax": "no"}, "relax must be True or False"),
        ({"max_iter": True}, "max_iter must be"),
        ({"verbose": "no"}, "verbose must be"),
    ],
    ids=str,
)
def test_paths(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        path(DeepRegressor(()), X, X[:, 0], **given)


@pytest.mark.parametrize("file", [b"m", True, 1, None, ["m"], "a\0b", ""], ids=repr)
def test_names_of_files(file):
    model = DeepRegressor((), alpha=0.1).fit(X, X[:, 0])
    for use in (model.save, load, lambda file: model.report(file, X, X[:, 0]), model.draw_network().save):
        with pytest.raises((TypeError, ValueError), match=r"path must be a path|path is .* no path"):
            use(file)


def test_a_sparse_input_too_big_to_be_dense():
    huge = scipy.sparse.csr_array((40, 10**8))
    with pytest.raises(ValueError, match="GiB once dense"):  # a penalty that removes no input takes them all
        DeepRegressor((2,), penalty="l2", alpha=0.01).fit(huge, X[:, 0])


def test_more_columns_than_there_is_memory_for_weights():
    for layers in ((), (2,)):
        with pytest.raises(ValueError, match="select columns first"):
            DeepRegressor(layers).fit(scipy.sparse.csr_array((40, 10**11)), X[:, 0])


def test_too_few_iterations_are_told():
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        DeepClassifier((), max_iter=1, random_state=0).fit(X, y)


def test_divergence_is_told_and_leaves_finite_weights():
    wild = DeepRegressor((4,), link=links.Identity(), standardize=False, alpha=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning), np.errstate(all="ignore"):
        wild.fit(X * 1e160, X[:, 0])
    assert all(np.isfinite(w).all() for w in wild.coefs_)
