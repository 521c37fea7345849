"""Whether the mapping still selects exactly what it should in a given e2e.test, and what changed where it does not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from winready.spec.versions import Version
from winready.upstream.listing import Listing, key, plain, tags
from winready.upstream.mapping import Mapping, Test

State = Literal["exact", "moved", "unused", "retagged", "missing", "ambiguous"]
DRIFTED: frozenset[State] = frozenset({"retagged", "missing", "ambiguous"})


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one mapped test in one listing."""

    test: str
    state: State
    expected: str = ""
    found: str = ""
    """The text that a run would select; empty when it would select none."""
    detail: str = ""
    nearest: list[str] = []
    requirements: list[str] = []

    @property
    def drifted(self) -> bool:
        """Whether a run must not rely on it."""
        return self.state in DRIFTED


def compare(
    mapping: Mapping, listing: Listing, version: Version, *, only: Iterable[str] | None = None
) -> list[Finding]:
    """Every mapped test against the specs of one e2e.test."""
    version = mapping.nearest_version(version)
    by_key: dict[str, list[str]] = {}
    for text in listing.texts:
        by_key.setdefault(key(text), []).append(text)
    wanted = mapping.tests if only is None else {name: mapping.tests[name] for name in only}
    return [_finding(mapping, name, test, listing, by_key, version) for name, test in wanted.items()]


def _finding(
    mapping: Mapping, name: str, test: Test, listing: Listing, by_key: dict[str, list[str]], version: Version
) -> Finding:
    users = [requirement for requirement, coverage in mapping.requirements.items() if name in coverage.tests]
    text = test.text(version)
    if text is None:
        spans = ", ".join(test.texts)
        return Finding(test=name, state="unused", detail=f"used in {spans} only", requirements=users)
    text = plain(text)
    count = listing.count(text)
    if count == 1:
        return Finding(test=name, state="exact", expected=text, found=text, requirements=users)
    if count > 1:
        detail = f"{count} specs have this text"
        return Finding(test=name, state="ambiguous", expected=text, detail=detail, requirements=users)
    same = by_key.get(key(text), [])
    if len(same) == 1:
        return _retagged(name, text, same[0], users)
    if same:
        detail = f"{len(same)} specs differ from it in their tags only"
        return Finding(test=name, state="ambiguous", expected=text, detail=detail, nearest=same[:3], requirements=users)
    near = nearest(text, listing.texts)
    return Finding(
        test=name, state="missing", expected=text, detail="no spec has this text", nearest=near, requirements=users
    )


def _retagged(name: str, text: str, found: str, users: list[str]) -> Finding:
    before, after = tags(text), tags(found)
    if before == after:
        detail = "the same words and tags in another order"
        return Finding(test=name, state="moved", expected=text, found=found, detail=detail, requirements=users)
    changes = [f"{tag} is new" for tag in sorted(after - before)] + [f"{tag} is gone" for tag in sorted(before - after)]
    return Finding(
        test=name,
        state="retagged",
        expected=text,
        detail=", ".join(changes),
        nearest=[found],
        requirements=users,
    )


def nearest(text: str, known: Sequence[str], limit: int = 3) -> list[str]:
    """The specs whose words are most like these; cheap first, since a listing has thousands of long texts."""
    words = set(key(text).split())

    def shared(other: str) -> float:
        theirs = set(key(other).split())
        return len(words & theirs) / (len(words | theirs) or 1)

    candidates = sorted(known, key=shared, reverse=True)[:40]
    return difflib.get_close_matches(text, candidates, n=limit, cutoff=0.5)
