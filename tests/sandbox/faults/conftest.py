"""Faults are tried in virtual time: what is seen does not depend on how busy the machine is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from winready_sandbox.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops of the tests in this folder."""
    return {"virtual time": VirtualTimeLoop}
