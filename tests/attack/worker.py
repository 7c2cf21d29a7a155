"""Runs cases, one after another, under limits; what it began and how that ended goes to a file.

    python -m attack.worker arguments CASES NOTES   # a JSON list of cases; a line of JSON for each
    python -m attack.worker arguments 'small("DeepRegressor", alpha="a").fit(X, y)'    # one case, as it ends

Kinds of cases are modules of this folder with ``begin()``, ``run(case)`` and ``again(text)``.
"""

import json
import os
import resource
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

CPU, WALL = 60, 300  # seconds that a case may take, working and waiting
MEMORY = Path("/proc/self/status")


def limits(room):
    """From here on so many bytes more than are held, and so much time, or the process ends."""
    signal.setitimer(signal.ITIMER_PROF, CPU)
    signal.setitimer(signal.ITIMER_REAL, WALL)
    if MEMORY.exists():
        told = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines())
        held = 1024 * int(told["VmData"].split()[0])
        resource.setrlimit(resource.RLIMIT_DATA, (held + room, resource.RLIM_INFINITY))


def no_limits():
    """Between cases time stands still."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)


def work(kind, cases, notes):
    """Run all cases, and note each before and after."""
    kind.begin()
    with open(notes, "a") as file:
        for number, case in enumerate(cases):
            print(json.dumps({"began": number}), file=file, flush=True)
            cpu, began = time.process_time(), time.monotonic()
            limits(kind.ROOM)
            wrong, said, where = kind.run(case)
            no_limits()
            spent = time.process_time() - cpu, time.monotonic() - began
            note = {"ended": number, "wrong": wrong, "said": said[:400], "where": where, "spent": spent}
            print(json.dumps(note), file=file, flush=True)


if __name__ == "__main__":
    kind = import_module(f"attack.{sys.argv[1]}")
    if len(sys.argv) == 3:
        kind.begin()
        limits(kind.ROOM)
        kind.again(sys.argv[2])
    else:
        work(kind, json.loads(Path(sys.argv[2]).read_text()), os.path.abspath(sys.argv[3]))
