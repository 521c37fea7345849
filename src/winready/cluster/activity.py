"""What a run is doing right now, for whoever watches it: a sentence for each check, of which only the last is kept.

Nothing is judged by it and no record has it, so whoever does something says so and goes on, watched or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_seen: ContextVar[dict[str, str] | None] = ContextVar("what everybody does", default=None)
_who: ContextVar[str] = ContextVar("who works", default="")


def watch() -> dict[str, str]:
    """From now on in this task and its children: by name, what everybody who works is doing."""
    seen: dict[str, str] = {}
    _seen.set(seen)
    return seen


@contextmanager
def working(name: str) -> Iterator[None]:
    """Whatever is done in here, is done by ``name``."""
    token = _who.set(name)
    try:
        yield
    finally:
        _who.reset(token)
        if (seen := _seen.get()) is not None:
            seen.pop(name, None)


def doing(what: str) -> None:
    """Say what begins."""
    if (seen := _seen.get()) is not None and (name := _who.get()):
        seen[name] = what
