"""The specs that an e2e.test has: from the program itself, or from a listing that somebody saved.

Compared without regard to blanks: up to 1.28 stray ones in the sources survive into the texts.
"""

from __future__ import annotations

import functools
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

MAX_BYTES = 256 * 1024 * 1024
TAGS = re.compile(r"\[(?:Serial|Slow|Disruptive|Conformance|NodeConformance|Flaky)\]")
_LISTED = re.compile(r"^ {4}\S+:\d+: (?P<text>.*)$")
_TOP_LEVEL = "[Top Level]"


class ListingError(Exception):
    """A listing that cannot be used; the message names the file and says why."""


@dataclass(frozen=True)
class Listing:
    """Every spec of one e2e.test."""

    source: str
    texts: tuple[str, ...]

    @functools.cached_property
    def counts(self) -> Counter[str]:
        """How many specs have a very text."""
        return Counter(self.texts)

    def count(self, text: str) -> int:
        """How many specs have this very text."""
        return self.counts[plain(text)]


def plain(text: str) -> str:
    """A spec's text with single blanks."""
    return " ".join(text.split())


def key(text: str) -> str:
    """A spec's text without the tags that move about between versions."""
    return plain(TAGS.sub(" ", text))


def tags(text: str) -> frozenset[str]:
    """The tags that say how a spec must be run or what it counts for."""
    return frozenset(TAGS.findall(text))


def read_listing(path: Path) -> Listing:
    """A saved listing: one text per line, the output of ``--list-tests``, or a spec dump; gzipped or not."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ListingError(f"{path} cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise ListingError(f"{path} is larger than any listing of specs")
    return parse_listing(data, str(path))


def parse_listing(data: bytes, source: str) -> Listing:
    """A listing from its text; raises `ListingError` when there is no spec in it."""
    lines = data.decode("utf-8", errors="replace").splitlines()
    texts = tuple(plain(text) for text in _texts(lines, source) if text.strip())
    if not any(text.startswith("[sig-") for text in texts):
        raise ListingError(f"{source} holds no spec of e2e.test: one text per line, such as '[sig-windows] ...'")
    return Listing(source, texts)


def _texts(lines: Iterable[str], source: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            yield from _dumped(line, f"{source}:{number}")
        elif match := _LISTED.match(line):
            yield match["text"]
        elif line.lstrip().startswith("[sig-"):
            yield line


def _dumped(line: str, where: str) -> Iterator[str]:
    """One line of ``--spec-dump``: ginkgo v2 names containers and leaf apart, v1 gives all components."""
    try:
        item: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ListingError(f"{where}: not a line of a spec dump: {error}") from None
    if "ComponentTexts" in item:
        yield " ".join(part for part in item["ComponentTexts"] if part and part != _TOP_LEVEL)
    elif item.get("LeafNodeType") == "It":
        yield " ".join([*(item.get("ContainerHierarchyTexts") or []), item.get("LeafNodeText") or ""])
