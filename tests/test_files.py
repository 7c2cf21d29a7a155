"""A file is written whole or not at all, only in the place of a regular file, and links stay links."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from deepprox.files import need_writable, replacing, write_text

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "file"
    write_text(path, "old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and [*tmp_path.iterdir()] == [path]
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_text() == "new" and [*tmp_path.iterdir()] == [path]


@posix
def test_a_link_stays_and_leads_to_the_new_file(tmp_path):
    folder, link, dangling = tmp_path / "there", tmp_path / "link", tmp_path / "dangling"
    folder.mkdir()
    (folder / "file").write_text("old")
    link.symlink_to("there/file")
    dangling.symlink_to("there/none yet")
    for path in (link, dangling):
        write_text(path, "new")
        assert path.is_symlink() and path.resolve().parent == folder and path.read_text() == "new"
    assert {*os.listdir(folder)} == {"file", "none yet"}
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links") as caught:
        write_text(tmp_path / "loop", "new")
    assert caught.value.errno == errno.ELOOP


@posix
@pytest.mark.parametrize("kind", ["a folder", "a device", "a pipe"])
@pytest.mark.parametrize("write", [lambda path: write_text(path, "new"), need_writable])
def test_what_is_no_regular_file_is_not_replaced(tmp_path, kind, write):
    path = tmp_path / "name"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(os.devnull)  # where root writes, the device itself would be gone
    before = path.stat()
    with pytest.raises(OSError, match=f"name is {kind}, and only a regular file can be replaced"):
        write(path)
    assert path.stat() == before and os.listdir(tmp_path) == ["name"]


@posix
def test_permissions_are_those_of_the_old_file_or_of_the_umask(tmp_path):
    path, before = tmp_path / "file", os.umask(0o027)
    try:
        write_text(path, "new")
        assert mode(path) == 0o640
        path.chmod(0o664)
        write_text(path, "newer")
        assert mode(path) == 0o664 and path.read_text() == "newer"
    finally:
        os.umask(before)


def test_a_missing_folder_is_a_sentence(tmp_path):
    for write in (need_writable, lambda path: write_text(path, "")):
        with pytest.raises(FileNotFoundError, match=r"^There is no folder .*nowhere for file\.$"):
            write(tmp_path / "nowhere" / "file")


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_what_is_no_name_is_a_sentence(name):
    with pytest.raises(ValueError, match="is no name of a file"):
        write_text(name, "")


def test_a_full_disk_names_the_file_and_keeps_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_text(path, "old")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]


@pytest.fixture
def public():
    """A folder that other users reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


UNWRITABLE = """
import os, sys
from pathlib import Path
from deepprox.files import need_writable, write_text
if os.geteuid() == 0:
    os.setuid(65534)  # root may write everything
for name in ("closed/new", "open/kept"):
    for write in (need_writable, lambda path: write_text(path, "new")):
        try:
            write(Path(name))
        except PermissionError as error:
            print(Path(error.filename).name)
"""


@posix
def test_what_must_not_be_written_is_told_by_its_name(public):
    for name, folder_mode in (("closed", 0o555), ("open", 0o777)):
        (public / name).mkdir()
        (public / name).chmod(folder_mode)
    (public / "open" / "kept").write_text("old")
    (public / "open" / "kept").chmod(0o444)
    done = subprocess.run([sys.executable, "-c", UNWRITABLE], cwd=public, capture_output=True, text=True)
    assert done.stdout.split() == ["new", "new", "kept", "kept"], done.stderr
    assert (public / "open" / "kept").read_text() == "old" and os.listdir(public / "closed") == []


@posix
def test_long_names_are_written(tmp_path):
    write_text(tmp_path / ("n" * 255), "whole")
    assert os.listdir(tmp_path) == ["n" * 255]
