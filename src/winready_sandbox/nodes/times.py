"""Timestamps as API objects carry them: wall time, UTC."""

from __future__ import annotations

from datetime import datetime

from winready_sandbox.clock import utc_now


def stamp(when: datetime | None = None) -> str:
    """Whole seconds."""
    return (when or utc_now()).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro(when: datetime | None = None) -> str:
    """Microseconds, as leases carry them."""
    return (when or utc_now()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def nano(when: datetime) -> str:
    """Nanoseconds, as log lines carry them."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


def read(text: str) -> datetime:
    """A timestamp of an API object or of a query."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
