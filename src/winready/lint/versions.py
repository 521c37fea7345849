"""Kubernetes minor versions: the ones that the data knows, and ranges of them."""

from __future__ import annotations

from dataclasses import dataclass

from winready.spec.versions import Version

FIRST, LAST = 14, 37
CURRENT = 36


class VersionError(ValueError):
    """A version that cannot be read or that the data does not cover."""


@dataclass(frozen=True, slots=True)
class Range:
    """Minor versions from ``low`` to ``high``, both included; no ``high`` means without end."""

    low: int
    high: int | None

    def __contains__(self, minor: int) -> bool:
        return self.low <= minor and (self.high is None or minor <= self.high)

    def overlaps(self, other: Range) -> bool:
        """Whether some version lies in both."""
        return (self.high is None or other.low <= self.high) and (other.high is None or self.low <= other.high)

    def __str__(self) -> str:
        if self.high is None:
            return f"1.{self.low}+"
        return f"1.{self.low}" if self.low == self.high else f"1.{self.low}-1.{self.high}"


def parse_minor(text: str) -> int:
    """``1.34``, ``v1.34.2`` -> 34, within what the data covers."""
    try:
        minor = _minor(text)
    except ValueError:
        raise VersionError(f"{text!r} is not a Kubernetes version; write 1.34, or 1.30-1.36 for a range") from None
    if not FIRST <= minor <= LAST:
        raise VersionError(f"nothing is known about Kubernetes {text}; the data covers 1.{FIRST} to 1.{LAST}")
    return minor


def parse_range(text: str) -> Range:
    """``1.34`` or ``1.30-1.36``."""
    low, separator, high = text.strip().partition("-")
    if not separator or not high.strip().removeprefix("v").startswith("1."):
        minor = parse_minor(text)
        return Range(minor, minor)
    result = Range(parse_minor(low), parse_minor(high))
    if result.high is not None and result.low > result.high:
        raise VersionError(f"the range {text} ends before it begins; write 1.{result.high}-1.{result.low}")
    return result


def parse_data_range(text: str) -> Range:
    """The form of the data files: ``1.24+`` or ``1.14-1.23``; it may lie outside the covered versions."""
    if text.endswith("+"):
        return Range(_minor(text[:-1]), None)
    low, high = text.split("-")
    return Range(_minor(low), _minor(high))


def pinned_minor(text: str) -> int | None:
    """24 for ``v1.24``, the one form in which a Pod Security label pins a version; None for any other."""
    try:
        minor = _minor(text)
    except ValueError:
        return None
    return minor if text == f"v1.{minor}" else None


def _minor(text: str) -> int:
    version = Version.parse(text)
    if version.major != 1:
        raise ValueError(f"{text!r} is not a version 1.x")
    return version.minor
