"""A network per test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sandbox.network.helpers import small_cluster
from winready_sandbox.network.fabric import Fabric


@pytest.fixture
async def fabric() -> AsyncIterator[Fabric]:
    """Two Linux and two Windows nodes, IPv4."""
    network = small_cluster()
    yield network
    network.close()


@pytest.fixture
async def dual() -> AsyncIterator[Fabric]:
    """The same with both families."""
    network = small_cluster(dual_stack=True)
    yield network
    network.close()
