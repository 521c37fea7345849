"""Files of strangers that may be gzipped, read whole but never beyond a bound."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path


class PackedError(ValueError):
    """The file cannot be read; the message begins with a verb, whoever shows it names the file."""


def read_packed(path: Path, most: int) -> bytes:
    """The content of a file, unpacked if it is gzipped."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            data = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PackedError(f"cannot be read: {reason}") from None
    if len(data) > most:
        raise PackedError(f"is larger than {most >> 20} MiB")
    return data
