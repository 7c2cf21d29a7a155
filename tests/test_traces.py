"""Traces on disk: the same program as if it had been traced here, or none."""

from pathlib import Path

import jax
import numpy as np
import pytest

from deepprox import traces
from deepprox.cache import SIZE, Sealed
from deepprox.joining import point
from deepprox.joining.kinks import no_slopes
from deepprox.penalties import L1, Penalty
from deepprox.struct import struct
from stages.problems import problem

look = point._look.__wrapped__


@struct
class Mine(Penalty):
    """A user's penalty: nobody knows what its code will be tomorrow."""

    alpha: float = 0.01

    def value(self, w):
        return (self.alpha * w**2).sum()

    def prox(self, v, step):
        return v / (1 + 2 * step * self.alpha)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for traces, of code that nobody changes."""
    monkeypatch.setattr(traces, "_code", lambda: "this version")
    monkeypatch.setattr(traces, "kept_programs", lambda: Sealed(tmp_path, b"secret"))
    yield tmp_path


def files(folder):
    return sorted(folder.glob("*"))


def run(penalty=None, function=look, step=1.0, jit=traces.jit):
    """The program as a new process would have it."""
    posed, W = problem(hidden=(), penalty=penalty or L1(np.asarray(0.01)))
    out = jit(function)(posed, W, no_slopes(posed), np.asarray(step), np.asarray(False))
    return jax.tree.map(np.asarray, out)


def forbidden(*_):
    raise AssertionError("traced again")


def test_a_trace_on_disk_is_the_program(folder, monkeypatch):
    plain, first = run(jit=jax.jit), run()
    assert len(files(folder)) == 1
    monkeypatch.setattr(traces, "_trace", forbidden)
    second = run()
    assert type(second) is point.Point and jax.tree.structure(second) == jax.tree.structure(plain)
    for a, b, c in zip(*map(jax.tree.leaves, (plain, first, second)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(c, b)
    assert (run(step=0.5).moved != second.moved).any()  # other numbers in the same shapes


def test_a_damaged_file_is_not_believed(folder):
    wanted = run()
    path = files(folder)[0]
    whole = path.read_bytes()
    for damaged in (whole[:-1], b"", whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        path.write_bytes(damaged)
        with pytest.warns(UserWarning, match="is not what deepprox wrote there"):
            again = run()
        for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(a, b)
        assert path.read_bytes() != damaged


def test_a_file_that_names_what_is_not_ours_is_not_believed(folder):
    run()
    path = files(folder)[0]
    body = path.read_bytes()[SIZE:]
    other = body.replace(b"deepprox.joining.point", b"subprocess", 1)
    assert other != body
    Sealed(folder, b"secret").write(path.name, other)
    assert type(run()) is point.Point and path.read_bytes()[SIZE:] == body


def test_a_trace_under_another_name_is_not_believed(folder):
    wanted = run()
    run(step=np.float32(1.0))  # its program takes other numbers
    other, path = sorted(files(folder), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    path.write_bytes(other.read_bytes())
    with pytest.warns(UserWarning, match="is not what deepprox wrote there"):
        np.testing.assert_array_equal(run().moved, wanted.moved)


def test_code_settings_and_shapes_have_names_of_their_own(folder, monkeypatch):
    run()
    with jax.default_matmul_precision("highest"):
        run()
    assert len(files(folder)) == 2
    run(penalty=L1(np.full((3, 4), 0.01)))
    assert len(files(folder)) == 3
    monkeypatch.setattr(traces, "_code", lambda: "another version")
    run()
    assert len(files(folder)) == 4


@pytest.mark.parametrize("unknown", ["class", "function", "no folder"])
def test_what_is_not_ours_is_traced_as_ever(folder, monkeypatch, unknown):
    if unknown == "class":
        run(penalty=Mine(np.asarray(0.01)))
    elif unknown == "function":
        run(function=lambda *args: look(*args))
    else:
        monkeypatch.setattr(traces, "kept_programs", lambda: None)
        run()
    assert not files(folder)


def test_a_disk_that_cannot_be_written_to_is_no_obstacle(folder):
    folder.rmdir()
    folder.write_text("in the way")
    with pytest.warns(UserWarning, match=r"cannot be read \(Not a directory\)"):
        run()
    assert folder.read_text() == "in the way"


def test_code_that_changed_after_it_was_imported_is_not_named(monkeypatch):
    name = traces._code.__wrapped__
    monkeypatch.setattr(traces, "BEGAN", np.inf)
    assert name() == name() != ""
    monkeypatch.setattr(traces, "BEGAN", Path(traces.__file__).stat().st_mtime)
    assert name() == ""
