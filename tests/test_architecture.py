"""The picture holds: imports point one way, and only the fronts know the world outside JAX."""

import ast
from pathlib import Path

import pytest

from deepprox.traces import CODE

ROOT = Path(__file__).parents[1] / "src" / "deepprox"
FILES = sorted(ROOT.rglob("*.py"))

# From low to high. A module imports from its own layer's file or folder, or from a lower layer.
LAYERS = [
    {"programs", "arrays"},
    {"struct", "checks", "files", "newton", "cache", "diary", "memory"},
    {"program_cache"},
    {"runtime"},
    {"traces"},
    {"spreading"},
    {"activities", "links", "losses", "penalties"},
    {"blocks"},
    {"problem"},
    {"splitting", "joining", "batches"},
    {"scouting"},
    {"solve", "moving"},
    {"statistics"},
    {"pruned"},
    {"plotting", "saving", "tables", "export"},
    {"report"},
    {"posterior"},
    {"estimators"},
    {"selection", "dask", "streaming"},
    {"loading"},
    {"applications"},
    {"cli"},
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
CORE = {name for name, level in LEVEL.items() if level <= LEVEL["solve"]}
FRONT_ONLY = {"sklearn", "pandas", "rich", "matplotlib"}

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


def part_of(path):
    """The vocabulary, stage or front that a file belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports(path):
    """Every module imported anywhere in a file, as a tuple of its dotted parts."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: import by the full name"
            base = tuple(node.module.split("."))
            yield from ((*base, alias.name) for alias in node.names) if base == ("deepprox",) else [base]


@every_file
def test_every_module_has_its_layer(path):
    assert part_of(path) in LEVEL or part_of(path).startswith("__"), f"place {part_of(path)} in LAYERS"


@every_file
def test_imports_point_down(path):
    part = part_of(path)
    for name in imports(path):
        if name[0] == "deepprox" and part in LEVEL:
            assert len(name) > 1, f"{part} imports the front door"
            same_part, lower = name[1] == part, LEVEL[name[1]] < LEVEL[part]
            assert same_part or lower, f"{part} imports {'.'.join(name)}"


@pytest.mark.parametrize(
    "path", [path for path in FILES if part_of(path) in CORE], ids=lambda path: path.name
)
def test_core_knows_only_jax(path):
    assert not {name[0] for name in imports(path)} & FRONT_ONLY


def test_kept_traces_depend_on_every_folder_of_the_core():
    folders = {part_of(path) for path in FILES if part_of(path) in CORE and path.parent != ROOT}
    assert {*CODE} == folders | {"."}


@every_file
def test_capabilities_are_not_probed(path):
    if part_of(path) != "estimators":
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert "hasattr" not in names


@every_file
def test_records_are_registered_by_struct(path):
    # structures from jax.tree_util.register_dataclass compare equal between classes; see struct.py
    nodes = ast.walk(ast.parse(path.read_text()))
    assert not any(getattr(node, "attr", getattr(node, "id", "")) == "register_dataclass" for node in nodes)
