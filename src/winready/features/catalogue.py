"""The features of the matrix, each with the way in which a cluster can show it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from winready.engine.features import Statement, Wanted
from winready.engine.outcomes import Way
from winready.lint import matrix
from winready.lint.versions import FIRST, LAST
from winready.spec import yamlfile


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the catalogue."""

    id: str
    requirements: list[str] = []
    check: bool = False
    tests: list[str] = []
    data: str = ""

    @property
    def way(self) -> Way:
        """What shows it in the first place."""
        if self.check:
            return "check"
        return "requirement" if self.requirements else "upstream" if self.tests else "data"

    @property
    def feature(self) -> matrix.Feature:
        """Its row of the matrix."""
        return next(each for each in matrix.load() if each.id == self.id)


@cache
def load() -> dict[str, Entry]:
    """Every row by the id of its feature, in the order of the matrix."""
    text = (resources.files("winready.features") / "data" / "catalogue.yaml").read_text(encoding="utf-8")
    (document,) = yamlfile.read(text)
    if isinstance(document, yamlfile.YamlError):
        raise document
    rows: list[Any] = document.value
    entries = {entry.id: entry for entry in msgspec.convert(rows, list[Entry])}
    return {feature.id: entries[feature.id] for feature in matrix.load()}


def wanted(entry: Entry) -> Wanted:
    """A feature as the engine shows it, with all that the data says of it."""
    feature = entry.feature
    return Wanted(
        id=feature.id,
        name=feature.name,
        area=feature.area,
        statements=tuple(_statements(feature)),
        until=LAST,
        requirements=tuple(entry.requirements),
        check=entry.check,
        tests=tuple(entry.tests),
        data_only=entry.data,
    )


def documented(feature: matrix.Feature, minor: int) -> Statement:
    """What the data says of a feature in a version."""
    status = feature.status(minor)
    since = f" since 1.{status.since}" if status.since and status.since > FIRST else ""
    words = matrix.SUPPORT[status.support]
    match status.support:
        case "yes" | "limited":
            stage = "" if status.stage == "ga" else f" ({status.stage})"
            text = f"supported{since}{stage}" + (" with limits" if status.support == "limited" else "")
        case "off":
            text = f"{words}{since} ({status.stage}{f', gate {feature.gate}' if feature.gate else ''})"
        case "no":
            text = f"gone{since}" if since else words
        case _:
            text = words
    return Statement(minor, status.support, text)


def _statements(feature: matrix.Feature) -> Iterator[Statement]:
    last: Statement | None = None
    for minor in range(FIRST, LAST + 1):
        now = documented(feature, minor)
        if last is None or (now.support, now.text) != (last.support, last.text):
            yield now
            last = now
