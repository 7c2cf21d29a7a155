"""Every model on every split of every table, one line of JSON for each; those that there are stay."""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.tables.peers import DEFAULTS, TUNED
from benchmarks.tables.record import Table
from benchmarks.tables.sets import load, stored

PEERS = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"
LASSONET = {"lassonet": "path", "lassonet, tuned": "folds"}
RESULTS = Path(__file__).parents[1] / "results"
SPLITS = 5
LIMIT = 900  # seconds that one fit of LassoNet may take


def makers() -> dict[str, Any]:
    """All models by name."""
    from benchmarks.tables.ours import OURS

    return DEFAULTS | {f"{name}, tuned": make for name, make in TUNED.items()} | OURS


def names() -> list[str]:
    """All names; those of LassoNet where it is there."""
    return [*makers(), *(LASSONET if PEERS.exists() else ())]


def one(table: Table, split: int, name: str) -> dict[str, Any]:
    """The line of one fit."""
    row = {"table": table.name, "split": split, "model": name, "held": table.held, "classes": table.classes}
    row |= {"n": len(table.y), "p": table.X.shape[1], "source": table.source}
    row["truth"] = None if table.truth is None else np.flatnonzero(table.truth).tolist()
    train, test = table.split(split)
    return row | (of_lassonet if name in LASSONET else here)(table, name, train, test)


def here(table: Table, name: str, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """A fit in this process: its score, CPU seconds, and what it is made of."""
    from benchmarks.tables.ours import facts

    model = makers()[name](table.classes)
    began, wall = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table.X[train], table.y[train])
        told = {"seconds": time.process_time() - began, "wall": time.perf_counter() - wall}
        told["test"] = float(model.score(table.X[test], table.y[test]))
    return told | facts(model)


def of_lassonet(table: Table, name: str, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """A fit by the Python that has LassoNet; one that breaks or takes too long says so and has no score."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, X=table.X, y=table.y, train=train, test=test, classes=table.classes)
        command = [PEERS, Path(__file__).parent / "peer_lassonet.py", path, LASSONET[name]]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return {"failed": f"more than {LIMIT} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def options() -> dict[str, str]:
    """What stands after ``--``."""
    given = [text[2:] for text in sys.argv if text.startswith("--")]
    return {name: value for name, _, value in (text.partition("=") for text in given)}


def known(path: Path) -> list[dict[str, Any]]:
    """The lines that there are."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wanted(given: dict[str, str], tables: list[Table], done: list[dict]) -> Iterator[tuple[Table, int, str]]:
    """What is asked for and is not there: a split of all tables before the next."""
    chosen = given["models"].split(";") if given.get("models") else names()
    if unknown := set(chosen) - set(names()):
        raise SystemExit(f"no model {', '.join(sorted(unknown))}; there are {'; '.join(names())}")
    there = {(row["table"], row["split"], row["model"]) for row in done}
    for split in range(int(given.get("splits", SPLITS))):
        for table in sorted(tables, key=lambda table: table.X.size):
            for name in chosen:
                if (table.name, split, name) not in there:
                    yield table, split, name


def main() -> None:
    """Fit what is missing, then write the page."""
    from benchmarks.tables.page import page

    given = options()
    out = Path(given.get("out", RESULTS))
    lines = out / "tables.jsonl"
    some = given["tables"].split(",") if given.get("tables") else None
    if given.get("data"):
        every, missing = stored(Path(given["data"])), []
        tables = [table for table in every if some is None or table.name in some]
    else:
        tables, missing = load(some)
    if missing:
        print("Not on this machine:", ", ".join(missing))
    if not PEERS.exists():
        print("LassoNet is left out: `make peers` installs it.")
    out.mkdir(parents=True, exist_ok=True)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # of the processes that fit
    tasks = list(wanted(given, tables, known(lines)))
    run = Parallel(n_jobs=int(given.get("jobs", 1)), return_as="generator_unordered")
    for k, row in enumerate(run(delayed(one)(*task) for task in tasks), 1):
        with open(lines, "a") as file:
            file.write(json.dumps(row) + "\n")
        score = f"{row['test']:.3f}" if "test" in row else row["failed"]
        print(f"{k} of {len(tasks)}: {row['table']} {row['split']} {row['model']} {score}", flush=True)
    (out / "tables.md").write_text(page(known(lines)))
