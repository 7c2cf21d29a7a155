"""A class of the vocabulary without a row, or without its formula, is a failing test."""

import inspect
import pkgutil
from importlib import import_module

import pytest

from deepprox import blocks, links, losses, penalties
from rows import BLOCKS, GROUP_LINKS, LINKS, LOSSES, PENALTIES


def classes(module, contract):
    """The public final classes of a vocabulary."""
    members = inspect.getmembers(module, inspect.isclass)
    final = [c for name, c in members if issubclass(c, contract) and name[0] != "_"]
    return [c for c in final if not inspect.isabstract(c)]


VOCABULARY = [
    *((c, [row.block for row in BLOCKS]) for c in classes(blocks, blocks.Block)),
    *((c, [row.link for row in [*LINKS, *GROUP_LINKS]]) for c in classes(links, links.Link)),
    *((c, [row.loss for row in LOSSES]) for c in classes(losses, losses.Loss)),
    *((c, [row.penalty for row in PENALTIES]) for c in classes(penalties, penalties.Penalty)),
]


@pytest.mark.parametrize("cls, instances", VOCABULARY, ids=lambda arg: getattr(arg, "__name__", ""))
def test_every_class_has_a_row(cls, instances):
    assert any(type(instance) is cls for instance in instances), f"add {cls.__name__} to tests/rows.py"


@pytest.mark.parametrize("cls, instances", VOCABULARY, ids=lambda arg: getattr(arg, "__name__", ""))
def test_first_docstring_line_is_the_mathematics(cls, instances):
    first = cls.__doc__.splitlines()[0]
    assert first.startswith("``") and first.count("``") >= 2, f"{cls.__name__}: start with ``its formula``"


@pytest.mark.parametrize("folder, contract", [(losses, losses.Loss), (penalties, penalties.Penalty)])
def test_every_class_of_a_folder_is_named_by_it(folder, contract):
    files = [info.name for info in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}.")]
    found = {c.__name__ for file in files for c in classes(import_module(file), contract)}
    assert len(found) >= 10 and found <= {*folder.__all__}
