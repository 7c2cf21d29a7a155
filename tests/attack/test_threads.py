"""Threads, Ctrl-C and kill -9 change no bit and leave nothing half done."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from attack.driver import python
from deepprox import DeepClassifier, DeepRegressor, saving
from deepprox.diary import Diary

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
LABELS = np.where(Y > 0, "up", "down")


def model(kind):
    """One of three that share no program: a classifier, a regressor, and one in single precision."""
    if kind == 0:
        return DeepClassifier((5,), link="relu", alpha=0.01, n_init=3, random_state=0), LABELS
    if kind == 1:
        return DeepRegressor((), alpha=0.1), Y
    return DeepRegressor((), alpha=0.1, dtype="float32"), Y


def bits(kind):
    """Weights and predictions of a fit, after a pickle."""
    estimator, response = model(kind)
    again = pickle.loads(pickle.dumps(estimator.fit(X, response)))
    return [w.tobytes() for w in again.fitted_.W], again.predict(X).tobytes(), again.objective_.hex()


@pytest.mark.parametrize("threads, kinds", [(4, [1, 2]), pytest.param(8, [0, 1, 2], marks=pytest.mark.slow)])
def test_fits_in_threads_are_fits_alone(threads, kinds):
    alone = {kind: bits(kind) for kind in kinds}
    with ThreadPoolExecutor(threads) as pool:
        orders = [np.random.default_rng(k).permutation(kinds) for k in range(threads)]
        found = pool.map(lambda order: [(int(kind), bits(int(kind))) for kind in order], orders)
        assert all(told == alone[kind] for one in found for kind, told in one)


def test_an_interrupted_fit_leaves_what_was_there(monkeypatch):
    estimator, _ = model(1)
    whole = model(1)[0].fit(X, Y)

    def press(self, *given, **named):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of pytest ignore it
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.signal(signal.SIGINT, before)

    with monkeypatch.context() as patch:
        for writes in ("chunk", "tell"):
            patch.setattr(Diary, writes, press)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, Y)
        with pytest.raises(NotFittedError):
            estimator.predict(X)
        before = copy.copy(vars(whole))
        with pytest.raises(KeyboardInterrupt):
            whole.fit(X[:, :2], np.column_stack([Y, Y]))
    assert vars(whole) == before
    assert estimator.fit(X, Y).objective_ == whole.objective_


@pytest.mark.slow
def test_ctrl_c_at_any_moment(tmp_path):
    told = python(["-m", "attack.interrupts", "12"], tmp_path)
    in_time, _, wrong = told.partition(" in time; ")
    assert wrong.strip() == "nothing wrong" and int(in_time) >= 8, told


WRITES = """
import os, sys
import numpy as np
from deepprox import saving
print("ready", flush=True)
for line in sys.stdin:  # each in a process of its own, that writes until it is killed
    if not (child := os.fork()):
        number = 0
        while True:
            number += 1
            rows = np.full((200, 200), float(number))
            saving.write("model", saving.Archive({"format": 1, "number": number}, [rows]))
    print(child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path):
    rng, before = np.random.default_rng(0), 0
    command = [sys.executable, "-c", WRITES]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(40):
            process.stdin.write("go\n")
            process.stdin.flush()
            child = int(process.stdout.readline())
            time.sleep(0.02 + 0.05 * rng.random())
            os.kill(child, signal.SIGKILL)
            assert process.stdout.readline() == "dead\n"
            if (tmp_path / "model").exists():
                document, (rows,) = saving.read(tmp_path / "model")
                assert (rows == document["number"]).all()
                before += document["number"] > 1
        process.stdin.close()
    assert process.returncode == 0 and before > 10
