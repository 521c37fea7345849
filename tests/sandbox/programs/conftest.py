"""A network per test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sandbox.network.helpers import small_cluster
from winready_sandbox.network.fabric import Fabric


@pytest.fixture
async def fabric() -> AsyncIterator[Fabric]:
    """Two Linux and two Windows nodes."""
    network = small_cluster()
    yield network
    network.close()
