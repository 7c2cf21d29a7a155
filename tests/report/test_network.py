"""The drawing has a line for every weight that survived, and for no other."""

import copy
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sklearn.datasets import load_iris

from deepprox import DeepClassifier
from deepprox.links import MaxAbs
from deepprox.problem import Network
from deepprox.report.network import MOST_LINES, MOST_UNITS, NetworkDrawing, _untangled
from deepprox.struct import replace
from fits import changed

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def model():
    """The shapes of the other tests of saved models."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    species = np.array(["setosa", "<versicolor>", 'virginica "&"'], object)[y]
    return DeepClassifier((5,), link="sigmoid", alpha=0.01, random_state=0).fit(X, species)


def with_weights(model, *W, links=None):
    """A network of given weights, drawn as the model is."""
    blocks = model.fitted_.network.blocks[:1] * (len(W) - 1) + model.fitted_.network.blocks[-1:]
    blocks = [replace(block, size=len(w)) for block, w in zip(blocks, W)]
    if links is not None:
        blocks = [replace(block, link=link) for block, link in zip(blocks, links)] + blocks[len(links) :]
    other = changed(model, W, network=Network(tuple(blocks)))
    other.n_features_in_ = W[0].shape[1] - 1
    other.classes_ = np.arange(len(W[-1]))
    vars(other).pop("feature_names_in_")
    return other


def lines(drawing):
    root = ET.fromstring(drawing.svg())
    return [path for path in root.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None]


def test_every_surviving_weight_is_a_line_of_its_sign(model):
    drawn = lines(model.draw_network())
    survivors = [w[:, 1:][w[:, 1:] != 0] for w in model.fitted_.W]
    assert len(drawn) == sum(map(len, survivors))
    assert sum(path.get("class") == "plus" for path in drawn) == sum((w > 0).sum() for w in survivors)
    told = [float(path.find(f"{SVG}title").text.rsplit(": ", 1)[1]) for path in drawn]
    np.testing.assert_allclose(sorted(told), np.sort(np.concatenate(survivors)), rtol=1e-3)


def test_the_widest_line_is_the_largest_weight(model):
    W = (np.array([[0.0, 3.0, -1.0], [0.0, 0.5, 0.0]]), np.array([[0.1, 2.0, -4.0], [0.0, 1.0, 0.0]]))
    drawn = lines(NetworkDrawing.from_estimator(with_weights(model, *W)))
    assert len(drawn) == 6
    widths = {p.find(f"{SVG}title").text: float(p.get("stroke-width")) for p in drawn}
    first = {note: width for note, width in widths.items() if note.startswith("x")}
    assert max(first, key=first.get).endswith("+3") and min(first, key=first.get).endswith("+0.5")


def test_names_are_text_and_nothing_else(model):
    drawing = model.draw_network().svg()
    assert "<versicolor>" not in drawing and "&lt;versicolor&gt;" in drawing
    texts = [node.text for node in ET.fromstring(drawing).iter(f"{SVG}text")]
    assert {"setosa", "<versicolor>", 'virginica "&"'} <= {*texts}
    strange = copy.copy(model)
    strange.feature_names_in_ = np.array(["a\x00\x1b", "\ud800", "</svg><script>", "x" * 200], object)
    root = ET.fromstring(strange.draw_network().svg().encode())
    assert max(len(node.text) for node in root.iter(f"{SVG}text")) < 60


def test_removed_units_are_rings(model):
    live = model.live_[1].sum()
    root = ET.fromstring(model.draw_network().svg())
    rings = [c for c in root.iter(f"{SVG}circle") if c.get("class") == "ghost"]
    assert 0 < live < 5 and len(rings) == (5 - live) + (~model.selected_features_).sum()


def test_hundreds_of_units_are_limited(model):
    rng = np.random.default_rng(0)
    W = (rng.normal(size=(300, 201)), rng.normal(size=(300, 301)), rng.normal(size=(40, 301)))
    drawing = NetworkDrawing.from_estimator(with_weights(model, *W))
    svg = drawing.svg()
    assert [len(column.names) for column in drawing.columns] == [MOST_UNITS] * 4
    assert len(lines(drawing)) <= 3 * MOST_LINES and len(svg) < 1_000_000
    assert "300 of 300 sigmoid" in svg and f"the {MOST_UNITS} strongest" in svg
    # nobody who is drawn is weaker than somebody who is not
    drawn = {int(note[1:]) for note in drawing.columns[0].notes}
    sizes = np.linalg.norm(W[0][:, 1:], axis=0)
    assert sizes[[*drawn]].min() >= np.delete(sizes, [*drawn]).max()


def test_a_pool_is_one_dot_with_its_largest_weight(model):
    W = (np.array([[0.0, 1.0], [0.0, -2.0], [0.0, 0.5], [0.0, 0.25]]), np.array([[0.0, 1.0, 1.0]] * 2))
    drawing = NetworkDrawing.from_estimator(with_weights(model, *W, links=[MaxAbs()]))
    np.testing.assert_array_equal(np.sort(drawing.lines[0].ravel()), [-2.0, 0.5])
    assert drawing.columns[1].heading == "2 of 2 maxabs"


def test_a_network_without_inputs_is_drawn_too(model):
    W = tuple(w * (np.arange(w.shape[1]) == 0) for w in model.fitted_.W)
    drawing = NetworkDrawing.from_estimator(changed(model, W))
    assert not lines(drawing) and drawing.columns[0].heading == "0 of 4 inputs"


def test_untangling_removes_needless_crossings():
    rng = np.random.default_rng(1)
    hidden = rng.permutation(8)
    lines = [np.eye(8)[hidden], np.eye(8)[:, hidden]]
    orders = _untangled(lines, [8, 8, 8])
    for w, before, after in zip(lines, orders, orders[1:]):
        np.testing.assert_array_equal(w[np.ix_(after, before)], np.eye(8))


def test_it_saves_and_shows_itself(model, tmp_path):
    drawing = model.draw_network()
    drawing.save(tmp_path / "net.svg")
    assert ET.parse(tmp_path / "net.svg").getroot().tag == f"{SVG}svg"
    assert drawing._repr_svg_() == drawing.svg()
    assert re.search(r'viewBox="0 0 \d+ \d+"', drawing.svg())
