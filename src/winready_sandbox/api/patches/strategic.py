"""Strategic merge patch: lists merge by key, and directives say what a plain merge cannot.

Directives: ``$patch: replace|delete|merge`` in maps and list items, ``$retainKeys``, ``$setElementOrder/LIST``,
``$deleteFromPrimitiveList/LIST``.
"""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.errors import ApiError, bad_request
from winready_sandbox.api.patches.lists import ListRule, Rules, rules_of

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def strategic_merge(obj: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The object with the patch merged in by the rules of its kind."""
    return _merge_map(obj, patch, "", rules_of(obj))


def _merge_map(original: dict[str, Any], patch: dict[str, Any], parent: str, rules: Rules) -> dict[str, Any]:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: _plain(value) for key, value in patch.items() if key != _PATCH and value is not None}
    if directive == "delete":
        return {}
    if directive is not None and directive != "merge":
        raise bad_request(f"unknown patch type: {directive} in map: {patch}")
    merged = _retained(original, patch)
    for key, value in patch.items():
        if key in (_PATCH, _RETAIN) or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE):
            field = key.removeprefix(_DELETE)
            gone = _list(value, "$deleteFromPrimitiveList")
            if isinstance(merged.get(field), list):
                merged[field] = [item for item in merged[field] if item not in gone]
        elif value is None:
            merged.pop(key, None)
        else:
            present = merged.get(key)
            if isinstance(value, dict) and isinstance(present, dict):
                merged[key] = _merge_map(present, value, key, rules)
            elif isinstance(value, list) and isinstance(present, list):
                merged[key] = _merge_list(present, value, key, rules.get((parent, key), ListRule()), rules)
            elif not (isinstance(value, dict) and value.get(_PATCH) == "delete"):
                merged[key] = _plain(value)
    for key, value in patch.items():
        if key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            if isinstance(merged.get(field), list):
                rule = rules.get((parent, field), ListRule())
                merged[field] = _ordered(merged[field], _list(value, "$setElementOrder"), rule, original.get(field))
    return merged


def _list(value: Any, directive: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"invalid patch format of {directive}: a list is needed")
    return value


def _retained(original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _RETAIN not in patch:
        return dict(original)
    keep = _list(patch[_RETAIN], "$retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in keep:
            raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keep}


def _plain(value: Any) -> Any:
    """A new value without directives and nulls."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v is not None and not k.startswith("$")}
    if isinstance(value, list):
        marked = [item for item in value if isinstance(item, dict) and _PATCH in item]
        kept = [item for item in value if not any(item is other for other in marked)]
        return [_plain(item) for item in kept]
    return value


def _merge_list(original: list[Any], patch: list[Any], field: str, rule: ListRule, rules: Rules) -> list[Any]:
    if rule.scalars:
        fresh = [item for item in dict.fromkeys(patch) if item not in original]
        return _ordered([*original, *fresh], patch, rule, original)
    if not rule.merge_key:
        return [_plain(item) for item in patch if not (isinstance(item, dict) and _PATCH in item)]
    key = rule.merge_key
    items: list[Any] = list(original)
    named: list[Any] = []
    replace = False
    for change in patch:
        if not isinstance(change, dict):
            raise bad_request(f"list element types are not identical in {field}")
        directive = change.get(_PATCH)
        if directive == "replace":
            replace = True
            continue
        if key not in change:
            raise _no_merge_key(change, key)
        if directive == "delete":
            items = [item for item in items if item.get(key) != change[key]]
        elif directive is not None:
            raise bad_request(f"unknown patch type: {directive} in map: {change}")
        else:
            named.append(change)
    if replace:
        return [_plain(change) for change in named]
    for change in named:
        place = next((i for i, item in enumerate(items) if item.get(key) == change[key]), None)
        if place is None:
            items.append(_plain(change))
        else:
            items[place] = _merge_map(items[place], change, field, rules)
    return _ordered(items, named, rule, original)


def _no_merge_key(item: dict[str, Any], key: str) -> ApiError:
    # The real server has no better answer than 500 here either.
    return ApiError(500, "", f"map: {item} does not contain declared merge key: {key}")


def _ordered(items: list[Any], order: list[Any], rule: ListRule, original: object) -> list[Any]:
    """Items the patch names in its order, the others in the place they had among them."""

    def identity(item: Any) -> Any:
        return item.get(rule.merge_key) if rule.merge_key and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    before = [identity(item) for item in original] if isinstance(original, list) else []
    named = sorted((item for item in items if identity(item) in wanted), key=lambda i: wanted.index(identity(i)))
    others = [item for item in items if identity(item) not in wanted]
    result: list[Any] = []
    while named and others:
        mine, theirs = identity(named[0]), identity(others[0])
        # An item that the object did not have yet goes to the front, as with the real server.
        waits = mine in before and theirs in before and before.index(theirs) < before.index(mine)
        result.append(others.pop(0) if waits else named.pop(0))
    return result + named + others
