"""Runs cases in processes that may die, and says which were wrong."""

import json
import os
import shlex
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).parents[1]


def attack(kind, cases, folder):
    """What came of every case of a kind: ``wrong``, ``said``, ``where``, and the seconds ``spent``."""
    folder.mkdir(parents=True, exist_ok=True)
    left, known = list(range(len(cases))), {}
    while left:
        notes = folder / f"notes-{len(left)}"
        given = folder / "cases.json"
        given.write_text(json.dumps([cases[i] for i in left]))
        notes.unlink(missing_ok=True)
        ended = _process([sys.executable, "-m", "attack.worker", kind, str(given), str(notes)], folder)
        told = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
        done = {left[note["ended"]]: note for note in told if "ended" in note}
        known |= done
        if ended.returncode == 0:
            break
        begun = [left[note["began"]] for note in told if "began" in note]
        if not begun or begun[-1] in done or ended.returncode == 1:  # an error of its own
            at = f"at {cases[begun[-1]]}" if begun else "before the first case"
            raise AssertionError(
                f"The attack itself failed {at}, with {ended.returncode}:\n{ended.stderr[-3000:]}"
            )
        known[begun[-1]] = {
            "wrong": _death(ended),
            "said": ended.stderr[-400:],
            "where": "",
            "spent": (60, 60),
        }
        left = left[left.index(begun[-1]) + 1 :]
    return [known[i] for i in range(len(cases))]


def environment(**more):
    """What a process of the attack finds in its environment."""
    paths = [str(TESTS), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg"} | more


def python(words, folder, **more):
    """What a Python process says that ends well."""
    command = [sys.executable, *words]
    ended = subprocess.run(command, cwd=folder, env=environment(**more), capture_output=True, text=True)
    assert ended.returncode == 0, f"it ended with {ended.returncode}:\n{ended.stderr[-3000:]}"
    return ended.stdout


def _process(command, folder):
    place = folder / "scratch"
    place.mkdir(exist_ok=True)
    with open(folder / "stdout", "w") as out, open(folder / "stderr", "w+") as err:
        ended = subprocess.run(
            command, cwd=place, env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        err.seek(0)
        ended.stderr = err.read()
    return ended


def _death(ended):
    """How a process ended that should not have."""
    if ended.returncode == -signal.SIGPROF:
        return "over 60 CPU seconds"
    if ended.returncode == -signal.SIGALRM:
        return "over 300 seconds of waiting"
    if ended.returncode < 0:
        return f"the process died of {signal.Signals(-ended.returncode).name}"
    return f"the process ended with {ended.returncode}"


def complain(kind, cases, found):
    """Fail with every case that was wrong, and how to repeat it alone."""
    told = []
    for case, note in zip(cases, found, strict=True):
        if note["wrong"]:
            alone = shlex.quote(import_module(f"attack.{kind}").text(case))
            told.append(
                f"{note['wrong']}: {note['said']} ({note['where'] or 'no frame'})\n"
                f"  PYTHONPATH=src:tests python -m attack.worker {kind} {alone}"
            )
    if told:
        raise AssertionError("\n".join([f"{len(told)} of {len(cases)} cases are wrong:", *told]))
