"""The conformance tests of each minor version of Kubernetes, known by the digests of their names.

Dated data, made by ``tools/conformance_tests.py``: enough to tell a real name from an invented one, and a whole list
from a part of it.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from importlib import resources

NAME = "conformance_tests.txt"
HEAD = "# Digests of the names of Kubernetes' conformance tests, and the minor versions of 1.x that have them.\n"
DIGITS = 12
_TAG = re.compile(r"\[(?:Conformance|NodeConformance|Serial|Slow|Disruptive|Flaky)\]")
_LABELS = re.compile(r" \[[^\[\]]*, [^\[\]]*\]$")
"""What ginkgo appends unless it is told not to: all labels of a test in one bracket."""


def digest(name: str) -> str:
    """What a test is known by, however a result writes its name.

    Prefixes differ by ginkgo's version and by who merged the files, blanks up to 1.28 by chance, the place of tags by
    the version of Kubernetes.
    """
    start = name.find("[sig-")
    plain = _LABELS.sub("", " ".join(name[max(start, 0) :].split()))
    return hashlib.sha256(" ".join(_TAG.sub(" ", plain).split()).encode()).hexdigest()[:DIGITS]


@functools.cache
def conformance_tests() -> Mapping[int, frozenset[str]]:
    """Digests by minor version."""
    return minors(resources.files("winready.spec").joinpath(NAME).read_text(encoding="ascii"))


def minors(text: str) -> dict[int, frozenset[str]]:
    """Read the file: a digest and ranges of minor versions in each line."""
    found: dict[int, set[str]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, ranges = line.split()
        for each in ranges.split(","):
            first, _, last = each.partition("-")
            for minor in range(int(first), int(last or first) + 1):
                found.setdefault(minor, set()).add(name)
    return {minor: frozenset(found[minor]) for minor in sorted(found)}


def render(tests: Mapping[str, set[int]]) -> str:
    """Write the file."""
    return HEAD + "".join(f"{name} {_ranges(sorted(tests[name]))}\n" for name in sorted(tests))


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
