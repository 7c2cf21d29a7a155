"""The cache folder: this user's alone or none, and nothing is read from it that was not written there."""

import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from deepprox.cache import SECRET, Doubt, Sealed, sealed, user_cache

NOBODY = 54321  # a uid that no machine knows
for_posix = pytest.mark.skipif(os.name != "posix", reason="owner and mode are those of POSIX")
for_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's home, and no word about caches."""
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# Where it is


@pytest.mark.parametrize("said", ["", ".", "caches", "./caches", "~/caches"])
def test_a_folder_that_is_not_absolute_is_ignored(home, monkeypatch, said):
    monkeypatch.setenv("XDG_CACHE_HOME", said)
    assert user_cache() == home / ".cache"


def test_an_absolute_folder_is_taken(home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "mine"))
    assert sealed("one").path == home / "mine" / "deepprox" / "one"


@pytest.mark.parametrize("said", [None, "home"])
def test_no_home_is_a_doubt(home, monkeypatch, said):
    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.delenv("HOME") if said is None else monkeypatch.setenv("HOME", said)
    with pytest.raises(Doubt, match="no home folder"):
        sealed("one")


# Whose it is


@for_posix
@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_what_is_made_is_private_whatever_the_umask(home, umask):
    before = os.umask(umask)
    try:
        kept = sealed("one")
        kept.write("entry", b"native code")
        assert kept.read("entry") == b"native code"
    finally:
        os.umask(before)
    for folder in (kept.path, kept.path.parent, home / ".cache"):
        assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in kept.path.iterdir()} == {SECRET: 0o600, "entry": 0o600}
    assert [*kept.path.parent.iterdir()] == [kept.path]


@for_posix
@pytest.mark.parametrize("others", [0o755, 0o770, 0o707])
@pytest.mark.parametrize("part", [".", SECRET])
def test_a_folder_that_others_reach_is_not_used(home, part, others):
    path = sealed("one").path / part
    path.chmod(others)
    with pytest.raises(Doubt, match="others may reach"):
        sealed("one")
    path.chmod(0o700)
    sealed("one")


@for_root
@pytest.mark.parametrize("part", ["..", ".", SECRET])
def test_a_folder_of_another_user_is_not_used(home, part):
    os.chown(sealed("one").path / part, NOBODY, NOBODY)
    with pytest.raises(Doubt, match="belongs to another user"):
        sealed("one")


@for_posix
@pytest.mark.parametrize("level", ["..", "."])
def test_a_way_that_everybody_writes_to_is_not_used(home, level):
    place = sealed("one").path.parent / level
    place.chmod(0o777)
    with pytest.raises(Doubt, match="everybody may write to"):
        sealed("one")
    place.chmod(0o1777)  # as the folder of temporary files: others cannot rename what is not theirs
    sealed("one")


@for_root
def test_a_link_to_the_folder_of_another_user_is_not_followed(home):
    theirs = home / "theirs"
    theirs.mkdir(mode=0o755)
    os.chown(theirs, NOBODY, NOBODY)
    (home / ".cache").mkdir()
    (home / ".cache" / "deepprox").symlink_to(theirs)
    with pytest.raises(Doubt, match="belongs to another user"):
        sealed("one")
    assert not [*theirs.iterdir()]


@for_posix
def test_a_link_in_place_of_the_folder_is_not_followed(home):
    path = sealed("one").path
    path.rename(home / "elsewhere")
    path.symlink_to(home / "elsewhere")
    with pytest.raises(Doubt):
        sealed("one")


@pytest.mark.parametrize("secret", [None, b"", b"short", bytes(33)])
def test_a_folder_without_its_secret_is_not_used(home, secret):
    path = sealed("one").path / SECRET
    path.unlink()
    if secret is not None:
        path.write_bytes(secret)
        path.chmod(0o600)
    with pytest.raises(Doubt, match=SECRET):
        sealed("one")


@pytest.mark.parametrize("blocked", ["file", "dangling"])
def test_a_place_that_is_no_folder_is_a_doubt(home, blocked):
    place = home / ".cache"
    place.write_text("in the way") if blocked == "file" else place.symlink_to(home / ".cache" / "loop")
    with pytest.raises(Doubt):
        sealed("one")


def test_many_that_begin_at_once_have_one_secret(home):
    together = Barrier(8)

    def begin(_):
        together.wait()
        return sealed("one").secret

    with ThreadPoolExecutor(8) as threads:
        assert len({*threads.map(begin, range(8))}) == 1
    assert [path.name for path in (home / ".cache" / "deepprox").iterdir()] == ["one"]


# What is in it


@pytest.fixture
def kept(tmp_path):
    return Sealed(tmp_path, bytes(32))


DAMAGES = {
    "cut": lambda whole: whole[:-1],
    "cut in the digest": lambda whole: whole[:20],
    "empty": lambda whole: b"",
    "longer": lambda whole: whole + b"\0",
    "flipped": lambda whole: whole[:40] + bytes([whole[40] ^ 1]) + whole[41:],
    "flipped digest": lambda whole: bytes([whole[0] ^ 1]) + whole[1:],
    "junk": lambda whole: os.urandom(len(whole)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_not_read_and_is_written_anew(kept, damage):
    kept.write("entry", b"native code")
    path = kept.path / "entry"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.warns(UserWarning, match="entry is not what deepprox wrote there"):
        assert kept.read("entry") is None
    assert kept.read("entry") is None  # and it is told once
    kept.write("entry", b"native code")
    assert kept.read("entry") == b"native code"


def test_an_entry_is_of_its_name_and_of_its_folder(kept, tmp_path_factory):
    kept.write("good", b"good")
    kept.write("bad", b"bad")
    shutil.copy(kept.path / "bad", kept.path / "good")
    with pytest.warns(UserWarning, match="good is not what deepprox wrote there"):
        assert kept.read("good") is None
    other = Sealed(tmp_path_factory.mktemp("other"), b"\1" * 32)
    shutil.copy(kept.path / "bad", other.path / "bad")
    with pytest.warns(UserWarning, match="bad is not what deepprox wrote there"):
        assert other.read("bad") is None
    assert kept.read("bad") == b"bad" and kept.read("none") is None


def test_a_disk_that_takes_nothing_is_told_once_and_is_no_obstacle(kept, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match=r"cannot be written \(No space left on device\)"):
        kept.write("entry", b"native code")
    kept.write("entry", b"native code")
    assert not [*kept.path.iterdir()]


# JAX's programs in it


BEGIN = """
import os
import warnings

import jax
import jax.numpy as jnp

from deepprox.runtime import keep_programs

def right(x):
    return 3 * x

def wrong(x):
    return 0 * x + 666

def run(function):
    print(function.__name__, *jax.jit(function)(jnp.arange(3.0)))
"""


def begin(folder, script, **environment):
    """A new process, with this cache folder."""
    around = {name: value for name, value in os.environ.items() if name != "DEEPPROX_CACHE"}
    around |= {"XDG_CACHE_HOME": str(folder), "JAX_PLATFORMS": "cpu"} | environment
    command = [sys.executable, "-W", "always", "-c", BEGIN + script]
    return subprocess.Popen(command, env=around, stdout=-1, stderr=-1, text=True, cwd=folder)


def end(process):
    said, warned = process.communicate(timeout=100)
    assert process.returncode == 0, warned
    return said.split("\n"), warned


def process(*arguments, **environment):
    return end(begin(*arguments, **environment))


def only(folder, pattern):
    found = [*folder.rglob(pattern)]
    assert len(found) == 1, found
    return found[0]


def test_a_program_copied_over_another_one_is_not_run(tmp_path):
    process(tmp_path, "keep_programs(); run(right); run(wrong)")
    theirs, ours = only(tmp_path, "jit_wrong-*-cache"), only(tmp_path, "jit_right-*-cache")
    shutil.copy(theirs, ours)
    # also where somebody lets JAX open its cache again
    again = "jax.experimental.compilation_cache.compilation_cache.reset_cache()"
    said, warned = process(tmp_path, f"keep_programs(); {again}; run(right)")
    assert said[0] == "right 0.0 3.0 6.0"
    assert warned.count("UserWarning") == 1 and "is not what deepprox wrote there" in warned
    assert ours.read_bytes() != theirs.read_bytes()
    said, warned = process(tmp_path, "keep_programs(); run(right)")
    assert said[0] == "right 0.0 3.0 6.0" and not warned


def test_two_processes_begin_at_once(tmp_path):
    both = [begin(tmp_path, "keep_programs(); run(right); run(wrong)") for _ in range(2)]
    for said, warned in map(end, both):
        assert said[:2] == ["right 0.0 3.0 6.0", "wrong 666.0 666.0 666.0"] and not warned
    assert {path.name[:6] for path in tmp_path.rglob("*-cache")} >= {"jit_ri", "jit_wr"}
    # what they kept is found: nothing is compiled
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*-cache")}
    said, warned = process(tmp_path, "keep_programs(); run(right); run(wrong)")
    assert not warned and {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*-cache")} == kept


@pytest.mark.parametrize("said", ["", "."])
def test_nothing_is_read_from_the_working_folder(tmp_path, said):
    home = tmp_path / "home"
    home.mkdir()
    process(tmp_path, "keep_programs(); run(right)", XDG_CACHE_HOME=said, HOME=str(home))
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    only(home, "jit_right-*-cache")


@pytest.mark.slow
@for_root
def test_a_user_whom_the_machine_does_not_know_fits_without_a_cache(tmp_path):
    """As in a container: a uid without an entry, and no HOME."""
    script = """
from deepprox import DeepRegressor

model, X = DeepRegressor((), alpha=0.1), [[0.0], [1.0], [2.0], [4.0]]
os.environ["DEEPPROX_CACHE"] = "off"
model.fit(X, [0.0, 1.0, 2.0, 4.0])  # what is imported late is imported by root
keep_programs.cache_clear()
del os.environ["DEEPPROX_CACHE"], os.environ["XDG_CACHE_HOME"], os.environ["HOME"]
os.setuid(54321)
for _ in range(2):
    model.fit(X, [0.0, 1.0, 2.0, 4.0])
print(model.solution_.status, keep_programs())
"""
    said, warned = process(tmp_path, script)
    assert said[0] == "converged None" and warned.count("UserWarning") == 1
    assert "this user has no home folder" in warned


@for_posix
def test_a_doubt_is_told_once_and_nothing_is_kept(tmp_path):
    tmp_path.chmod(0o777)
    said, warned = process(tmp_path, "keep_programs(); keep_programs(); run(right)")
    assert said[0] == "right 0.0 3.0 6.0" and not [*tmp_path.rglob("*-cache")]
    assert "everybody may write to" in warned and warned.count("UserWarning") == 1
    assert not process(tmp_path, "keep_programs()", DEEPPROX_CACHE="off")[1]


def test_a_jax_that_asks_elsewhere_keeps_nothing(tmp_path):
    script = """
from jax._src import compilation_cache as programs

def told():
    keep_programs.cache_clear()
    with warnings.catch_warnings(record=True) as warned:
        assert keep_programs() is None and jax.config.jax_compilation_cache_dir is None
    print(*[one.message for one in warned])

opens, finds = programs.get_file_cache, programs._get_cache
del programs.get_file_cache
told()
programs.get_file_cache, programs._get_cache = opens, lambda *_: None
told()
programs._get_cache = finds
jax.config.update("jax_compilation_cache_max_size", 2**20)
told()
run(right)
"""
    said, warned = process(tmp_path, script)
    assert ["not known here" in line for line in said[:3]] == [True, True, False]
    assert "jax_compilation_cache_max_size is set" in said[2]
    assert said[3] == "right 0.0 3.0 6.0" and not warned and not [*tmp_path.rglob("*-cache")]


def test_another_cache_of_the_user_stays_as_it_is(tmp_path):
    mine = tmp_path / "mine"
    script = "print(keep_programs()); run(right); print(jax.config.jax_compilation_cache_dir)"
    said, warned = process(tmp_path, script, JAX_COMPILATION_CACHE_DIR=str(mine))
    assert said[:3] == ["None", "right 0.0 3.0 6.0", str(mine)] and not warned
    assert {path.name for path in tmp_path.iterdir()} <= {"mine"}


@for_posix
def test_a_folder_that_cannot_be_written_to_is_not_used(tmp_path):
    script = """
import tempfile
from deepprox.cache import Doubt, sealed

if os.geteuid() == 0:
    os.setuid(54321)
with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    os.environ["XDG_CACHE_HOME"] = folder
    path = sealed("one").path
    path.chmod(0o500)
    try:
        sealed("one")
    except Doubt as doubt:
        print(doubt)
    path.chmod(0o700)
"""
    said, _ = process(tmp_path, script)
    assert said[0].endswith("one cannot be written to")
