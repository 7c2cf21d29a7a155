"""The user's own folder for what is costly to make again, with a keyed digest on every entry.

Compiled programs are native code: who can write one here can run it here. So the folder is this user's alone,
and an entry is read only if it was written with the secret of the folder, under the name that is asked for.
Wherever that is in doubt there is no folder.
"""

import hmac
import os
import secrets
import shutil
import stat
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

SECRET = "secret"  # the file that holds it
SIZE = 32  # bytes of the secret and of a digest
POSIX = os.name == "posix"  # elsewhere owner and mode say nothing, and a home is private by other means


class Doubt(Exception):
    """Why a folder is not used, and what to do."""


class Sealed:
    """A folder whose entries are what was written there with its secret."""

    def __init__(self, path: Path, secret: bytes) -> None:
        self.path, self.secret = path, secret
        self.told = False

    def read(self, name: str) -> bytes | None:
        """The entry; None where there is none, and where it is not what was written under this name."""
        try:
            kept = (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(f"{self.path / name} cannot be read ({error.strerror}): it is compiled again.")
            return None
        body = kept[SIZE:]
        if not hmac.compare_digest(kept[:SIZE], self._digest(name, body)):
            self._tell(f"{self.path / name} is not what deepprox wrote there: it is compiled again.")
            return None
        return body

    def write(self, name: str, body: bytes) -> None:
        """Keep an entry; others read it whole or not at all. A full disk costs time and nothing else."""
        try:
            number, draft = tempfile.mkstemp(dir=self.path, prefix=".")
            try:
                with open(number, "wb") as file:
                    file.write(self._digest(name, body))
                    file.write(body)
                os.chmod(draft, 0o600)
                os.replace(draft, self.path / name)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft)
                raise
        except OSError as error:
            self._tell(f"{self.path / name} cannot be written ({error.strerror}): programs are not kept.")

    def _digest(self, name: str, body: bytes) -> bytes:
        digest = hmac.new(self.secret, name.encode() + b"\0", "sha256")
        digest.update(body)
        return digest.digest()

    def _tell(self, what: str) -> None:
        if not self.told:
            self.told = True
            warnings.warn(what, stacklevel=3)


def sealed(name: str) -> Sealed:
    """A folder of this user's cache, made where it is not there yet; Doubt where it is not to be trusted."""
    try:
        place = Path(os.path.realpath(user_cache() / "deepprox"))
        _need_guarded(place)
        _make(place)
        _need_own(place.stat(), place)
        path = place / name
        if not os.path.lexists(path):
            _make_with_secret(path)
        secret = _secret(path)
        if len(secret) != SIZE:
            raise Doubt(f"{path / SECRET} is damaged: remove {path}")
        if not os.access(path, os.W_OK):
            raise Doubt(f"{path} cannot be written to")
    except OSError as error:
        raise Doubt(str(error)) from None
    return Sealed(path, secret)


def user_cache() -> Path:
    """Where this user's programs keep what they can make again; names that are not absolute are ignored."""
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA") if sys.platform == "win32" else ("XDG_CACHE_HOME",):
        if os.path.isabs(os.environ.get(name, "")):
            return Path(os.environ[name])
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    if not home.is_absolute():
        raise Doubt("this user has no home folder")
    here = {"win32": "AppData/Local", "darwin": "Library/Caches"}
    return home / here.get(sys.platform, ".cache")


def _need_guarded(place: Path) -> None:
    """Doubt if anybody may rename what is on the way to a folder."""
    for one in (place, *place.parents) if POSIX else ():
        mode = one.stat().st_mode if one.exists() else 0
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise Doubt(f"everybody may write to {one}: chmod o-w {one}")


def _need_own(info: os.stat_result, path: Path, private: bool = False) -> None:
    """Doubt unless a folder or file is this user's, and nobody else's to reach if it is private."""
    if POSIX and info.st_uid != os.geteuid():
        raise Doubt(f"{path} belongs to another user")
    if POSIX and private and info.st_mode & 0o077:
        raise Doubt(f"others may reach {path}: remove it, or chmod go-rwx {path}")


def _make(place: Path) -> None:
    """The folder, and those on the way to it, private whatever the umask."""
    for one in [one for one in (*reversed(place.parents), place) if not one.exists()]:
        try:
            one.mkdir(0o700)
        except FileExistsError:  # another process was first
            continue
        one.chmod(0o700)


def _make_with_secret(path: Path) -> None:
    """The folder with its secret, in one go: a process that begins at the same time finds both or neither."""
    draft = Path(tempfile.mkdtemp(dir=path.parent, prefix="."))
    try:
        draft.chmod(0o700)
        with open(draft / SECRET, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(secrets.token_bytes(SIZE))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft / SECRET, 0o600)
        os.rename(draft, path)
    except OSError:
        if not os.path.lexists(path):  # no other process was first
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _secret(path: Path) -> bytes:
    """The secret of a folder that is this user's alone, as the secret is."""
    if not POSIX:
        return (path / SECRET).read_bytes()
    # by the open folder: its name could stand for another one a moment later
    here = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _need_own(os.fstat(here), path, private=True)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(SECRET, flags, dir_fd=here), "rb") as file:
            _need_own(os.fstat(file.fileno()), path / SECRET, private=True)
            return file.read(SIZE + 1)
    finally:
        os.close(here)
