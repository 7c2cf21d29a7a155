"""Cases that are forged model files: ``["a", 17]`` is the 17th made of the first of two saved models."""

import os
import sys
import traceback
from pathlib import Path

import numpy as np
import pandas as pd

import deepprox
from attack import arena, judge
from attack.mutants import BOMBS, FORGERS, mutant
from deepprox import links, penalties, saving
from deepprox.tables import Columns

ROOM = 2**29  # bytes that loading may ask for
FILE = "mutant.deepprox"
PEOPLE = pd.DataFrame(
    {
        "age": arena.X[:, 0],
        "<b>": arena.X[:, 1],
        "town": np.array(list("abc") * 8),
        "smokes": arena.X[:, 0] > 0,
    }
)
DAMAGED = 4  # of the forgers: those that only damage, so that a file is refused or the same
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
FORBIDDEN = (
    "code.", "ctypes.", "exec", "ftplib.", "glob.", "http.", "import", "marshal.", "os.", "pickle.", "pty.",
    "shutil.", "socket.", "subprocess.", "tempfile.", "urllib.",
)  # fmt: skip
ALLOWED = ("os.listdir", "os.scandir")

made = {}
seen, watching = [], []


def text(case):
    """A case as it can be typed."""
    return f"{case[0]} {case[1]}"


def begin():
    """Two saved models, one of a table and one of arrays with words in it; and somebody who watches."""
    columns = Columns().fit(PEOPLE)
    network = arena.small("DeepClassifier", hidden_layer_sizes=(3,)).fit(
        columns.transform(PEOPLE), arena.labels
    )
    network.summary()
    saving.save(network, "a.deepprox", columns, {"command": "deepprox fit people.csv", "target": "cost"})
    words = {
        "link": links.LpNorm(3.0),
        "penalty": (penalties.SparseGroup(0.01), penalties.L1(np.full((1, 2), 0.1))),
    }
    arena.small("DeepRegressor", hidden_layer_sizes=(4,), **words).fit(arena.X, arena.y).save("b.deepprox")
    for name in "ab":
        made[name] = Path(f"{name}.deepprox").read_bytes()
        Path(FILE).write_bytes(made[name])
        use(deepprox.load(FILE))  # what is imported late is imported now
    sys.addaudithook(watch)


def watch(event, args):
    """Note what no file may do."""
    if not watching:
        return
    if event == "open":
        path, _, flags = args
        path = str(
            path
        )  # a warning and a traceback show lines of code, and how much memory there is may be asked
        ours = path == FILE or path.startswith("/proc/") or path.endswith(".py")
        if flags & WRITES or not ours:
            seen.append(f"open {path} {flags:o}")
    elif event.startswith(FORBIDDEN) and event not in ALLOWED:
        seen.append(f"{event} {args!r:.100}")


def use(model):
    """What anybody does with a model."""
    network = model.steps[-1][1] if hasattr(model, "steps") else model
    given = PEOPLE if hasattr(model, "steps") else arena.X
    model.predict(given)
    if hasattr(network, "predict_proba"):
        model.predict_proba(given)
    assert len(network.history_) and str(network.summary())
    repr(network)


def forged(name, number):
    """The bytes of a case."""
    if name == "bombs":
        return BOMBS[number](made["a"])
    return mutant(made[name], made["ab".replace(name, "")], number)


def attempt(name, number):
    """Load it and use it."""
    Path(FILE).write_bytes(forged(name, number))
    seen.clear()
    watching.append(True)
    try:
        model = deepprox.load(FILE)
    finally:
        watching.clear()
    if name != "bombs" and number % len(FORGERS) < DAMAGED:
        network = model.steps[-1][1] if hasattr(model, "steps") else model
        weights = [[w.tobytes() for w in fine.fitted_.W] for fine in whole()]
        assert [w.tobytes() for w in network.fitted_.W] in weights, (
            "a damaged file was loaded as another model"
        )
    watching.append(True)
    try:
        use(model)
    finally:
        watching.clear()
    return model


def whole():
    """The two models as they were."""
    for name in "ab":
        model = deepprox.load(f"{name}.deepprox")
        yield model.steps[-1][1] if hasattr(model, "steps") else model


def run(case):
    """What was wrong, what was said, and where."""
    try:
        attempt(*case)
    except BaseException as error:
        said, where = f"{type(error).__name__}: {error}", judge.where(error)
        if seen:
            return f"it did what no file may: {seen[0]}", said, where
        if where.endswith(" read") and str(error).startswith(f"{FILE} cannot be loaded: "):
            return judge.wrong(error), "refused", where
        return judge.wrong(error) or (None if isinstance(error, ValueError) else "no ValueError"), said, where
    return (f"it did what no file may: {seen[0]}" if seen else None), "loaded", ""


def again(text):
    """One case, such as ``a 17``, with its traceback; the file stays."""
    name, number = text.split()
    try:
        print("loaded:", attempt(name, int(number)))
    except BaseException as error:
        traceback.print_exc()
        print("\nwrong:", judge.wrong(error))
    print("seen:", seen, "file:", os.path.abspath(FILE))
