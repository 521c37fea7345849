"""Kubernetes versions and ranges of them, as the specification writes them: ``>=1.23``, ``1.24-1.36``, ``<1.30``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.\d+)?(?:[-+]\S*)?", re.ASCII)
_RELEASE = re.compile(r"v?\d{1,6}\.\d{1,6}\.\d{1,6}(?:-[0-9A-Za-z.-]+)?")
_SAID = re.compile(r"v\d+\.\d+\.\d+[^\s\"']*")
_MINOR = r"\d+\.\d+"


@dataclass(frozen=True, order=True)
class Version:
    """A Kubernetes minor version; patch levels carry no requirement."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``1.34``, ``v1.34.2`` or ``v1.34.2-gke.100``."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a Kubernetes version; write it like 1.34")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True)
class VersionRange:
    """From a version on, up to and including a version, or both."""

    first: Version | None
    last: Version | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``>=1.23``, ``<=1.30``, ``1.24-1.36`` or ``1.34``."""
        text = text.replace(" ", "")
        if match := re.fullmatch(rf">=({_MINOR})", text):
            return cls(Version.parse(match[1]), None)
        if match := re.fullmatch(rf"<=({_MINOR})", text):
            return cls(None, Version.parse(match[1]))
        if match := re.fullmatch(rf"({_MINOR})(?:-({_MINOR}))?", text):
            first = Version.parse(match[1])
            last = Version.parse(match[2]) if match[2] else first
            if last < first:
                raise ValueError(f"{text!r} ends before it begins")
            return cls(first, last)
        raise ValueError(f"{text!r} is not a version range; write >=1.23, <=1.30 or 1.24-1.36")

    def __contains__(self, version: Version) -> bool:
        return (self.first is None or self.first <= version) and (self.last is None or version <= self.last)

    def __str__(self) -> str:
        if self.first is None:
            return f"<={self.last}"
        if self.last is None:
            return f">={self.first}"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def is_release(text: str) -> bool:
    """Whether it names one release down to the patch level: ``1.36.3`` or ``v1.37.0-rc.1``."""
    return _RELEASE.fullmatch(text) is not None


def release_order(release: str) -> tuple[int, ...]:
    """What releases are sorted by: ``(1, 36, 3)`` of ``v1.36.3``."""
    return tuple(int(text) for text in re.findall(r"\d{1,18}", release)[:3])


def said_version(words: str) -> str | None:
    """The first full version in what a program says about itself."""
    match = _SAID.search(words)
    return match[0] if match else None
