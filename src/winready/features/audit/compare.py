"""Two versions side by side: what is new, what is gone, what changed, and what nobody has said anything about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from winready.features.audit.snapshot import Snapshot
from winready.lint.openapi import inner, places
from winready.lint.statements import Statement, Statements, of_gate
from winready.lint.versions import CURRENT, FIRST, LAST
from winready.upstream import explained
from winready.upstream.explained import Group

Kind = Literal["fields", "gates", "specs"]
TITLES: Mapping[Kind, str] = {"fields": "pod fields", "gates": "feature gates", "specs": "[sig-windows] specs"}
_WHOLE_NUMBERS = ("int32", "int64", "integer")


@dataclass(frozen=True, slots=True)
class Item:
    """A field, a gate or a spec of the audited version, or one that it no longer has."""

    name: str
    before: str = ""
    """Its type, or its stage and default; empty where it did not exist."""
    after: str = ""
    statement: Statement | None = None
    place: str = ""
    """Of a field: where it stands in a pod."""


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of thing."""

    kind: Kind
    items: tuple[Item, ...]
    """Everything that the audited version has."""
    new: tuple[Item, ...] = ()
    gone: tuple[Item, ...] = ()
    changed: tuple[Item, ...] = ()
    compared: bool = True
    """False where the version to compare with says nothing about this kind."""

    @property
    def unstated(self) -> list[Item]:
        """What lacks a statement about Windows."""
        return [item for item in self.items if item.statement is None]


@dataclass(frozen=True, slots=True)
class LinuxOnly:
    """The specs that leave Windows out, by the reason for it."""

    groups: tuple[tuple[Group, int], ...]
    unexplained: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many of them have an explanation."""
        return sum(count for _, count in self.groups)


@dataclass(frozen=True, slots=True)
class Audit:
    """The answer."""

    before: Snapshot
    after: Snapshot
    parts: tuple[Part, ...]
    linux_only: LinuxOnly | None
    notes: list[str] = field(default_factory=list)

    @property
    def unstated(self) -> int:
        """How many things nobody has said anything about."""
        left = len(self.linux_only.unexplained) if self.linux_only else 0
        return left + sum(len(part.unstated) for part in self.parts)


def audit(before: Snapshot, after: Snapshot, notes: list[str]) -> Audit:
    """Compare two versions, and hold the later one against our data."""
    minor = after.minor
    if minor is None:
        minor = CURRENT
        notes.append(f"nothing says which version was read; it is judged as 1.{CURRENT}")
    if not FIRST <= minor <= LAST:
        notes.append(f"the data covers 1.{FIRST} to 1.{LAST}; 1.{minor} is judged by the nearest of them")
        minor = min(max(minor, FIRST), LAST)
    parts = []
    if after.fields is not None:
        statements = Statements(after.fields, minor)
        parts.append(_part("fields", before.fields, after.fields, statements.of, places))
    if after.gates is not None:
        parts.append(_part("gates", _words(before.gates), _words(after.gates), of_gate))
    if after.specs is not None:
        parts.append(_part("specs", _bare(before.specs), _bare(after.specs), of_spec))
    have = {part.kind for part in parts}
    missing = [f"{title} were not audited" for kind, title in TITLES.items() if kind not in have]
    said = "\n".join(notes)
    notes += [f"{words}: nothing that was given tells them" for words in missing if words not in said]
    linux_only = None if after.linux_only is None else grouped(after.linux_only)
    return Audit(before, after, tuple(parts), linux_only, notes)


def grouped(texts: Mapping[str, int]) -> LinuxOnly:
    """The specs tagged [LinuxOnly] by their explanations."""
    counts: dict[str, int] = {}
    unexplained = []
    for text, count in texts.items():
        if group := explained.group(text):
            counts[group.id] = counts.get(group.id, 0) + count
        else:
            unexplained.append(text)
    groups = tuple((one, counts[one.id]) for one in explained.groups() if one.id in counts)
    return LinuxOnly(groups, tuple(unexplained))


def of_spec(text: str) -> Statement | None:
    """What a spec of [sig-windows] is about, as a statement."""
    meaning = explained.meaning(text)
    if meaning is None:
        return None
    if meaning.reason:
        return Statement("neutral", note=meaning.reason)
    note = f"verifies {', '.join(meaning.requirements)}" if meaning.requirements else ""
    return Statement("supported", note=note, features=tuple(meaning.features))


def _part(
    kind: Kind,
    before: Mapping[str, str] | None,
    after: Mapping[str, str] | None,
    statement: Callable[[str], Statement | None],
    placed: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda names: {},
) -> Part:
    new_names, old_names = after or {}, before or {}
    where = {**placed(old_names), **placed(new_names)}

    def item(name: str) -> Item:
        return Item(name, old_names.get(name, ""), new_names.get(name, ""), statement(name), where.get(name, ""))

    items = tuple(item(name) for name in new_names)
    if before is None:
        return Part(kind, items, compared=False)
    simple = (lambda value, names: value) if kind != "fields" else _shape
    return Part(
        kind,
        items,
        new=tuple(one for one in items if one.name not in before),
        gone=tuple(item(name) for name in before if name not in new_names),
        changed=tuple(
            one for one in items if one.name in before and simple(one.before, old_names) != simple(one.after, new_names)
        ),
    )


def _shape(kind: str, fields: Mapping[str, str]) -> str:
    """A type as far as two servers must agree on it; they may call a scalar by its name or by its form."""
    leaf = inner(kind)
    prefix = kind.removesuffix(leaf)
    if leaf in _WHOLE_NUMBERS:
        return f"{prefix}integer"
    if leaf == "boolean" or any(name.startswith(f"{leaf}.") for name in fields):
        return kind
    return f"{prefix}text"


def _words(gates: Mapping[str, object] | None) -> dict[str, str] | None:
    return None if gates is None else {name: str(gate) for name, gate in gates.items()}


def _bare(texts: tuple[str, ...] | None) -> dict[str, str] | None:
    return None if texts is None else dict.fromkeys(texts, "")
