"""Files: read where they have an end, written whole or not at all, only in the place of regular ones."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def path_of(given: Any, name: str) -> Path:
    """The path that ``name`` was given as."""
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a path, as text or a pathlib.Path, got {given!r:.100}.")
    if not text or "\0" in text or not _encodes(text):
        raise ValueError(f"{name} is {given!r:.100}, which is no path: give the name of a file or a folder.")
    return Path(text)


def _encodes(text: str) -> bool:
    """Whether a file can have this name: half a character is none."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def folder_of(given: Any, name: str) -> Path:
    """A folder that is there, or can be made."""
    folder = path_of(given, name)
    try:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{name} must be a folder, but {folder} is a file: give another name.")
    except OSError as error:
        raise ValueError(f"{name}={str(folder)!r:.100} cannot be a folder: {error.strerror}.") from None
    return folder


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` once it is complete and on the disk.

    A reader sees the old file or the new one, never a part. A link stays, and what it leads to is replaced.
    A file that is replaced keeps its permissions, a new one has those of the umask.
    """
    target = target_of(path)
    draft = _beside(target)
    with _naming(path, draft):
        try:
            with open(draft, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                _inherit(file, target)
            os.replace(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    if os.name == "posix":  # elsewhere a folder cannot be opened
        with suppress(PermissionError):  # a folder that may be written and not read
            _sync(target.parent)


def opened(path: str | os.PathLike[str]) -> IO[bytes]:
    """A file to read; OSError in a sentence for a device, which may have no end, and for a pipe."""
    kind = _kind(os.stat(path).st_mode)
    if kind not in (None, "a folder"):  # a folder says itself what it is
        raise OSError(f"{os.fsdecode(path)} is {kind}, and not a regular file that can be read.")
    return open(path, "rb")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text in UTF-8."""
    with replacing(path) as file:
        file.write(text.encode())


def need_writable(path: str | os.PathLike[str]) -> None:
    """OSError now, before long work, where :func:`replacing` would raise it after that."""
    draft = _beside(target_of(path))
    with _naming(path, draft):
        open(draft, "xb").close()
        draft.unlink()


def target_of(path: str | os.PathLike[str]) -> Path:
    """The file that writing to ``path`` makes or replaces; OSError in a sentence where it must not."""
    name = os.fsdecode(path)
    if not name or "\0" in name or not _encodes(name):
        raise ValueError(f"{name!r} is no name of a file.")
    target = Path(os.path.realpath(name))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} for {target.name}.")
    try:
        kind = _kind(target.stat().st_mode)
    except FileNotFoundError:
        return target
    if kind is not None:
        raise OSError(f"{name} is {kind}, and only a regular file can be replaced: name another file.")
    with open(target, "r+b"):  # a file that must not be written must not be replaced
        return target


def _kind(mode: int) -> str | None:
    """What a file is that is no regular one."""
    return None if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "something else")


def _beside(target: Path) -> Path:
    return target.with_name(f".deepprox-{secrets.token_hex(8)}")


@contextmanager
def _naming(path: str | os.PathLike[str], draft: Path) -> Iterator[None]:
    """Errors of the draft, and of a disk that is full, name the file that was to be written."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(draft)):
            raise
        raise OSError(error.errno, error.strerror, os.fsdecode(path)) from None


def _inherit(file: IO[bytes], target: Path) -> None:
    """Permissions of the file that is replaced, and its owner and group where they may be given."""
    if os.name != "posix" or not target.exists():
        return
    old = target.stat()
    for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
        with suppress(PermissionError):
            os.fchown(file.fileno(), owner, group)
    os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
