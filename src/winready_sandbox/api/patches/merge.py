"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any


def merge_patch(obj: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The object with the patch merged in; ``null`` takes a key away."""
    merged = dict(obj)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            present = merged.get(key)
            merged[key] = merge_patch(present if isinstance(present, dict) else {}, value)
        else:
            merged[key] = value
    return merged
