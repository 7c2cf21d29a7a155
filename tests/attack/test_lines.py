"""Hostile command lines: a result or one sentence, the right exit code, and no file damaged."""

import os
import signal
import subprocess
import sys
import time

import pytest

from attack.driver import attack, complain, environment
from attack.lines import LINES

FEW = 15


def end_well(lines, folder):
    """Run the lines, and complain."""
    complain("lines", lines, attack("lines", lines, folder))


def test_some_lines(tmp_path):
    end_well(LINES[:: len(LINES) // FEW], tmp_path)


@pytest.mark.slow
def test_lines(tmp_path):
    assert len(LINES) >= 100
    end_well(LINES, tmp_path)


TABLE = "a,b,cost\n" + "".join(f"{i * 37 % 101},{i * 13 % 7},{i * 29 % 31}\n" for i in range(4000))
MAIN = [sys.executable, "-c", "from deepprox.cli import main; main()"]
LONG = [
    "fit",
    "table.csv",
    "--target",
    "cost",
    "--hidden",
    "40,40",
    "--alpha",
    "auto",
    "--tol",
    "1e-12",
    "--quiet",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_line_that_is_stopped(name, tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    process = subprocess.Popen(
        [*MAIN, *LONG, "--out", "model"], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    time.sleep(8)
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0 and "Traceback" not in said
    assert os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.slow
def test_a_closed_pipe_and_a_full_disk_are_one_sentence(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE[:2000].rpartition("\n")[0] + "\n")
    words = ["fit", "table.csv", "--target", "cost", "--hidden", "none", "--alpha", "0.1"]
    with open("/dev/full", "w") as full:  # its standard output, which nobody can put another file in place of
        ended = subprocess.run(
            [*MAIN, *words], cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    said = ended.stderr.splitlines()[-1]
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert said.startswith("deepprox: ") and said.endswith("No space left on device.") and "None" not in said
