"""Kubernetes minor versions: the ones that the data knows, and ranges of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

FIRST, LAST = 14, 37
CURRENT = 36

_VERSION = re.compile(r"v?1\.(\d{1,3})(?:\.\d+)?(?:[-+][0-9A-Za-z.+-]*)?")


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
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise VersionError(f"{text!r} is not a Kubernetes version; write 1.34, or 1.30-1.36 for a range")
    minor = int(match[1])
    if not FIRST <= minor <= LAST:
        raise VersionError(f"nothing is known about Kubernetes {text}; the data covers 1.{FIRST} to 1.{LAST}")
    return minor


def parse_range(text: str) -> Range:
    """``1.34`` or ``1.30-1.36``."""
    low, separator, high = text.strip().partition("-")
    if not separator or not re.match(r"v?1\.", high.strip()):
        minor = parse_minor(text)
        return Range(minor, minor)
    result = Range(parse_minor(low), parse_minor(high))
    if result.high is not None and result.low > result.high:
        raise VersionError(f"the range {text} ends before it begins; write 1.{result.high}-1.{result.low}")
    return result


def parse_data_range(text: str) -> Range:
    """The form of the data files: ``1.24+`` or ``1.14-1.23``; it may lie outside the covered versions."""
    if text.endswith("+"):
        return Range(int(text[:-1].removeprefix("1.")), None)
    low, high = text.split("-")
    return Range(int(low.removeprefix("1.")), int(high.removeprefix("1.")))
