"""The picture holds: imports point one way, and only the fronts know the world outside JAX."""

import ast
from pathlib import Path

from deepprox.traces import CODE

ROOT = Path(__file__).parents[1] / "src" / "deepprox"
TREES = {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}

# From low to high. A module imports from its own layer's file or folder, or from a lower layer.
LAYERS = [
    {"programs", "arrays"},
    {"struct", "checks", "files", "newton", "cache", "diary", "memory"},
    {"program_cache", "design"},
    {"runtime"},
    {"traces"},
    {"spreading"},
    {"activities", "links", "losses", "penalties"},
    {"blocks"},
    {"network"},
    {"problem", "budget"},
    {"splitting", "joining", "batches"},
    {"room"},
    {"scouting", "solution", "folds", "screening"},
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

MOST_BRANCHES, MOST_NAMES = 20, 30  # of a function that can be held in mind
WEIGHTS = {"w", "W", "v", "V", "w_l", "W_l"}  # what matrices of weights are called
BRANCHES = ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.match_case
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef


def here(path):
    return str(path.relative_to(ROOT))


def part_of(path):
    """The vocabulary, stage or front that a file belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports(tree):
    """Every module imported anywhere in a file, as a tuple of its parts; relative ones begin with dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ("." * node.level,) * (node.level > 0) + tuple((node.module or "").split("."))
            yield from ((*base, alias.name) for alias in node.names) if base == ("deepprox",) else [base]


def own_nodes(function):
    """What stands in a function and not in one that is inside it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            yield from own_nodes(node)


def branches(function):
    """One, and one more for every place where the function may part, in a condition too."""
    count = 1
    for node in own_nodes(function):
        count += isinstance(node, BRANCHES)
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return count


def names_bound(function):
    """Parameters and whatever is assigned."""
    stored = (node for node in own_nodes(function) if isinstance(node, ast.Name))
    parameters = (node for node in ast.walk(function.args) if isinstance(node, ast.arg))
    return {node.arg for node in parameters} | {node.id for node in stored if isinstance(node.ctx, ast.Store)}


def test_every_module_has_its_layer():
    assert not [here(path) for path in TREES if part_of(path) not in LEVEL and part_of(path)[:2] != "__"]


def test_imports_name_the_whole_module():
    assert not [
        here(path) for path, tree in TREES.items() if any(name[0][0] == "." for name in imports(tree))
    ]


def test_imports_point_down():
    upward = []
    for path, tree in TREES.items():
        part = part_of(path)
        for name in imports(tree) if part in LEVEL else ():
            lower = len(name) > 1 and LEVEL.get(name[1], len(LAYERS)) < LEVEL[part]
            if name[0] == "deepprox" and part not in name[1:2] and not lower:
                upward.append(f"{here(path)} imports {'.'.join(name)}")
    assert not upward


def test_core_knows_only_jax():
    known = {
        here(path): {name[0] for name in imports(tree)}
        for path, tree in TREES.items()
        if part_of(path) in CORE
    }
    assert not {path: names & FRONT_ONLY for path, names in known.items() if names & FRONT_ONLY}


def test_kept_traces_depend_on_every_folder_of_the_core():
    folders = {part_of(path) for path in TREES if part_of(path) in CORE and path.parent != ROOT}
    assert {*CODE} == folders | {"."}


def test_capabilities_are_not_probed():
    probing = {
        path
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if getattr(node, "id", "") == "hasattr"
    }
    assert not [here(path) for path in probing if part_of(path) != "estimators"]


def test_records_are_registered_by_struct():
    # structures from jax.tree_util.register_dataclass compare equal between classes; see struct.py
    registers = {
        here(path)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if getattr(node, "attr", getattr(node, "id", "")) == "register_dataclass"
    }
    assert not registers


def slices_weights(node):
    """Whether it is ``x[:, 1:]``, or ``w[:, 0]`` for a name of weights: the biases and all others."""
    parts = getattr(getattr(node, "slice", None), "elts", [])
    if not parts or not (isinstance(parts[0], ast.Slice) or getattr(parts[0], "value", None) is ...):
        return False
    last = parts[-1]
    if isinstance(last, ast.Slice):
        return getattr(last.lower, "value", None) == 1 and last.upper is None
    base = node.value.value if isinstance(node.value, ast.Subscript) else node.value
    return getattr(last, "value", None) == 0 and getattr(base, "id", getattr(base, "attr", "")) in WEIGHTS


def test_matrices_of_weights_are_cut_by_their_blocks_alone():
    cutting = [
        f"{here(path)}:{node.lineno}"
        for path, tree in TREES.items()
        if part_of(path) != "blocks"
        for node in ast.walk(tree)
        if slices_weights(node)
    ]
    assert not cutting
    asking = [
        here(path)
        for path, tree in TREES.items()
        if part_of(path) != "blocks"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
        if "Dense" in {getattr(name, "id", "") for name in ast.walk(node.args[1])}
    ]
    assert not asking


def test_no_function_parts_or_names_too_much():
    hard = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                counts = branches(node), len(names_bound(node))
                if counts[0] > MOST_BRANCHES or counts[1] > MOST_NAMES:
                    hard[f"{here(path)} {node.name}"] = counts
    assert not hard
