"""Label selectors as network policies use them."""

from __future__ import annotations

from typing import Any


def matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether labels meet a selector; the empty selector is met by everything."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(expression, labels) for expression in selector.get("matchExpressions") or [])


def _meets(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
