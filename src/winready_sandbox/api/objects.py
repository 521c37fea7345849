"""Small things about raw Kubernetes objects: copies, times, generated names."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from winready_sandbox.clock import utc_now

Object = dict[str, Any]

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names are made of: nothing that could spell a word."""


def fresh(value: Any) -> Any:
    """A deep copy of JSON data, several times faster than ``copy.deepcopy``."""
    if type(value) is dict:
        return {key: fresh(item) for key, item in value.items()}
    if type(value) is list:
        return [fresh(item) for item in value]
    return value


def timestamp(later: float = 0) -> str:
    """Now (or so many seconds later) as ``metav1.Time`` writes it."""
    when = utc_now() + timedelta(seconds=later) if later else utc_now()
    return f"{when.isoformat()[:19]}Z"  # much cheaper than strftime


def parse_timestamp(text: str | None) -> datetime | None:
    """Read a ``metav1.Time`` or ``MicroTime``; None for what is none."""
    try:
        return datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None


def generated_name(base: str) -> str:
    """A name made from ``metadata.generateName``."""
    return base[:58] + "".join(random.choices(_SUFFIX_LETTERS, k=5))


def ordered(obj: Object) -> Object:
    """The object with kind, apiVersion and metadata first, as the real server writes it."""
    head = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": obj["metadata"]}
    return {**head, **{key: value for key, value in obj.items() if key not in head}}
