"""Kubernetes versions: those that a sandbox can report, and how they are read and written."""

from __future__ import annotations

import re

OLDEST_MINOR, NEWEST_MINOR, DEFAULT_MINOR = 23, 37, 36
_RELEASE = re.compile(r"v?1\.(\d+)(?:\.\d+)?")
_MINOR = re.compile(r"v1\.(\d|[1-9]\d*)")


def minor_of(release: str) -> int:
    """36 for ``1.36`` or ``v1.36.3``; ``ValueError`` if it is none."""
    return _minor(_RELEASE.fullmatch(release), release)


def minor_of_build(version: str) -> int:
    """36 for ``v1.36.3-rc.1+vendor`` as well: what programs say that they are."""
    return _minor(_RELEASE.match(version), version)


def minor_of_label(text: str) -> int | None:
    """36 for ``v1.36`` and nothing else, as labels have it; None if it is none."""
    found = _MINOR.fullmatch(text)
    return int(found[1]) if found else None


def _minor(found: re.Match[str] | None, text: str) -> int:
    if found is None:
        raise ValueError(f"{text!r} is not a Kubernetes version")
    return int(found[1])


def release(minor: int) -> str:
    """What the embedded parts of a minor version call themselves."""
    return f"v1.{minor}.0"
