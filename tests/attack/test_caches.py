"""Kept programs that are damaged, and two processes that keep them at once: the same bits."""

import subprocess
import sys

import numpy as np
import pytest

from attack.driver import environment, python

SCRIPT = """
import numpy as np
from deepprox import DeepRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = np.tanh(X[:, 0]) + X[:, 1]
model = DeepRegressor((2,), alpha=0.01, random_state=0).fit(X, y)
print(model.objective_.hex(), *(w.tobytes().hex() for w in model.fitted_.W), model.predict(X).tobytes().hex())
"""


def truncated(data, rng):
    """Its first half."""
    return data[: len(data) // 2]


def junk(data, rng):
    """As many bytes of nothing."""
    return rng.bytes(len(data))


def flipped(data, rng):
    """The same, but for eight bits."""
    data = bytearray(data)
    for at in rng.integers(len(data), size=8):
        data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def emptied(data, rng):
    """Nothing."""
    return b""


@pytest.mark.slow
def test_damaged_programs_are_made_anew(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    given = {"XDG_CACHE_HOME": str(cache), "DEEPPROX_CACHE": ""}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT], env=environment(**given), stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    told = [process.communicate()[0] for process in both]  # neither finds anything, and both write
    assert told[0] == told[1] and [process.returncode for process in both] == [0, 0]
    rng = np.random.default_rng(0)
    for shift in range(2):
        files = sorted(path for path in cache.rglob("*") if path.is_file())
        assert len(files) > 10
        for number, path in enumerate(files):
            damage = [truncated, junk, flipped, emptied][(number + 2 * shift) % 4]
            if path.stat().st_size:
                path.write_bytes(damage(path.read_bytes(), rng))
        assert python(["-c", SCRIPT], tmp_path, **given) == told[0]
