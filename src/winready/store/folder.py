"""Objects as files of a folder, on a disk or on a share: whole or not there, and nobody's work is lost.

A new object is a hidden file until it is synced and gets its name by a link, which fails where there is one already.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from winready.store.addresses import Place
from winready.store.errors import (
    AlreadyThere,
    Away,
    Changed,
    Full,
    NoSuchObject,
    NoSuchPlace,
    Refused,
    StoreError,
    TooLarge,
)
from winready.store.objects import Entry, Found, checked

LOCK = ".winready-lock"
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


class FolderObjects:
    """The files below a folder; links are neither followed nor listed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._base = place.folder

    def create(self, key: str, data: bytes) -> str:
        """Write an object that is not there yet."""
        path = self._path(key)
        if os.path.lexists(path):
            raise AlreadyThere(f"{path} is there already")
        with self._told(key), self._written(path, data) as part:
            try:
                os.link(part, path)
            except FileExistsError:
                raise AlreadyThere(f"{path} is there already") from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                with self._alone():
                    if path.exists():
                        raise AlreadyThere(f"{path} is there already") from None
                    os.replace(part, path)
            return _token(path.lstat())

    def replace(self, key: str, data: bytes, token: str) -> str:
        """Write an object anew if it is still what the token stands for."""
        path = self._path(key)
        with self._told(key), self._alone(), self._written(path, data) as part:
            try:
                now = _token(path.lstat())
            except FileNotFoundError:
                now = ""
            if now != token:
                raise Changed(f"{path} was written by somebody else", "read it again")
            os.replace(part, path)
            return _token(path.lstat())

    def read(self, key: str, limit: int) -> Found:
        """An object of at most ``limit`` bytes."""
        path = self._path(key)
        with self._told(key):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise Refused(f"{path} is no file", "find out who put it there")
                data = file.read(limit + 1)
            if len(data) > limit:
                raise TooLarge(f"{path} is larger than the {limit} bytes that are read of it")
            return Found(data, _token(status))

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """All files below, except hidden ones."""
        start = self._path(prefix.rstrip("/")) if prefix else self._base
        with self._told(prefix):
            try:
                yield from self._below(start)
            except FileNotFoundError:
                if not self._base.is_dir():
                    raise

    def _below(self, folder: Path) -> Iterator[Entry]:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.name.startswith(".")]
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    yield from self._below(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    name = Path(entry.path).relative_to(self._base).as_posix()
                    yield Entry(name, status.st_size, _token(status))

    def delete(self, key: str) -> None:
        """Remove an object, and folders that are empty then."""
        path = self._path(key)
        with self._told(key):
            path.unlink(missing_ok=True)
            for folder in path.relative_to(self._base).parents:
                if folder == Path():
                    return
                try:
                    (self._base / folder).rmdir()
                except OSError:
                    return

    def _path(self, key: str) -> Path:
        path = self._base / checked(key)
        # A name on the way may be a link that leads out.
        if any((self._base / upper).is_symlink() for upper in list(Path(key).parents)[:-1]):
            raise Refused(f"{path} is behind a link", "links in a place are not followed")
        return path

    def _make_base(self) -> None:
        if self.place.scheme == "path":
            self._base.mkdir(parents=True, exist_ok=True)
        elif not self._base.is_dir():
            # A share that is not mounted must not become a folder of its name.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._base))

    @contextlib.contextmanager
    def _written(self, path: Path, data: bytes) -> Iterator[Path]:
        """The contents, synced, under a hidden name beside the one they are to have."""
        self._make_base()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.parent / f".part-{secrets.token_hex(8)}"
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            yield part
            with contextlib.suppress(OSError):
                folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep others from comparing while we swap."""
        self._make_base()
        with (self._base / LOCK).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _told(self, key: str) -> Iterator[None]:
        """What the system says, as trouble with a place."""
        try:
            yield
        except FileNotFoundError:
            if not self._base.is_dir():
                raise NoSuchPlace(
                    f"there is no folder {self._base}", "make it, mount the share, or name another place"
                ) from None
            raise NoSuchObject(f"there is no {self._base / key}") from None
        except OSError as error:
            raise self._trouble(error) from None

    def _trouble(self, error: OSError) -> StoreError:
        words = error.strerror or str(error)
        if error.errno in _FULL:
            return Full(f"{self.place.address} takes nothing more: {words}", "make room there")
        if error.errno in _REFUSED or error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR):
            return Refused(f"{self.place.address} refuses: {words}", "look at the rights of that folder")
        return Away(f"{self.place.address} does not answer: {words}", "look whether the share is mounted")


def _token(status: os.stat_result) -> str:
    """Changes with every write, since each one is another file."""
    return f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"
