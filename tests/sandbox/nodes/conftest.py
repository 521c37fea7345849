"""The cluster that most tests of nodes use; starting one takes a fraction of a second."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sandbox.nodes.small_cluster import Cluster, small_cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A running cluster of one Linux and two Windows nodes at the highest speed."""
    async with small_cluster() as running:
        yield running
