"""Checkpoints: a fit that was interrupted anywhere goes on to the same bits; what is damaged is refused."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from deepprox import DeepClassifier, DeepRegressor, saving
from deepprox.estimators import _checkpoint
from spreading.kills import killed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
LABELS = np.where(Y > 0, "up", "down")


def classifier(folder=None, **params):
    given = {"link": "relu", "alpha": 0.01, "n_init": 3, "random_state": 0} | params
    return DeepClassifier((5,), checkpoint=folder, **given)


def fitted(model, labels=LABELS):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(X, labels)


@pytest.fixture(scope="module")
def whole():
    return fitted(classifier())


@pytest.fixture
def every_time(monkeypatch):
    """Write after every chunk, however long it takes."""
    monkeypatch.setattr(_checkpoint, "SHARE", np.inf)


def assert_same(one, other):
    """The same fit, to the last bit, seconds apart."""
    for a, b in zip(one.fitted_.W, other.fitted_.W, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.objective_ == other.objective_ and one.solution_.certificate == other.solution_.certificate
    assert one.solution_.message == other.solution_.message
    np.testing.assert_array_equal(one.solution_.starts, other.solution_.starts)
    columns = [name for name in one.history_ if name != "seconds"]
    assert one.history_[columns].equals(other.history_[columns])


def test_keeping_changes_nothing(whole, tmp_path):
    assert_same(whole, fitted(classifier(tmp_path)))


@pytest.mark.parametrize("after", [1, 2, 4, 6, 8, 10, 12, 14])
def test_resuming_anywhere_gives_the_same_bits(every_time, whole, tmp_path, after):
    assert killed(after, classifier(tmp_path).fit, X, LABELS)
    assert_same(whole, fitted(classifier(tmp_path, resume=True)))


def test_the_end_can_be_resumed_too(every_time, whole, tmp_path):
    fitted(classifier(tmp_path))
    again = fitted(classifier(tmp_path, resume=True))
    assert_same(whole, again)


@pytest.mark.parametrize("after", [1, 3, 5])
def test_unseeded_starts_and_plain_splitting_resume(every_time, tmp_path, after):
    def model(**more):
        return DeepRegressor(
            (4,), link="tanh", join=False, max_iter=60, tol=1e-9, checkpoint=tmp_path, **more
        )

    few = X[:, :3]  # the shapes of other small networks: they compile once
    assert killed(after, model().fit, few, Y)
    shutil.copytree(tmp_path, tmp_path / "copy")
    with pytest.warns(match="max_iter"):
        once = model(resume=True).fit(few, Y)
    with pytest.warns(match="max_iter"):
        twice = model(resume=True).set_params(checkpoint=tmp_path / "copy").fit(few, Y)
    assert_same(once, twice)
    assert len(once.history_) == 60


def test_nothing_to_resume_is_a_new_fit(whole, tmp_path):
    assert_same(whole, fitted(classifier(tmp_path / "new", resume=True)))


def test_a_truncated_checkpoint_gives_way_to_the_one_before(every_time, whole, tmp_path):
    assert killed(9, classifier(tmp_path).fit, X, LABELS)
    newest = tmp_path / "checkpoint-0-of-1.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.warns(RuntimeWarning, match=r"is refused: it is damaged .* The one before it is used\."):
        assert_same(whole, classifier(tmp_path, resume=True).fit(X, LABELS))


@pytest.mark.parametrize("change", [{"alpha": 0.02}, {"tol": 1e-5}, {"random_state": 1}, {"link": "tanh"}])
def test_a_checkpoint_of_other_settings_is_refused(every_time, tmp_path, change):
    assert killed(3, classifier(tmp_path).fit, X, LABELS)
    with pytest.raises(ValueError, match=r"other settings .* resume=False to begin again\."):
        classifier(tmp_path, resume=True, **change).fit(X, LABELS)


def test_a_checkpoint_of_other_data_is_refused(every_time, tmp_path):
    assert killed(3, classifier(tmp_path).fit, X, LABELS)
    with pytest.raises(ValueError, match="it is of other data"):
        classifier(tmp_path, resume=True).fit(X + 1e-12, LABELS)


def test_a_full_disk_is_told_and_the_checkpoint_before_stays(monkeypatch, every_time, whole, tmp_path):
    write, count = saving.write, [0]

    def full(path, archive, quick):
        count[0] += 1
        if count[0] > 7:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, archive, quick)

    monkeypatch.setattr(saving, "write", full)
    with pytest.warns(RuntimeWarning, match=r"could not be written \(No space left on device\)"):
        assert_same(whole, classifier(tmp_path).fit(X, LABELS))
    monkeypatch.undo()
    assert_same(whole, fitted(classifier(tmp_path, resume=True)))


def test_sigterm_and_the_share_of_time(monkeypatch, whole, tmp_path):
    # checkpoints that would take too long are left out, and what is left out is written at the end
    seen = []

    def late(self, stages):
        keep(self, stages)
        self._cost = 1e9
        seen.append(self.written)
        if len(seen) == 8:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

    keep = _checkpoint.Checkpoints.keep
    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(_checkpoint.Checkpoints, "keep", late)
        classifier(tmp_path).fit(X, LABELS)
    assert ended.value.code == 128 + signal.SIGTERM and "resume=True" in ended.value.__notes__[0]
    assert seen == [1] * 8 and signal.getsignal(signal.SIGTERM) is before
    assert_same(whole, fitted(classifier(tmp_path, resume=True)))


def test_a_thread_keeps_too(whole, tmp_path):
    model = classifier(tmp_path)
    thread = threading.Thread(target=fitted, args=[model])
    thread.start()
    thread.join()
    assert_same(whole, model)
    assert (tmp_path / "checkpoint-0-of-1.npz").exists()


def test_resume_needs_a_folder():
    with pytest.raises(ValueError, match="resume=True needs the folder"):
        classifier(resume=True).fit(X, LABELS)


SCRIPT = """
import sys
import numpy as np
from deepprox import DeepClassifier
from deepprox.estimators import _checkpoint
_checkpoint.SHARE = np.inf
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 10))
y = (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 1).astype(int)
model = DeepClassifier((30, 20), alpha=1e-3, random_state=0, checkpoint=sys.argv[1], resume=True)
if sys.argv[1] == "none":
    model.set_params(checkpoint=None, resume=False)
model.fit(X, y)
print(model.solution_.status, model.objective_.hex(), *(w.tobytes().hex()[:64] for w in model.fitted_.W))
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_process_killed_at_random_resumes_to_the_same_bits(tmp_path, seed):
    command = [sys.executable, "-c", SCRIPT]
    told = subprocess.run([*command, "none"], capture_output=True, text=True, check=True).stdout
    rng, kills = np.random.default_rng(seed), 0
    while True:
        process = subprocess.Popen([*command, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        try:
            said, _ = process.communicate(timeout=(3 + 2 * kills) + 4 * rng.random())
            break
        except subprocess.TimeoutExpired:
            process.send_signal([signal.SIGKILL, signal.SIGTERM, signal.SIGINT][kills % 3])
            process.communicate()
            kills += 1
    assert kills and said == told
