"""The pages on the vocabulary are what the code says, and their examples run."""

import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from deepprox import links, losses, penalties

DOCS = Path(__file__).parents[1] / "docs"
CONTRACTS = {
    "links": (links, links.Link),
    "losses": (losses, losses.Loss),
    "penalties": (penalties, penalties.Penalty),
}


@pytest.fixture(scope="module")
def vocabulary():
    spec = importlib.util.spec_from_file_location("vocabulary", DOCS / "vocabulary.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_page_is_up_to_date(vocabulary, name):
    written = (DOCS / f"{name}.md").read_text()
    assert written == vocabulary.page(name), "run docs/vocabulary.py"


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_class_is_on_its_page_with_its_picture(name):
    module, contract = CONTRACTS[name]
    members = inspect.getmembers(module, inspect.isclass)
    public = [n for n, c in members if issubclass(c, contract) and n[0] != "_" and not inspect.isabstract(c)]
    page = (DOCS / f"{name}.md").read_text()
    assert public and not set(public) - set(re.findall(r"^## (\w+)$", page, re.M))
    for picture in re.findall(r"\]\((images/[^)]+)\)", page):
        assert (DOCS / picture).stat().st_size > 1000


def test_write_your_own_runs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    world = {"X": X, "y": np.tanh(X[:, 0] + X[:, 1]) + 0.1 * rng.normal(size=80)}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "write-your-own.md").read_text(), re.S)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "write-your-own.md", "exec"), world)
