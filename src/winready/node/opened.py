"""A bundle that was made earlier, as a folder or a ZIP: whole, or not at all."""

from __future__ import annotations

import hashlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from winready.node.bundle import ENTRY, PARAMETERS, SUMS
from winready.node.downloads import CHUNK
from winready.node.parameters import Parameters, ParametersError, decode

Reader = Callable[[str], Iterator[bytes]]


@dataclass(frozen=True)
class Opened:
    """What a bundle says, once every file of it was found as its list says."""

    parameters: Parameters
    digest: str
    """SHA-256 of its list of digests: that of the bundle."""
    entry_digest: str
    """SHA-256 of the script that the Windows machine runs first."""


def open_bundle(path: Path) -> Opened:
    """Read a bundle and check it against its own list; raises `ParametersError`."""
    with _reader(path) as read:
        sums = b"".join(read(SUMS))
        digests = _digests(sums, path)
        for name in (ENTRY, PARAMETERS):
            if name not in digests:
                raise _damaged(path, f"its {SUMS} does not name {name}")
        for name, wanted in digests.items():
            found = hashlib.sha256()
            for chunk in read(name):
                found.update(chunk)
            if found.hexdigest() != wanted:
                raise _damaged(path, f"{name} is not the file that its {SUMS} names")
        parameters = decode(b"".join(read(PARAMETERS)), f"{path}: {PARAMETERS}")
    return Opened(parameters, hashlib.sha256(sums).hexdigest(), digests[ENTRY])


def _digests(sums: bytes, path: Path) -> dict[str, str]:
    found = {}
    for line in sums.decode("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ")
        parts = name.split("/")
        if len(digest) != 64 or not name or "\\" in name or ":" in name or {"", ".", ".."} & set(parts):
            raise _damaged(path, f"its {SUMS} has a line that is no digest and file name")
        found[name] = digest.lower()
    return found


def _damaged(path: Path, why: str) -> ParametersError:
    return ParametersError(f"the bundle {path} is damaged: {why}", "make it anew with 'winready node bundle'")


_NOT_UNPACKED = (EOFError, zlib.error, lzma.LZMAError, struct.error, NotImplementedError, RuntimeError, ValueError)
"""What reading a ZIP or a file of it raises when it is cut short, encrypted, or packed in a way that is none."""


@contextmanager
def _reader(path: Path) -> Iterator[Reader]:
    try:
        if path.is_dir():
            yield lambda name: _of_file(path, name)
        else:
            with _opened(path) as archive:
                yield lambda name: _of_zip(archive, path, name)
    except FileNotFoundError:
        raise ParametersError(f"there is no bundle {path}", "make one with 'winready node bundle --to DIR'") from None
    except zipfile.BadZipFile:
        raise ParametersError(f"{path} is neither a folder nor a ZIP file", "name what --to named") from None
    except OSError as error:
        raise ParametersError(f"the bundle {path} cannot be read: {error.strerror}", "check its permissions") from None


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _NOT_UNPACKED:
        raise _damaged(path, "the list of what is in it cannot be read") from None


def _of_file(folder: Path, name: str) -> Iterator[bytes]:
    try:
        with (folder / name).open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except FileNotFoundError:
        raise _damaged(folder, f"it has no {name}") from None


def _of_zip(archive: zipfile.ZipFile, path: Path, name: str) -> Iterator[bytes]:
    try:
        with archive.open(name) as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except KeyError:
        raise _damaged(path, f"it has no {name}") from None
    except _NOT_UNPACKED:
        raise _damaged(path, f"{name} in it cannot be unpacked") from None
