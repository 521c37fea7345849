"""Server-side apply, and the upkeep of field ownership on every other write.

An applier owns the fields it names. Changing a field of somebody else's is a conflict unless forced; a field that its
last owner stops naming goes away.
"""

from __future__ import annotations

import json
from typing import Any

from winready_sandbox.api.errors import ApiError, bad_request
from winready_sandbox.api.patches import managers as owners
from winready_sandbox.api.patches.fields import (
    Difference,
    Tree,
    common,
    difference,
    element,
    fields_of,
    is_member,
    members,
    minus,
    union,
)
from winready_sandbox.api.patches.lists import ListRule, Rules, is_whole_map, rules_of
from winready_sandbox.api.patches.managers import Manager

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def track_update(
    old: dict[str, Any] | None, new: dict[str, Any], manager: str, operation: str = "Update", subresource: str = ""
) -> dict[str, Any]:
    """The new object with its ``managedFields`` brought up to date for a plain write by this manager."""
    stored = old.get("metadata", {}).get("managedFields", []) if old else []
    given = new.get("metadata", {}).get("managedFields")
    changes = difference(old, new, rules_of(new))
    if given is stored or given is None or subresource or given == stored:
        if changes.changed is None and changes.removed is None:
            return new if given is stored else owners.with_entries(new, stored)
        current = owners.read(stored) or []
    elif given in ([], [{}]):
        current = []
    else:
        current = owners.read(given) or owners.read(stored) or []
    if old is not None and not current:  # an object that nobody tracks stays so until it is applied to
        return owners.with_entries(new, None)
    if changes.changed is None and changes.removed is None:
        return owners.with_managers(new, current)
    writer = Manager(manager, operation, str(new.get("apiVersion", "v1")), subresource, {}, owners.now())
    return owners.with_managers(new, owners.after_write(current, writer, changes))


def server_side_apply(
    live: dict[str, Any] | None, applied: dict[str, Any], manager: str, force: bool, subresource: str = ""
) -> dict[str, Any]:
    """The live object with the applied one merged in, owned by its managers."""
    if applied.get("metadata", {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    applied = _in_scope(_without_nulls(applied), subresource)
    rules = rules_of(applied)
    mine = fields_of(applied, rules)
    version = str(applied.get("apiVersion", "v1"))
    writer = Manager(manager, "Apply", version, subresource, mine, owners.now())
    if live is None:
        return owners.with_managers(applied, [writer] if mine else [])
    current = owners.read(live.get("metadata", {}).get("managedFields", [])) or _before_first_apply(live)
    others = [other for other in current if other.identity != writer.identity]
    previous = next((other for other in current if other.identity == writer.identity), None)

    merged = _merge_maps(live, applied, "", rules)
    if previous is not None:
        kept: Tree | None = mine
        for other in others:
            kept = union(kept, other.fields)
        # Every object keeps its metadata, whoever stops naming labels in it.
        merged = _prune_map(merged, previous.fields, {"f:metadata": {}, **(kept or {})}, "", rules)
    changes = difference(live, merged, rules)
    if not force:
        _refuse_conflicts(live, others, changes, rules, by_kubectl=manager == "kubectl")
    if manager == "kubectl":
        merged = _with_last_applied(merged, applied)
    if previous is not None and previous.fields == mine and changes == Difference(None, None):
        return live
    # What the merge changed is part of `mine`, so only the others have to make room.
    remaining = owners.after_write(others, writer, changes)
    remaining = [other for other in remaining if other.identity != writer.identity]
    return owners.with_managers(merged, [*remaining, writer] if mine else remaining)


def _before_first_apply(live: dict[str, Any]) -> list[Manager]:
    """The owner of all fields of an object that nobody tracked so far."""
    found = difference(None, live, rules_of(live)).changed
    version = str(live.get("apiVersion", "v1"))
    return [Manager("before-first-apply", "Update", version, "", found, owners.now())] if found else []


def _in_scope(applied: dict[str, Any], subresource: str) -> dict[str, Any]:
    """Without what this endpoint does not write: the status, or everything but it."""
    if subresource == "status":
        return {key: value for key, value in applied.items() if key in ("apiVersion", "kind", "metadata", "status")}
    return {key: value for key, value in applied.items() if key != "status"}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _merge_maps(live: dict[str, Any], applied: dict[str, Any], parent: str, rules: Rules) -> dict[str, Any]:
    merged = dict(live)
    for key, value in applied.items():
        present = live.get(key)
        rule = rules.get((parent, key))
        if isinstance(value, dict) and isinstance(present, dict) and not is_whole_map(key):
            merged[key] = _merge_maps(present, value, key, rules)
        elif isinstance(value, list) and isinstance(present, list) and rule is not None and rule.granular:
            merged[key] = _merge_lists(present, value, key, rule, rules)
        else:
            merged[key] = value
    return merged


def _merge_lists(live: list[Any], applied: list[Any], field: str, rule: ListRule, rules: Rules) -> list[Any]:
    """Items of both: applied ones in their order, the others where they stood, as close as that allows."""
    present = {element(item, rule): item for item in live}
    named = {element(item, rule): item for item in applied}
    if len(named) != len(applied):
        raise bad_request(f"failed to create typed patch object: duplicate entries for key in {field}")
    result: list[Any] = []
    for name in _interleaved(list(present), list(named)):
        item = named.get(name, present.get(name))
        if name in named and name in present and isinstance(item, dict) and not rule.whole_items:
            item = _merge_maps(present[name], item, field, rules)
        result.append(item)
    return result


def _interleaved(mine: list[str], theirs: list[str]) -> list[str]:
    """The order in which the real server merges two lists of names, the second one leading."""
    result: list[str] = []
    shared = [name for name in theirs if name in mine]
    i = j = 0
    while i < len(mine) or j < len(theirs):
        if i < len(mine):
            if mine[i] not in theirs:
                result.append(mine[i])
                i += 1
                continue
            out_of_turn = j < len(theirs) and mine[i] != theirs[j] and shared and shared[0] != mine[i]
            if out_of_turn or mine[i] in result:
                i += 1
                continue
        if j < len(theirs):
            result.append(theirs[j])
            if shared and shared[0] == theirs[j]:
                shared.pop(0)
            if i < len(mine) and mine[i] == theirs[j]:
                i += 1
            j += 1
    return result


def _prune_map(value: dict[str, Any], last: Tree, kept: Tree, parent: str, rules: Rules) -> dict[str, Any]:
    """Without the fields of the last applied set that nobody keeps."""
    result = dict(value)
    for name, below in last.items():
        key = name.removeprefix("f:")
        if name == "." or key not in result:
            continue
        if name not in kept:
            del result[key]
        elif isinstance(result[key], dict):
            result[key] = _prune_map(result[key], below, kept[name], key, rules)
        elif isinstance(result[key], list):
            rule = rules.get((parent, key))
            if rule is not None and rule.granular:
                result[key] = _prune_list(result[key], below, kept[name], key, rule, rules)
    return result


def _prune_list(items: list[Any], last: Tree, kept: Tree, field: str, rule: ListRule, rules: Rules) -> list[Any]:
    result = []
    for item in items:
        name = element(item, rule)
        if name not in last:
            result.append(item)
        elif name in kept and is_member(kept[name]):  # owning a part of an item does not keep it
            pruned = isinstance(item, dict) and not rule.whole_items
            result.append(_prune_map(item, last[name], kept[name], field, rules) if pruned else item)
    return result


def _refuse_conflicts(
    live: dict[str, Any], others: list[Manager], changes: Difference, rules: Rules, by_kubectl: bool
) -> None:
    allowed = _client_side_fields(live, rules) if by_kubectl else None
    conflicts: list[tuple[Manager, str]] = []
    for other in sorted(others, key=lambda manager: manager.identity):
        contested = minus(common(other.fields, changes.changed), allowed)
        conflicts += [(other, path) for path in members(contested)]
    if not conflicts:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {other.spelled()}", "field": path}
        for other, path in conflicts
    ]
    if len(conflicts) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {conflicts[0][1]}"
    else:
        lines: list[str] = []
        for name in dict.fromkeys(other.spelled() for other, _ in conflicts):
            lines.append(f"conflicts with {name}:")
            lines += [f"- {path}" for other, path in conflicts if other.spelled() == name]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    raise ApiError(409, "Conflict", message, {"causes": causes})


def _client_side_fields(live: dict[str, Any], rules: Rules) -> Tree | None:
    """What a client-side apply set and nobody changed since: kubectl may take it over without a conflict."""
    text = live.get("metadata", {}).get("annotations", {}).get(_LAST_APPLIED)
    try:
        last = json.loads(text) if text else None
    except ValueError:
        return None
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return None
    drift = difference(last, live, rules)
    return minus(minus(fields_of(last, rules), drift.changed), drift.removed)


def _with_last_applied(merged: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    """Keeps the annotation of client-side apply current where there is one."""
    metadata = merged.get("metadata", {})
    annotations = metadata.get("annotations", {})
    if not annotations.get(_LAST_APPLIED):
        return merged
    source = json.loads(json.dumps(applied))
    source.get("metadata", {}).get("annotations", {}).pop(_LAST_APPLIED, None)
    text = json.dumps(source, separators=(",", ":"), sort_keys=True) + "\n"
    return {**merged, "metadata": {**metadata, "annotations": {**annotations, _LAST_APPLIED: text}}}
