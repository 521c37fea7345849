"""Fixtures that tests share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

from winready_sandbox.virtual_time import VirtualTimeLoop

# How long an example takes says how busy the machine is, nothing about the code.
settings.register_profile("winready", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("winready")


def pytest_configure(config: pytest.Config) -> None:
    """Marks of our own."""
    config.addinivalue_line("markers", "virtual_time: only waiting takes time in this test, and it costs nothing")


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of a test: whoever lets time pass to see that nothing happens should not wait for it."""
    return {"loop": VirtualTimeLoop if item.get_closest_marker("virtual_time") else asyncio.new_event_loop}
