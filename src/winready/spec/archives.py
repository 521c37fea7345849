"""Compressed archives of strangers, read as a stream: nothing is unpacked, and nothing in them costs more than stated.

Messages begin with a verb: whoever shows them names the file.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

MOST_MEMBERS = 200_000
LARGEST_ARCHIVE = 4 << 30
LARGEST_HEADER = 1 << 20
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class ArchiveError(ValueError):
    """The file cannot be used; the message says why."""


class Archive:
    """The members of an archive, one after the other."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def __iter__(self) -> Iterator[tuple[str, tarfile.TarInfo]]:
        """Names with forward slashes, and members; a name that leads out of the archive ends it."""
        for number, member in enumerate(self._tar):
            if number >= MOST_MEMBERS:
                raise ArchiveError(f"holds more than {MOST_MEMBERS} files")
            name = member.name.replace("\\", "/").removeprefix("./")
            if name.startswith("/") or ".." in name.split("/"):
                raise ArchiveError(f"holds {shown(name)}, which leads out of the archive")
            yield name, member

    def content(self, name: str, member: tarfile.TarInfo, most: int) -> bytes:
        """What is in a file, now that its turn has come."""
        if not member.isreg():
            raise ArchiveError(f"holds {shown(name)} as a link or a device instead of a file")
        if member.size > most:
            raise ArchiveError(f"holds {shown(name)}, which is larger than {most >> 20} MiB")
        file = self._tar.extractfile(member)
        return file.read() if file is not None else b""


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Read a ``.tar.gz``; raises `ArchiveError`."""
    try:
        with path.open("rb") as file, gzip.GzipFile(fileobj=file) as unpacked:
            stream = io.BufferedReader(_Bounded(unpacked))
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as tar:
                yield Archive(tar)
    except ArchiveError:
        raise
    except OSError as error:
        raise ArchiveError(f"cannot be read: {error.strerror or error}") from None
    except (tarfile.TarError, EOFError, zlib.error, ValueError, OverflowError) as error:
        raise ArchiveError(f"is no archive that can be read: {error}") from None


def shown(name: str) -> str:
    """A name from inside, fit for a line."""
    return repr(name[:120])


class _Member(tarfile.TarInfo):
    """Long names and attributes are read whole before anybody sees them: how long they may be is decided here."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HEADERS and member.size > LARGEST_HEADER:
            raise ArchiveError(f"holds a header of {member.size >> 20} MiB")
        return member


class _Bounded(io.RawIOBase):
    """Counts what really comes out of the compression, whatever the headers say."""

    def __init__(self, source: IO[bytes] | BinaryIO | gzip.GzipFile) -> None:
        self._source = source
        self._left = LARGEST_ARCHIVE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._source.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError(f"holds more than {LARGEST_ARCHIVE >> 30} GiB")
        buffer[: len(data)] = data
        return len(data)
