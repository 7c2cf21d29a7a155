"""onnxruntime predicts what the estimator predicts, from the live part of the network alone."""

import sys
from itertools import pairwise

import numpy as np
import onnxruntime
import pytest
from sklearn.datasets import load_iris

from deepprox import DeepClassifier, DeepRegressor, links
from deepprox.blocks import Dense
from deepprox.links import Link, LpNorm
from deepprox.losses import Gamma, Hinge, Huber, NegativeBinomial, Poisson, Quantile
from deepprox.problem import Network
from deepprox.pruned import prune
from deepprox.struct import struct
from fits import changed
from rows import GROUP_LINKS, LINKS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return X.astype(np.float32), np.array(["setosa", "<versicolor>", "virginica"])[y]


@pytest.fixture(scope="module")
def classifier(flowers):
    return DeepClassifier((5,), link="sigmoid", alpha=0.01, random_state=0).fit(*flowers)


@pytest.fixture(scope="module")
def regressor(flowers):
    """A linear model that lends its attributes to networks of given weights."""
    return DeepRegressor((), alpha=0.01).fit(flowers[0], flowers[0][:, :2])


def run(model, X, dtype="float32"):
    session = onnxruntime.InferenceSession(model.to_onnx(dtype).SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X.astype(dtype)})))


def size(model):
    return sum(np.prod(constant.dims) for constant in model.to_onnx().graph.initializer)


def with_network(model, *links, sizes=(8, 6), seed=0, zeros=0.4):
    """A network of two hidden layers with these links, and random weights of which some are zero."""
    rng = np.random.default_rng(seed)
    hidden = [Dense(size, link) for size, link in zip(sizes, links)]
    network = Network((*hidden, Dense(model.n_outputs_)))
    shapes = network.shapes(model.n_features_in_)
    return changed(model, (rng.normal(size=s) * (rng.random(s) > zeros) for s in shapes), network=network)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_classifier_gives_labels_and_probabilities(classifier, flowers, dtype):
    X, _ = flowers
    out = run(classifier, X, dtype)
    assert [*out] == ["label", "probabilities"]
    np.testing.assert_array_equal(out["label"], classifier.predict(X))
    np.testing.assert_allclose(out["probabilities"], classifier.predict_proba(X), atol=TOLERANCE[dtype])


def test_dead_inputs_and_units_are_left_out(classifier, flowers):
    live = [int(mask.sum()) for mask in classifier.live_]
    assert live[1] < 5
    # gathered places and their centre; weights and biases of both blocks; labels
    widths = [*live, 3]
    blocks = sum(n_out * (1 + n_in) for n_in, n_out in pairwise(widths))
    assert size(classifier) == 2 * live[0] + blocks + 3
    without = flowers[0].copy()
    without[:, ~classifier.selected_features_] = np.nan  # nobody reads them
    np.testing.assert_array_equal(run(classifier, without)["label"], classifier.predict(flowers[0]))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("row", LINKS + GROUP_LINKS, ids=str)
def test_every_link_has_its_form(regressor, flowers, row, dtype):
    link = row.link
    sizes = (8, 6) if link.elementwise else (2 * (link.group or 4),) * 2
    model = with_network(regressor, link, link, sizes=sizes)
    X = flowers[0]
    theirs, ours = run(model, X, dtype)["prediction"], model.predict(X)
    scale = np.abs(ours).max()
    tolerance = 1e-6 if isinstance(link, links.GELU) else TOLERANCE[dtype]  # its erf is single precision
    np.testing.assert_allclose(theirs / scale, ours / scale, atol=tolerance)


def test_every_link_of_the_library_is_there():
    exported = {type(row.link) for row in LINKS + GROUP_LINKS}
    known = {cls for cls in vars(links).values() if isinstance(cls, type) and issubclass(cls, Link)}
    assert {cls for cls in known if not cls.__abstractmethods__} == exported


def test_slopes_of_single_units_follow_their_units(regressor, flowers):
    slopes = np.linspace(0.1, 0.9, 8)
    model = with_network(regressor, links.LeakyReLU(slopes), links.ReLU(), zeros=0.7)
    X = flowers[0]
    assert len(prune(model.fitted_.network, model.fitted_.W).places[1]) < 8
    np.testing.assert_allclose(run(model, X)["prediction"], model.predict(X), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("group", [0, 2])
def test_a_group_that_nobody_reads_is_left_out(regressor, flowers, group):
    pools = LpNorm(p=3.0, group=group)
    model = with_network(regressor, pools, pools, zeros=0.0)
    if group:
        model.fitted_.W[1][:, 1] = 0.0  # the first of four groups of the first block
    pruned = prune(model.fitted_.network, model.fitted_.W)
    assert len(pruned.places[1]) == (6 if group else 8)
    np.testing.assert_allclose(run(model, flowers[0])["prediction"], model.predict(flowers[0]), atol=1e-5)


LOSSES = [Huber(), Quantile(0.9), Poisson(), NegativeBinomial(0.5), Gamma(2.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_every_loss_has_its_mean(regressor, flowers, loss):
    model = changed(with_network(regressor, links.ReLU(), links.ReLU()), loss=loss)
    X = flowers[0]
    np.testing.assert_allclose(run(model, X)["prediction"], model.predict(X), rtol=2e-5, atol=1e-5)


def constant(model, fitted, *eta):
    """A model of counts that says ``exp(eta)`` whatever it reads."""
    W = np.column_stack([eta, np.zeros((2, 4))]).astype(fitted)
    return changed(model, [W], loss=Poisson(), network=Network((Dense(2),)))


@pytest.mark.parametrize(
    ("fitted", "dtype", "eta"),
    [
        ("float64", "float64", (60.0, 500.0)),
        ("float32", "float32", (60.0, 500.0)),
        ("float32", "float64", (60.0, 500.0)),
        ("float64", "float32", (40.0, 80.0)),
    ],
)
def test_large_means_are_those_of_the_model(regressor, flowers, fitted, dtype, eta):
    model, X = constant(regressor, fitted, *eta), flowers[0]
    np.testing.assert_allclose(run(model, X, dtype)["prediction"], model.predict(X), rtol=2e-5)


def test_single_precision_does_not_overflow(regressor, flowers):
    assert np.isfinite(run(constant(regressor, "float64", 90.0, 200.0), flowers[0])["prediction"]).all()


def test_one_column_and_two_classes(flowers):
    X, y = flowers
    two = DeepClassifier((), loss="logistic", alpha=0.01).fit(X, y == "setosa")
    out = run(two, X)
    assert out["label"].dtype == bool and (out["label"] == two.predict(X)).all()
    np.testing.assert_allclose(out["probabilities"], two.predict_proba(X), atol=1e-5)
    two = changed(two, loss=Hinge(0.01))
    two.classes_ = np.array([0, 7])
    out = run(two, X)
    assert [*out] == ["label", "decision"] and (out["label"] == two.predict(X)).all()
    np.testing.assert_allclose(out["decision"][:, 0], two.decision_function(X), atol=1e-5)


def test_inputs_far_from_zero_keep_their_digits(flowers):
    rng = np.random.default_rng(0)
    X = (2.0**20 + rng.integers(0, 64, (150, 3))).astype(np.float32)  # years, money: a small spread
    model = DeepRegressor((), alpha=1e-4).fit(X, X[:, 0] - X[:, 1] - 2.0)
    found = run(model, X)["prediction"]
    assert found.shape == (150,)
    np.testing.assert_allclose(found, model.predict(X), atol=1e-4)


def test_a_network_that_ignores_its_inputs(classifier, flowers):
    X, _ = flowers
    model = changed(classifier, (w * (np.arange(w.shape[1]) == 0) for w in classifier.fitted_.W))
    out = run(model, X)
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(X), atol=1e-6)
    assert out["label"].shape == (150,)


def test_what_cannot_be_exported_is_told(regressor, classifier, monkeypatch):
    @struct
    class Mine(Link):
        """``z``."""

        def __call__(self, z):
            return z

    with pytest.raises(ValueError, match=r"link .*Mine.* has no ONNX form"):
        with_network(regressor, Mine(), Mine(), zeros=0.0).to_onnx()
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64', got 'int8'"):
        regressor.to_onnx("int8")
    with pytest.raises(ValueError, match="not fitted"):
        DeepClassifier(alpha=1e-2).to_onnx()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'deepprox\[onnx\]'"):
        classifier.to_onnx()
