"""The specs that an e2e.test has: from the program itself, or from a listing that somebody saved.

Compared without regard to blanks: up to 1.28 stray ones in the sources survive into the texts.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from winready.spec.packed import PackedError, read_packed

MAX_BYTES = 256 * 1024 * 1024
MOST_LINES = 200_000
"""No e2e.test has had more than 8,000 specs."""
TAGS = re.compile(r"\[(?:Serial|Slow|Disruptive|Conformance|NodeConformance|Flaky)\]")
_LISTED = re.compile(r"^ {4}\S+:\d+: (?P<text>.*)$")
_TOP_LEVEL = "[Top Level]"


class _Dumped(msgspec.Struct, rename="pascal"):
    """What a line of a spec dump tells of a spec."""

    component_texts: list[str] | None = None
    container_hierarchy_texts: list[str] | None = None
    leaf_node_type: str | None = None
    leaf_node_text: str | None = None


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
        data = read_packed(path, MAX_BYTES)
    except PackedError as error:
        raise ListingError(f"{path} {error}") from None
    return parse_listing(data, str(path))


def parse_listing(data: bytes, source: str) -> Listing:
    """A listing from its text; raises `ListingError` when there is no spec in it."""
    if data.count(b"\n") > MOST_LINES:
        raise ListingError(f"{source} has more than {MOST_LINES:,} lines; no e2e.test has that many specs")
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
        item = msgspec.json.decode(line, type=_Dumped)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ListingError(f"{where}: not a line of a spec dump: {error}") from None
    if item.component_texts is not None:
        yield " ".join(part for part in item.component_texts if part and part != _TOP_LEVEL)
    elif item.leaf_node_type == "It":
        yield " ".join([*(item.container_hierarchy_texts or []), item.leaf_node_text or ""])
