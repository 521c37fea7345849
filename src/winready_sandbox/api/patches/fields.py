"""Sets of fields, as ``metadata.managedFields`` writes them (FieldsV1), and the difference of two objects as such sets.

A set is a tree of path elements: ``f:NAME`` a field, ``k:{...}`` a list item by its keys, ``v:VALUE`` a plain item.
A node that is itself in the set is empty or carries ``.``; ``None`` stands for no set at all. The trees are used as
they are stored: status writes are frequent and touch little, so nothing is converted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from winready_sandbox.api.patches.lists import ListRule, Rules, is_whole_map

Tree = dict[str, Any]

_KEY_DEFAULTS = {"protocol": "TCP"}
_UNOWNED = frozenset(
    {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"}
    | {"managedFields", "resourceVersion"}
)
# What a new object of a built-in kind has from the start, so that nobody comes to own it by creating the object.
_GIVEN: Tree = {
    "metadata": {},
    "spec": {
        "containers": [],
        "template": {"metadata": {}, "spec": {"containers": []}},
        "strategy": {},
        "updateStrategy": {},
    },
    "status": {},
}


class Difference(NamedTuple):
    """What a write changed or added, and what it removed."""

    changed: Tree | None
    removed: Tree | None


_SAME = Difference(None, None)


@lru_cache(maxsize=4096)
def _element(keys: tuple[str, ...], values: tuple[Any, ...]) -> str:
    pairs = dict(sorted(zip(keys, values, strict=True)))
    return "k:" + json.dumps({k: v for k, v in pairs.items() if v is not None}, separators=(",", ":"))


def element(item: Any, rule: ListRule) -> str:
    """The path element of a list item."""
    if rule.scalars or not isinstance(item, dict):
        return "v:" + json.dumps(item, separators=(",", ":"))
    return _element(rule.keys, tuple(item.get(key, _KEY_DEFAULTS.get(key)) for key in rule.keys))


def content(obj: dict[str, Any]) -> dict[str, Any]:
    """The part of an object that can be owned."""
    owned = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in _UNOWNED}
    return {"metadata": metadata, **owned}


def fields_of(obj: dict[str, Any], rules: Rules) -> Tree:
    """All fields that an applied object names."""
    found = _children(content(obj), "", rules, containers_too=False)
    if not found["f:metadata"]:
        del found["f:metadata"]
    return found


def difference(old: dict[str, Any] | None, new: dict[str, Any], rules: Rules) -> Difference:
    """How the content of two objects differs; without an old one, everything is new."""
    if old is None:
        body = content(new)
        return _compare_maps(_given(body), body, "", rules)
    return _compare_maps(content(old), content(new), "", rules)


def _given(body: dict[str, Any], given: dict[str, Any] = _GIVEN) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(body.get(key), dict) and isinstance(value, dict):
            found[key] = _given(body[key], value)
        elif isinstance(body.get(key), list):
            found[key] = []
    return found


def _whole(value: Any, field: str, rule: ListRule | None) -> bool:
    if isinstance(value, dict):
        return is_whole_map(field)
    return not isinstance(value, list) or rule is None or not rule.granular


def _tree(value: Any, parent: str, field: str, rules: Rules, containers_too: bool) -> Tree:
    """The set of a value and all within it."""
    rule = rules.get((parent, field))
    if not value or _whole(value, field, rule):
        return {}
    if isinstance(value, dict):
        return _with_self(_children(value, field, rules, containers_too), containers_too)
    assert rule is not None  # noqa: S101 - a granular list has a rule
    items: Tree = {}
    for item in value:
        if rule.whole_items or not isinstance(item, dict):
            items[element(item, rule)] = {}
        else:
            items[element(item, rule)] = _with_self(_children(item, field, rules, containers_too), True)
    return _with_self(items, containers_too)


def _with_self(children: Tree, member: bool) -> Tree:
    return {".": {}, **children} if member and children else children


def _children(value: dict[str, Any], parent: str, rules: Rules, containers_too: bool) -> Tree:
    return {f"f:{key}": _tree(item, parent, key, rules, containers_too) for key, item in value.items()}


def _compare(old: Any, new: Any, parent: str, field: str, rules: Rules) -> Difference:
    if old is new or old == new:
        return _SAME
    rule = rules.get((parent, field))
    if isinstance(old, dict) and isinstance(new, dict) and not is_whole_map(field):
        return _compare_maps(old, new, field, rules)
    if isinstance(old, list) and isinstance(new, list) and rule is not None and rule.granular:
        return _compare_lists(old, new, field, rule, rules)
    return Difference({}, None)


def _compare_maps(old: dict[str, Any], new: dict[str, Any], parent: str, rules: Rules) -> Difference:
    changed: Tree = {}
    removed: Tree = {}
    for key, value in new.items():
        before = old.get(key)
        if before is None:
            if value is not None:
                changed[f"f:{key}"] = _tree(value, parent, key, rules, True)
        elif value is None:
            removed[f"f:{key}"] = _tree(before, parent, key, rules, True)
        elif before is not value:
            below = _compare(before, value, parent, key, rules)
            _note(f"f:{key}", below, changed, removed)
    for key, value in old.items():
        if key not in new and value is not None:
            removed[f"f:{key}"] = _tree(value, parent, key, rules, True)
    return Difference(changed or None, removed or None)


def _compare_lists(old: list[Any], new: list[Any], field: str, rule: ListRule, rules: Rules) -> Difference:
    changed: Tree = {}
    removed: Tree = {}
    before = {element(item, rule): item for item in old}
    after = {element(item, rule): item for item in new}
    for name, item in after.items():
        if name not in before:
            changed[name] = _item_tree(item, field, rule, rules)
        elif item != before[name]:
            if rule.whole_items:
                changed[name] = {}
            else:
                _note(name, _compare_maps(before[name], item, field, rules), changed, removed)
    for name, item in before.items():
        if name not in after:
            removed[name] = _item_tree(item, field, rule, rules)
    return Difference(changed or None, removed or None)


def _item_tree(item: Any, field: str, rule: ListRule, rules: Rules) -> Tree:
    if rule.whole_items or not isinstance(item, dict):
        return {}
    return _with_self(_children(item, field, rules, True), True)


def _note(name: str, below: Difference, changed: Tree, removed: Tree) -> None:
    if below.changed is not None:
        changed[name] = below.changed
    if below.removed is not None:
        removed[name] = below.removed


def is_member(node: Tree) -> bool:
    """Whether a node of a set is itself in the set, and not only things below it."""
    return not node or "." in node


def union(one: Tree | None, other: Tree | None) -> Tree | None:
    """What is in either set."""
    if one is None or other is None:
        return other if one is None else one
    if one == other:
        return one
    member = is_member(one) or is_member(other)
    below = {key: node for key, node in one.items() if key != "."}
    for key, node in other.items():
        if key != ".":
            below[key] = union(below.get(key), node)
    return _made(member, below)


def minus(one: Tree | None, other: Tree | None) -> Tree | None:
    """What is in the first set only; the same tree if the second takes nothing away."""
    if one is None or other is None:
        return one
    member = is_member(one) and not is_member(other)
    below: Tree = {}
    same = member == is_member(one)
    for key, node in one.items():
        if key == ".":
            continue
        left = minus(node, other.get(key))
        same = same and left is node
        if left is not None:
            below[key] = left
    return one if same else _made(member, below)


def common(one: Tree | None, other: Tree | None) -> Tree | None:
    """What is in both sets."""
    if one is None or other is None:
        return None
    below: Tree = {}
    for key, node in one.items():
        if key != "." and key in other:
            shared = common(node, other[key])
            if shared is not None:
                below[key] = shared
    return _made(is_member(one) and is_member(other), below)


def _made(member: bool, below: Tree) -> Tree | None:
    if member:
        return _with_self(below, True)
    return below or None


def members(tree: Tree | None, path: str = "") -> Iterator[str]:
    """The paths of a set, as conflicts name them: at each level what is in the set, then what is below."""
    below = [(key, (tree or {})[key]) for key in sorted(tree or {}) if key != "."]
    for key, node in below:
        if is_member(node):
            yield path + _spelled(key)
    for key, node in below:
        yield from members(node, path + _spelled(key))


def _spelled(key: str) -> str:
    kind, _, rest = key.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "v":
        return f"[={rest}]"
    pairs = json.loads(rest)
    return "[" + ",".join(f"{name}={json.dumps(value)}" for name, value in pairs.items()) + "]"
