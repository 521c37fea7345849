"""Label selector objects and node selector terms, compiled once into predicates."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from winready_sandbox.api.objects import Object

Labels = Mapping[str, str]
Predicate = Callable[[Labels], bool]


def label_selector(selector: Object | None) -> Predicate:
    """A ``LabelSelector``: none selects nothing, an empty one everything."""
    if selector is None:
        return lambda labels: False
    return _compiled(json.dumps(selector, sort_keys=True))


def equality(selector: Mapping[str, str] | None) -> Predicate:
    """A plain map of labels, as services and node selectors have it."""
    pairs = list((selector or {}).items())
    return lambda labels: all(labels.get(key) == value for key, value in pairs)


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> Predicate:
    selector = json.loads(text)
    pairs = list((selector.get("matchLabels") or {}).items())
    tests = [_requirement(expression) for expression in selector.get("matchExpressions") or ()]
    if not tests:
        return lambda labels: all(labels.get(key) == value for key, value in pairs)
    return lambda labels: all(labels.get(key) == value for key, value in pairs) and all(test(labels) for test in tests)


def _requirement(expression: Object) -> Predicate:
    key, operator = expression["key"], expression["operator"]
    values = expression.get("values") or []
    chosen = frozenset(values)
    if operator == "In":
        return lambda labels: labels.get(key) in chosen
    if operator == "NotIn":
        return lambda labels: labels.get(key) not in chosen
    if operator == "Exists":
        return lambda labels: key in labels
    if operator == "DoesNotExist":
        return lambda labels: key not in labels
    if operator in ("Gt", "Lt"):
        return _comparison(key, operator == "Gt", values[0])
    return lambda labels: False


def _comparison(key: str, greater: bool, bound: str) -> Predicate:
    def test(labels: Labels) -> bool:
        try:
            value, limit = int(labels[key]), int(bound)
        except (KeyError, ValueError):
            return False
        return value > limit if greater else value < limit

    return test


def node_selector_term(term: Object) -> Callable[[Object], bool]:
    """One term of a node selector; an empty one selects nothing."""
    expressions = [_requirement(expression) for expression in term.get("matchExpressions") or ()]
    fields = [_requirement(expression) for expression in term.get("matchFields") or ()]
    if not expressions and not fields:
        return lambda node: False

    def test(node: Object) -> bool:
        meta = node["metadata"]
        labels = meta.get("labels") or {}
        return all(check(labels) for check in expressions) and all(
            check({"metadata.name": meta["name"]}) for check in fields
        )

    return test


def node_selector(terms: list[Object]) -> Callable[[Object], bool]:
    """A node selector: any of its terms."""
    tests = [node_selector_term(term) for term in terms]
    return lambda node: any(test(node) for test in tests)


def required_node_affinity(spec: Object) -> Callable[[Object], bool]:
    """What a pod demands of its node by nodeSelector and required node affinity."""
    wanted = equality(spec.get("nodeSelector"))
    required: Any = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is None:
        if not spec.get("nodeSelector"):
            return lambda node: True
        return lambda node: wanted(node["metadata"].get("labels") or {})
    matches = node_selector(required.get("nodeSelectorTerms") or [])
    return lambda node: wanted(node["metadata"].get("labels") or {}) and matches(node)


def tolerates(toleration: Object, taint: Object) -> bool:
    """Whether one toleration covers one taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    key = toleration.get("key") or ""
    if key and key != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerated(tolerations: list[Object], taint: Object) -> bool:
    """Whether any toleration covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(taints: list[Object], tolerations: list[Object], effects: tuple[str, ...]) -> Object | None:
    """The first taint of these effects that no toleration covers."""
    for taint in taints:
        if taint["effect"] in effects and not tolerated(tolerations, taint):
            return taint
    return None
