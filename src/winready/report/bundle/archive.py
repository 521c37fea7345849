"""Bundles as bytes: the same files always give the same archive, and reading a hostile one is safe.

The digest of everything that follows stands in the gzip header's comment, so that not even a bit that
decompression would overlook can be changed unnoticed. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Mapping

MOST_BYTES = 256 << 20
MOST_FILES = 2000
_HEAD = b"\x1f\x8b\x08\x10\x00\x00\x00\x00\x02\xff"
"""gzip, deflate, a comment follows, no time, best compression, no operating system."""
_COMMENT = re.compile(rb"winready-bundle sha256:([0-9a-f]{64})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}(/[A-Za-z0-9][A-Za-z0-9._-]{0,120}){0,3}")


class BundleError(Exception):
    """The bytes are no bundle, or not the bytes that were written."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """An archive of these files, the same to the byte every time."""
    plain = _tar(files)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    tail = (zlib.crc32(plain)).to_bytes(4, "little") + (len(plain) & 0xFFFFFFFF).to_bytes(4, "little")
    rest = deflate.compress(plain) + deflate.flush() + tail
    comment = b"winready-bundle sha256:" + hashlib.sha256(rest).hexdigest().encode()
    return _HEAD + comment + b"\x00" + rest


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of a bundle; raises `BundleError` for anything but an archive that `pack` made."""
    end = data.find(b"\x00", len(_HEAD), 200)
    match = _COMMENT.fullmatch(data, len(_HEAD), max(end, 0))
    if not data.startswith(_HEAD) or match is None:
        raise BundleError("this is no winready bundle: its head is not that of one")
    rest = data[end + 1 :]
    if hashlib.sha256(rest).hexdigest().encode() != match[1]:
        raise BundleError("the archive was changed after it was made: its digest does not fit")
    plain = _inflate(rest)
    files = _read(plain)
    if _tar(files) != plain:
        raise BundleError("the archive holds more than its files: it was not made by winready")
    return files


def _inflate(rest: bytes) -> bytes:
    inflate = zlib.decompressobj(-15)
    try:
        plain = inflate.decompress(rest, MOST_BYTES + 1)
    except zlib.error as error:
        raise BundleError(f"the archive cannot be decompressed: {error}") from None
    if len(plain) > MOST_BYTES:
        raise BundleError(f"the archive holds more than {MOST_BYTES >> 20} MB")
    tail = inflate.unused_data
    wanted = zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little")
    if not inflate.eof or tail != wanted:
        raise BundleError("the archive is cut short or has something behind it")
    return plain


def _read(plain: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as tar:
            for member in tar:
                if len(files) >= MOST_FILES:
                    raise BundleError(f"the archive holds more than {MOST_FILES} files")
                if not member.isreg():
                    raise BundleError(f"{member.name!r} is no ordinary file")
                if not _NAME.fullmatch(member.name) or ".." in member.name:
                    raise BundleError(f"{member.name!r} is no name for a file in a bundle")
                if member.name in files:
                    raise BundleError(f"{member.name!r} is there twice")
                content = tar.extractfile(member)
                files[member.name] = content.read() if content else b""
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise BundleError(f"the archive cannot be read: {error}") from None
    return files


def _tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(files[name]), 0o644
            tar.addfile(member, io.BytesIO(files[name]))
    return out.getvalue()
