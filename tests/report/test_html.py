"""The page holds what it promises, needs nothing from anywhere, and shows text from data as text."""

import copy
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import confusion_matrix, r2_score

from deepprox import DeepClassifier, DeepRegressor
from deepprox.joining.live import Live
from deepprox.losses import Hinge
from deepprox.plotting.convergence import MEASURES, PHASES
from deepprox.report import figures
from deepprox.report.html import write_report
from deepprox.report.page import STYLE
from fits import changed

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SVG = "{http://www.w3.org/2000/svg}"
EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "$x^2$ & </style>", "a'b"]
TURNS = [chr(code) for code in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]


class Page(HTMLParser):
    """Tags, attributes and visible text of a page."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.attributes, self.text, self.source = set(), [], [], path.read_text()
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(self.text)


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X.set_axis(EVIL, axis=1), np.array(["<b>setosa</b>", "&amp;", "virginica"], object)[y]


@pytest.fixture(scope="module")
def model(flowers):
    return DeepClassifier((5,), link="sigmoid", alpha=0.01, random_state=0).fit(*flowers)


@pytest.fixture(scope="module")
def page(model, flowers, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    model.report(path, *flowers, title="Flowers <i>")
    return Page(path)


def write(model, X, y, folder):
    model.report(folder / "page.html", X, y)
    return Page(folder / "page.html")


def test_text_from_data_stays_text(page):
    assert not page.tags & {"script", "img", "i", "iframe", "object", "embed", "link"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for name in EVIL:
        assert any(name in words for words in page.text)
    assert "<b>setosa" not in page.source
    assert "<b>setosa</b>" in page.text and "&amp;" in page.text and "Flowers <i>" in page.text


def test_the_page_asks_nobody_for_anything(page):
    for name, value in page.attributes:
        if name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            assert value.startswith("#"), (name, value)
    assert not re.findall(r"@import|url\((?!#)", page.source)
    policies = [value for name, value in page.attributes if name == "content"]
    assert any(policy.startswith("default-src 'none'") for policy in policies)


def test_every_section_is_there_and_linked(page):
    titles = [
        "What was fitted",
        "The network that is left",
        "Inputs",
        "Convergence",
        "Confusion",
        "Calibration",
        "Degrees of freedom and criteria",
        "How to repeat it",
    ]
    assert [words for words in page.text if words in titles][: len(titles)] == titles  # the links, in order
    anchors = [value for name, value in page.attributes if name == "href"]
    ids = {value for name, value in page.attributes if name == "id"}
    assert {anchor[1:] for anchor in anchors} <= ids


def test_numbers_on_the_page_are_those_of_the_fit(page, model, flowers):
    X, y = flowers
    counts = confusion_matrix(y, model.predict(X), labels=model.classes_)
    shown = re.findall(r'rgba\(var\(--heat\),[\d.]+\)">(\d+)<', page.source)
    np.testing.assert_array_equal(np.array(shown, int).reshape(3, 3), counts)
    assert f"{model.score(X, y):.1%}" in page.text
    assert f"{model.criteria().bic:.6g}" in page.text
    assert f"{model.n_nonzero_} of 43" in page.text
    assert "DeepClassifier(alpha=0.01, hidden_layer_sizes=(5,), link='sigmoid', random_state=0)" in page.text


def test_every_colour_of_a_picture_has_a_light_and_a_dark_one():
    light, dark = STYLE.split("@media(prefers-color-scheme:dark)")
    assert {color for color, _ in (PHASES | MEASURES).values()} <= figures.THEME.keys()
    for variable in figures.THEME.values():
        values = [re.search(rf"{variable}:(#[0-9a-f]{{6}})", part)[1] for part in (light, dark)]
        assert values[0] != values[1]


def test_parts_of_pictures_have_names_of_their_own(page):
    ids = [value for name, value in page.attributes if name == "id"]
    clips = [value for value in ids if re.fullmatch(r"p[0-9a-f]{10}", value)]
    assert len(clips) == len(set(clips))


def test_a_regression_of_two_columns(tmp_path, flowers):
    X = flowers[0].to_numpy()
    y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2]])
    model = DeepRegressor((), alpha=0.01).fit(X, y)
    page = write(model, X, y, tmp_path)
    assert f"{r2_score(y[:, 0], model.predict(X)[:, 0]):.4f}" in page.text
    assert {"Residuals", "Calibration", "response 1", "response 2"} <= {*page.text}
    assert "Confusion" not in page.text
    assert page.source.count("<figure") == 1 + 1 + 4 + 2  # network, convergence, residuals, calibration


def test_a_loss_without_probabilities_has_no_calibration(model, flowers, tmp_path):
    page = write(changed(model, loss=Hinge(0.01), statistics={}), *flowers, tmp_path)
    assert "Confusion" in page.text and "Calibration" not in page.text
    assert "Not computed" in page.words


def test_an_empty_network_says_so(model, flowers, tmp_path):
    solution = model.solution_
    none = Live((np.zeros(4, bool), *solution.live.reads[1:]))
    W = tuple(w * (np.arange(w.shape[1]) == 0) for w in solution.W)
    empty = changed(model, solution=replace(solution, W=W, live=none))
    assert "No input is left" in write(empty, *flowers, tmp_path).words


def test_new_observations_may_lack_a_class(model, flowers, tmp_path):
    X, y = flowers
    page = write(model, X[:60], pd.Series(y[:60]), tmp_path)
    assert "judged by 60." in page.words


def test_names_along_a_path_are_no_formulas():
    alpha = np.geomspace(0.01, 1, 5)
    names = ["$\\frac{", "<script>", *(f"x{k}" for k in range(20))]
    norms = {name: (30 - k) * (1 - alpha) for k, name in enumerate(names)}
    frame = {"alpha": alpha, "n_inputs": np.arange(5), "n_nonzero": np.arange(5), "bic": [1.0, None, 2, 3, 4]}
    record = {"frame": frame, "norms": norms, "picks": {"bic": {"alpha": 0.1}}}
    texts = [node.text for node in ET.fromstring(figures.path(record)).iter(f"{SVG}text")]
    assert {"$\\frac{", "<script>", "bic"} <= {*texts}


def test_posterior_has_its_section_and_its_check(model, flowers, tmp_path):
    draws = model.sample_posterior("laplace", n_chains=2, n_draws=20, random_state=0)
    model.report(tmp_path / "page.html", *flowers, posterior=draws)
    shown = Page(tmp_path / "page.html")
    assert 'id="posterior"' in shown.source and draws.verdict() in shown.words
    assert "90 % of replicates" in shown.words and "script" not in shown.tags


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # in old versions of matplotlib
@pytest.mark.filterwarnings("ignore:Matplotlib currently does not support:UserWarning")
def test_text_from_data_turns_no_direction_and_moves_no_cursor(model, flowers, tmp_path):
    X, y = flowers
    names = [*map("{}a\x1b[2Jb".format, TURNS[:4])]
    turned = copy.copy(model)
    turned.feature_names_in_ = np.array(names, object)
    turned.classes_ = np.array(["\x9b2Jred", "\u202ecod.exe", "\ud800"], object)
    labels = turned.classes_[np.unique(y, return_inverse=True)[1]]
    record = {"alpha": [0.1, 0.2], "n_inputs": [1, 0], "n_nonzero": [1, 0]}
    norms = {name: [1.0, 0.0] for name in TURNS}
    write_report(
        turned,
        tmp_path / "page.html",
        X.set_axis(names, axis=1),
        labels,
        title="\u2067title",
        command="fit \u202e",
        path_record={"frame": record, "norms": norms, "picks": {}},
    )
    turned.draw_network().save(tmp_path / "net.svg")
    printed = str(turned.summary()), turned.summary()._repr_html_(), turned.draw_network().svg()
    for text in ((tmp_path / "page.html").read_text(), (tmp_path / "net.svg").read_text(), *printed):
        assert not {*text} & {*TURNS, "\x1b", "\x9b", "\ud800"}
    shown = Page(tmp_path / "page.html")
    assert "\\u202ecod.exe" in shown.text and "\\u2067title" in shown.text
    assert all(f"\\u{ord(turn):04x}a\\u001b[2Jb" in shown.text for turn in TURNS[:4])


def test_a_page_replaces_regular_files_only(model, flowers, tmp_path):
    (tmp_path / "page.html").symlink_to("/dev/null")
    with pytest.raises(OSError, match=r"page\.html is a device, and only a regular file can be replaced"):
        model.report(tmp_path / "page.html", *flowers)
    with pytest.raises(OSError, match=r"page\.html is a device"):
        model.draw_network().save(tmp_path / "page.html")
