"""An audit as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from winready.features.audit.compare import TITLES, Audit, Item, LinuxOnly, Part
from winready.features.audit.snapshot import Snapshot
from winready.lint.output.matrix import Page, Row, Section
from winready.lint.statements import Statement
from winready.upstream.explained import WAYS, Group

_MANY = 3
_COLUMNS: dict[str, Row] = {
    "fields": ("field", "type", "Windows"),
    "gates": ("gate", "stage", "Windows"),
    "specs": ("spec", "Windows"),
}


def audit_page(audit: Audit, *, everything: bool = False, wide: bool = False) -> Page:
    """What is new, gone, changed and unstated; with everything, also the statement about each thing.

    ``wide`` gives each thing a row of its own, with its path, both versions, and the parts of the statement.
    """
    before, after = _called(audit.before), _called(audit.after)
    sections: list[Section] = []
    for part in audit.parts:
        sections += _wide_sections(part, everything) if wide else _sections(part, everything)
    if audit.linux_only and audit.linux_only.unexplained:
        sections.append(_unexplained(audit.linux_only))
    return Page(
        f"Windows and Kubernetes {after}, compared with {before}",
        "\n".join(_summary(audit)),
        sections,
        _data(audit, everything),
    )


def linux_only_page(audit: Audit, *, wide: bool = False) -> Page:
    """Why specs leave Windows out, group by group; ``wide`` also tells what the groups are called."""
    found = audit.linux_only or LinuxOnly((), ())
    columns = ("specs", "what they test", "on Windows", "how", "features and requirements")
    rows: list[Row] = [_group_row(group, count, wide) for group, count in found.groups]
    sections = [Section("Specs tagged [LinuxOnly]", ("group", *columns) if wide else columns, rows)] if rows else []
    if found.unexplained:
        sections.append(_unexplained(found))
    intro = f"{found.total} specs in {len(found.groups)} groups; {len(found.unexplained)} texts without an explanation."
    data = {"to": _version(audit.after), "linux_only": _linux_only_data(found), "notes": audit.notes}
    return Page(f"[LinuxOnly] specs of Kubernetes {_called(audit.after)}", intro, sections, data)


def change_sections(part: Part) -> Iterator[Section]:
    """What is new, gone and changed in one kind of thing."""
    columns = _COLUMNS[part.kind]
    for word, items in (("New", part.new), ("Gone", part.gone), ("Changed", part.changed)):
        if items:
            yield Section(f"{word} {TITLES[part.kind]}", columns, _change_rows(items, len(columns)))


def _change_rows(items: Iterable[Item], columns: int) -> list[Row]:
    """One row each, but what many have in common is said once."""
    alike: dict[str, list[Item]] = {}
    for item in items:
        alike.setdefault(statement_words(item.statement), []).append(item)
    rows: list[Row] = []
    together: list[Row] = []
    for words, same in alike.items():
        if len(same) < _MANY:
            rows += [_row(item, " → ".join(filter(None, (item.before, item.after)))) for item in same]
        else:
            names = ", ".join(item.name for item in same)
            together.append((f"{len(same)} more", *[""] * (columns - 2), f"{words}: {names}"))
    return [*sorted(rows), *together]


def statement_words(statement: Statement | None) -> str:
    """A statement in one line."""
    if statement is None:
        return "no statement"
    links = [*statement.rules, *statement.features]
    return f"{statement.effect}: {statement.words}" + (f" ({', '.join(links)})" if links else "")


def _sections(part: Part, everything: bool) -> Iterator[Section]:
    title = TITLES[part.kind]
    if part.unstated:
        columns: Row = ("field", "type", "where") if part.kind == "fields" else _COLUMNS[part.kind][:-1]
        rows = [(item.name, item.after, item.place)[: len(columns)] for item in part.unstated]
        yield Section(f"Without a statement: {title}", columns, rows)
    yield from change_sections(part)
    if everything:
        yield Section(f"All {title}", _COLUMNS[part.kind], [_row(item, item.after) for item in part.items])


def _wide_sections(part: Part, everything: bool) -> Iterator[Section]:
    title = TITLES[part.kind]
    columns = (part.kind.removesuffix("s"), "path", "before", "after", "effect", "note", "rules", "features")
    for words, items in (
        (f"Without a statement: {title}", part.unstated),
        (f"New {title}", part.new),
        (f"Gone {title}", part.gone),
        (f"Changed {title}", part.changed),
        (f"All {title}", part.items if everything else ()),
    ):
        if items:
            yield Section(words, columns, [_wide_row(item) for item in items])


def _wide_row(item: Item) -> Row:
    stated = item.statement
    told = (stated.effect, stated.words, ", ".join(stated.rules), ", ".join(stated.features)) if stated else ("",) * 4
    return item.name, item.place, item.before, item.after, *told


def _row(item: Item, what: str) -> Row:
    words = statement_words(item.statement)
    return (item.name, what, words) if what else (item.name, words)


def _group_row(group: Group, count: int, wide: bool) -> Row:
    links = ", ".join([*group.features, *group.requirements])
    return *((group.id,) if wide else ()), str(count), group.tests, WAYS[group.way], group.windows, links


def _unexplained(found: LinuxOnly) -> Section:
    return Section("Without an explanation: [LinuxOnly] specs", ("spec",), [(text,) for text in found.unexplained])


def _summary(audit: Audit) -> Iterator[str]:
    for part in audit.parts:
        changes = (
            f"{len(part.new)} new, {len(part.gone)} gone, {len(part.changed)} changed"
            if part.compared
            else "nothing to compare with"
        )
        yield f"{len(part.items)} {TITLES[part.kind]}: {changes}; {len(part.unstated)} without a statement."
    if found := audit.linux_only:
        yield f"{found.total} [LinuxOnly] specs explained in {len(found.groups)} groups; {len(found.unexplained)} not."
    yield from audit.notes


def _called(snapshot: Snapshot) -> str:
    version = snapshot.version or "of unknown version"
    return version if snapshot.source == "bundled" else f"{version} ({snapshot.source})"


def _version(snapshot: Snapshot) -> dict[str, str]:
    return {"kubernetes": snapshot.version, "source": snapshot.source}


def _data(audit: Audit, everything: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "from": _version(audit.before),
        "to": _version(audit.after),
        "unstated": audit.unstated,
    }
    for part in audit.parts:
        data[part.kind] = {
            "total": len(part.items),
            "compared": part.compared,
            "new": _items(part.new),
            "gone": _items(part.gone),
            "changed": _items(part.changed),
            "unstated": _items(part.unstated),
            **({"all": _items(part.items)} if everything else {}),
        }
    if audit.linux_only:
        data["linux_only"] = _linux_only_data(audit.linux_only)
    return {**data, "notes": audit.notes}


def _items(items: Iterable[Item]) -> list[dict[str, Any]]:
    return [
        {
            "name": item.name,
            "path": item.place or None,
            "before": item.before or None,
            "after": item.after or None,
            "windows": _statement(item.statement),
        }
        for item in items
    ]


def _statement(statement: Statement | None) -> dict[str, Any] | None:
    if statement is None:
        return None
    return {
        "effect": statement.effect,
        "reason": statement.reason or None,
        "note": statement.words,
        "rules": list(statement.rules),
        "features": list(statement.features),
    }


def _linux_only_data(found: LinuxOnly) -> dict[str, Any]:
    return {
        "total": found.total,
        "groups": [
            {
                "id": group.id,
                "specs": count,
                "tests": group.tests,
                "way": group.way,
                "windows": group.windows,
                "features": group.features,
                "requirements": group.requirements,
            }
            for group, count in found.groups
        ],
        "unexplained": list(found.unexplained),
    }
