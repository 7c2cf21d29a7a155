"""Compiled programs: counted, let go in time, and not run in a process that cannot."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import jax
import numpy as np
import pytest

from deepprox import DeepRegressor, programs
from deepprox.programs import COMPILED, MOST, OFTEN, Programs
from deepprox.runtime import precision

MAPS = Path("/proc/self/maps")
on_linux = pytest.mark.skipif(not MAPS.exists(), reason="memory maps are counted on Linux alone")


@pytest.fixture
def few(tmp_path, monkeypatch):
    """Programs of a process that may have 100 maps and has 40; what is let go is only told."""
    told = []
    monkeypatch.setattr(jax, "clear_caches", lambda: told.append(True))
    (tmp_path / "maps").write_text("a map\n" * 40)
    (tmp_path / "limit").write_text("100\n")
    counted = Programs(tmp_path / "maps", tmp_path / "limit")
    counted.told = told
    return counted


def compile_some(counted, n):
    for _ in range(n):
        counted.compiled(COMPILED, duration_secs=0.1)
        counted.ready()


def test_half_of_the_maps_are_enough(few):
    compile_some(few, 3 * OFTEN)
    assert not few.told
    few.maps.write_text("a map\n" * 51)
    compile_some(few, OFTEN)
    assert len(few.told) == 1 and not few.held


def test_so_are_many_programs_wherever_maps_are_not_counted(few):
    few.maps.unlink()
    compile_some(few, MOST - 1)
    assert not few.told
    compile_some(few, 1)
    assert len(few.told) == 1
    compile_some(few, MOST)
    assert len(few.told) == 2


def test_other_events_of_jax_are_no_programs(few):
    for _ in range(2 * MOST):
        few.compiled("/jax/compilation_cache/cache_hits", duration_secs=0.1)
    assert not few.many()


def test_a_new_program_counts_and_an_old_one_does_not():
    f, before = jax.jit(lambda x: x + 1), len(programs.HERE.held)
    for _ in range(3):
        f(np.zeros(7))
    assert len(programs.HERE.held) == before + 1


@on_linux
def test_what_is_let_go_gives_its_maps_back():
    def count():
        return MAPS.read_bytes().count(b"\n")

    programs.HERE.let_go()
    before, kept = count(), [jax.jit(lambda x, k=k: (x @ x.T + k).sum()) for k in range(12)]
    for f in kept:
        f(np.ones((5, 5)))
    assert count() >= before + 24
    programs.HERE.let_go()
    assert count() <= before + 12
    assert [float(f(np.ones((5, 5)))) for f in kept] == [125 + 25 * k for k in range(12)]


def test_arrays_enter_only_where_programs_can_run(monkeypatch):
    monkeypatch.setattr(programs.HERE, "lost", True)
    with pytest.raises(RuntimeError, match="forked"), precision(np.float64):
        pass


def test_threads_fit_to_the_same_bits_while_programs_are_let_go(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))

    def coefs(n_in):
        return DeepRegressor((), penalty="nuclear", alpha=0.02).fit(X[:, :n_in], X[:, 0] + X[:, 1]).coefs_[0]

    wanted = [coefs(n_in) for n_in in (3, 4)]
    told = []
    let_go = programs.HERE.let_go
    monkeypatch.setattr(programs, "MOST", 1)
    monkeypatch.setattr(programs.HERE, "let_go", lambda: told.append(let_go()))
    same = []

    def work(k):
        for _ in range(3):
            same.append(np.array_equal(coefs(3 + k % 2), wanted[k % 2]))

    threads = [Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(same) == 24 and all(same) and len(told) >= 3


SHAPES = """
import mmap, sys, warnings
import numpy as np
from deepprox import DeepRegressor, programs

warnings.simplefilter("ignore")  # so few steps do not converge
hidden, shapes, taken = eval(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
memory = [mmap.mmap(-1, mmap.PAGESIZE) for _ in range(taken)]
told, let_go = [], programs.HERE.let_go
programs.HERE.let_go = lambda: told.append(let_go())
X = np.random.default_rng(0).normal(size=(40, 2 + shapes))
most, sizes = 0, []
for width in range(2, 2 + shapes):
    model = DeepRegressor(hidden, penalty="nuclear", alpha=0.05, max_iter=2, random_state=0)
    model.fit(X[:, :width], X[:, 0])
    with open("/proc/self/maps", "rb") as maps:
        most = max(most, maps.read().count(b"\\n") - taken)
    with open("/proc/self/statm") as statm:
        sizes.append(int(statm.read().split()[1]) * mmap.PAGESIZE / 2**20)
print(len(told), most, max(sizes) - sizes[shapes // 4])
"""


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("hidden, shapes", [((), 40), ((2,), 20)], ids=["linear", "hidden"])
def test_a_process_with_few_maps_left_outlives_many_shapes(hidden, shapes, tmp_path):
    """As many maps are taken beforehand as 200 shapes would take: without letting go, the process dies."""
    limit = int(Path("/proc/sys/vm/max_map_count").read_text())
    if limit > 2**17:
        pytest.skip(f"{limit} maps are more than a test should take")
    done = subprocess.run(
        [sys.executable, "-c", SHAPES, repr(hidden), str(shapes), str(limit - 8000)],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    times, maps, grown = map(float, done.stdout.split())
    assert times >= 2 and maps < 8000 and grown < 400  # MB, after the first quarter
