"""Which runs somebody wants to see: read from an address, written into links, and turned into SQL.

Pages and the API share it, so that a view can be sent to somebody as its address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, get_args
from urllib.parse import urlencode

from winready.engine.outcomes import Outcome
from winready.engine.verdict import EXIT_INTERRUPTED

DAY = 86400
LONGEST = 300
"""Characters of a value; nothing that is looked for is longer."""
STATES = {
    "pass": f"verdict = 'Pass' and exit_code <> {EXIT_INTERRUPTED}",
    "fail": f"verdict = 'Fail' and exit_code <> {EXIT_INTERRUPTED}",
    "none": f"(verdict is null or exit_code = {EXIT_INTERRUPTED})",
}
KINDS = {"real": "simulated = 0", "sandbox": "simulated = 1"}
SCOPES = ("complete", "partial")
OUTCOMES: tuple[str, ...] = get_args(Outcome)


class FilterError(Exception):
    """A filter that makes no sense; the message says what to write."""


@dataclass(frozen=True)
class Filter:
    """What is asked for; what is empty is not looked at."""

    cluster: str = ""
    """Its identity or its label, whole."""
    q: str = ""
    """A part of its label."""
    kubernetes: str = ""
    """``1.36``, or a whole version."""
    windows: str = ""
    """A build, or how it begins."""
    state: str = ""
    scope: str = ""
    kind: str = ""
    since: str = ""
    """A day: the first that counts."""
    until: str = ""
    """A day: the last that counts."""
    requirement: str = ""
    outcome: str = ""
    """What became of the requirement."""

    def where(self) -> tuple[str, list[Any]]:
        """A condition on the columns of runs, and its values."""
        parts: list[str] = []
        values: list[Any] = []

        def add(part: str, *given: Any) -> None:
            parts.append(part)
            values.extend(given)

        if self.cluster:
            add("(cluster = ? or label = ?)", self.cluster, self.cluster)
        if self.q:
            add("(label like ? escape '\\' or cluster like ? escape '\\')", *[f"%{_plain(self.q)}%"] * 2)
        if self.kubernetes:
            add("(minor = ? or version = ?)", self.kubernetes, self.kubernetes)
        if self.windows:
            add("(', ' || builds) like ? escape '\\'", f"%, {_plain(self.windows)}%")
        for value, known in ((self.state, STATES), (self.kind, KINDS)):
            if value:
                add(known[value])
        if self.scope:
            add("scope = ?", self.scope)
        if self.since:
            add("at >= ?", _day(self.since))
        if self.until:
            add("at < ?", _day(self.until) + DAY)
        if self.requirement:
            same = "requirement = (select requirements.id from requirements where name = ?)"
            judged = "and outcome = ?" if self.outcome else ""
            given = (self.requirement, self.outcome) if self.outcome else (self.requirement,)
            add(f"exists (select 1 from results where run = id and {same} {judged})", *given)
        return " and ".join(parts) or "1", values

    def query(self, **changes: str) -> str:
        """The part of an address that says the same, with some of it changed; other names may be added."""
        names = {each.name for each in fields(self)}
        here = replace(self, **{name: value for name, value in changes.items() if name in names})
        found = asdict(here) | {name: value for name, value in changes.items() if name not in names}
        return urlencode({name: value for name, value in found.items() if value})

    def __bool__(self) -> bool:
        return any(asdict(self).values())


def parse(given: Mapping[str, str]) -> Filter:
    """A filter from the part of an address behind the question mark; raises `FilterError`."""
    found = {}
    for each in fields(Filter):
        value = given.get(each.name, "").strip()
        if len(value) > LONGEST or "\x00" in value:
            raise FilterError(f"{each.name} is longer than anything that there is")
        found[each.name] = value
    made = Filter(**found)
    for name, known in (("state", STATES), ("kind", KINDS), ("scope", SCOPES), ("outcome", OUTCOMES)):
        if (value := found[name]) and value not in known:
            raise FilterError(f"{name} is {value[:40]!r}; it can be {', '.join(known)}")
    for name in ("since", "until"):
        if found[name]:
            try:
                _day(found[name])
            except (ValueError, OverflowError):
                raise FilterError(f"{name} is {found[name][:40]!r}; write a day, such as 2026-11-01") from None
    if made.outcome and not made.requirement:
        raise FilterError("outcome is that of a requirement: name it with requirement=ID")
    return made


def number(given: Mapping[str, str], name: str, default: int, most: int) -> int:
    """A whole number from an address, from 1 to what is allowed; raises `FilterError`."""
    text = given.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
        raise FilterError(f"{name} is {text[:40]!r}; it can be a number from 1 to {most}")
    return int(text)


def _plain(text: str) -> str:
    """Text in which nothing means more than itself to ``like``."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _day(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
