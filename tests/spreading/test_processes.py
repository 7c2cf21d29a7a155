"""Several processes on this machine: the same fit as one, and all end within seconds when one is lost."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deepprox.spreading.processes import ADDRESS, COORDINATOR, FAILED, RANK, WORLD
from spreading.sockets import listening

DEEPPROX = [sys.executable, "-m", "deepprox"]
SOON = 30  # seconds within which everything has ended after a fault


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Numbers and a factor, of which one process sees a level that the other does not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(401, 4))
    colour = np.array(["red", "green", "blue"])[rng.integers(0, 3, 401)]
    colour[5] = "white"
    signal_ = np.sin(2 * X[:, 0]) + X[:, 1] + (colour == "red") + 0.3 * rng.normal(size=401)
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(colour=colour, y=np.where(signal_ > 0.3, "up", "down"))
    path = tmp_path_factory.mktemp("table") / "table.csv"
    frame.to_csv(path, index=False)
    frame.to_parquet(path.with_suffix(".parquet"), row_group_size=100)
    return path


@pytest.mark.parametrize(
    ("ends", "code"),
    [("1 / 0", FAILED), ("raise SystemExit(7)", 7), ("raise SystemExit(0)", 0)],
)
def test_an_exception_ends_the_process_past_what_would_wait(ends, code):
    """Whatever is registered to run at the end, as the barrier of JAX is, does not run."""
    waits = "import atexit; atexit.register(lambda: print('waited'))"
    script = (
        f"{waits}\nfrom deepprox.spreading.processes import failing_fast\nwith failing_fast():\n    {ends}"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code and ("waited" in done.stdout) == (code == 0)
    assert ("Traceback" in done.stderr) == (code != 0)


def arguments(table, out, *more, hidden="4", link="tanh"):
    task = ["fit", str(table), "--target", "y", "--task", "classification", "--alpha", "0.01"]
    return [*task, "--hidden", hidden, "--link", link, "--json", "--out", str(out / "model"), *more]


def run(*command):
    return subprocess.run([*DEEPPROX, *command], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def alone(table, tmp_path_factory):
    done = run(*arguments(table, tmp_path_factory.mktemp("alone")))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_two_processes_fit_as_one(table, alone, tmp_path, kind):
    done = run("launch", "-n", "2", "--", *arguments(table.with_suffix(kind), tmp_path))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["rows"] == 401 and told["processes"] == 2 and told["converged"]
    assert told["selected"] == alone["selected"] and told["n_nonzero"] == alone["n_nonzero"]
    np.testing.assert_allclose(told["objective"], alone["objective"], rtol=1e-9)
    again = run("predict", str(tmp_path / "model"), str(table), "--json")
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
def test_an_error_in_one_process_ends_all_with_its_sentence(table, tmp_path):
    lines = table.read_text().splitlines()
    lines[2] = "," + lines[2].split(",", 1)[1]  # a row of the second process
    (tmp_path / "bad.csv").write_text("\n".join(lines))
    began = time.monotonic()
    done = run("launch", "-n", "2", "--", *arguments(tmp_path / "bad.csv", tmp_path))
    assert time.monotonic() - began < SOON
    assert done.returncode == 2 and "Column 'a' has 1 missing value" in done.stderr


@pytest.fixture(scope="module")
def long_table(tmp_path_factory):
    """Enough to be busy for a while."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 8))
    y = np.where(np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 > 1, "in", "out")
    path = tmp_path_factory.mktemp("long") / "table.csv"
    pd.DataFrame(X, columns=[*"abcdefgh"]).assign(y=y).to_csv(path, index=False)
    return path


def children(process):
    return [int(p) for p in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def launched(table, folder, *more):
    settings = ("--tol", "1e-12", "--max-iter", "100000", "--checkpoint", str(folder / "run"), *more)
    command = ["launch", "-n", "2", "--", *arguments(table, folder, *settings, hidden="20,20", link="relu")]
    return subprocess.Popen([*DEEPPROX, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_checkpoint(process, folder, newer=0.0):
    files = [folder / "run" / f"checkpoint-{k}-of-2.npz" for k in range(2)]
    while not all(file.exists() and file.stat().st_mtime > newer for file in files):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)


FAULTS = [
    (0, signal.SIGKILL),
    (1, signal.SIGKILL),
    (1, signal.SIGSTOP),
    (0, signal.SIGSTOP),
    (None, signal.SIGTERM),
]


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "number"), FAULTS)
def test_a_lost_process_ends_all_and_the_checkpoint_resumes(long_table, tmp_path, rank, number):
    process = launched(long_table, tmp_path)
    wait_for_checkpoint(process, tmp_path)
    time.sleep(2 * np.random.default_rng(number).random())
    ranks = children(process)
    began = time.monotonic()
    os.kill(process.pid if rank is None else ranks[rank], number)
    _, said = process.communicate(timeout=SOON)
    assert time.monotonic() - began < SOON and process.returncode > 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)
    if number == signal.SIGKILL:
        assert f"Process {rank} of 2 was ended by SIGKILL" in said and "--resume" in said
    if number == signal.SIGSTOP:
        assert "no longer answers" in said and "--resume" in said
    # it goes on: another checkpoint is written, which no fit from the beginning could be so soon
    when = max(file.stat().st_mtime for file in (tmp_path / "run").iterdir())
    again = launched(long_table, tmp_path, "--resume")
    try:
        wait_for_checkpoint(again, tmp_path, when)
    finally:
        again.terminate()
        assert "refused" not in again.communicate(timeout=SOON)[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="sockets are read from /proc")
def test_a_launched_fit_listens_on_this_machine_alone(long_table, tmp_path):
    process = launched(long_table, tmp_path)
    try:
        wait_for_checkpoint(process, tmp_path)
        found = [*listening(children(process))]
    finally:
        process.terminate()
        process.communicate(timeout=SOON)
    assert found and all(host.is_loopback for host, _ in found)


@pytest.mark.slow
def test_a_killed_fit_resumes_to_its_end(table, alone, tmp_path):
    kept = arguments(table, tmp_path, "--checkpoint", str(tmp_path / "run"))
    process = subprocess.Popen([*DEEPPROX, "launch", "--", *kept], stderr=subprocess.PIPE, text=True)
    wait_for_checkpoint(process, tmp_path)
    os.kill(children(process)[1], signal.SIGKILL)
    said = process.communicate(timeout=SOON)[1]
    command = said.split("Go on from the checkpoint with: deepprox ")[1].strip()
    done = run(*shlex.split(command))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["converged"] and told["n_nonzero"] == alone["n_nonzero"]
    np.testing.assert_allclose(told["objective"], alone["objective"], rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({COORDINATOR: "127.0.0.1:1"}, f"only {COORDINATOR} of the three are set"),
        ({COORDINATOR: "127.0.0.1:1", RANK: "2", WORLD: "2"}, "must be from 0 to 1"),
        ({COORDINATOR: "127.0.0.1:1", RANK: "x", WORLD: "2"}, "must be whole numbers"),
        ({ADDRESS: "127.0.0.1"}, f"{ADDRESS} is set, but none of the three"),
    ],
)
def test_a_strange_environment_is_told(monkeypatch, given, said):
    from deepprox.spreading.processes import connect

    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=said):
        connect()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["launch", "-n", "0", "--", "fit"], "at least one process"),
        (["launch", "--", "path", "table.csv"], "launch starts fits alone"),
        (["fit", "t.csv", "-t", "y", "--distributed"], "needs a strength"),
        (["fit", "t.csv", "-t", "y", "--distributed", "--alpha", "1"], "with --task"),
        (["fit", "-", "-t", "y", "--distributed", "--alpha", "1", "--task", "regression"], "give a file"),
        (["fit", "t.csv", "-t", "y", "--resume"], "give --alpha a number"),
    ],
)
def test_commands_that_cannot_be_are_told(command, said):
    from click.testing import CliRunner

    from deepprox.cli import main

    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2 and said in done.output
