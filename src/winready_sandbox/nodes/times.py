"""Timestamps as API objects carry them: wall time, UTC.

There are thousands of them, and ``strftime`` costs several times as much as cutting off what it would leave out.
"""

from __future__ import annotations

from datetime import datetime

from winready_sandbox.clock import utc_now


def stamp(when: datetime | None = None) -> str:
    """Whole seconds."""
    return f"{(when or utc_now()).isoformat()[:19]}Z"


def micro(when: datetime | None = None) -> str:
    """Microseconds, as leases carry them."""
    return f"{(when or utc_now()).isoformat(timespec='microseconds')[:26]}Z"


def nano(when: datetime) -> str:
    """Nanoseconds, as log lines carry them."""
    return f"{when.isoformat(timespec='microseconds')[:26]}000Z"


def read(text: str) -> datetime:
    """A timestamp of an API object or of a query."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
