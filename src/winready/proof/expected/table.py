"""The table of all expectations."""

from __future__ import annotations

from winready.proof.expected.control_plane import CONTROL_PLANE
from winready.proof.expected.model import HARMLESS, Expectation
from winready.proof.expected.network import NETWORK
from winready.proof.expected.nodes import NODES
from winready.proof.expected.volumes import VOLUMES

HEALTHY = "(healthy)"
"""Stands where the name of a fault would: nothing is broken, and everything must pass."""
EXPECTATIONS: dict[str, Expectation] = {HEALTHY: HARMLESS, **NETWORK, **NODES, **VOLUMES, **CONTROL_PLANE}
"""By the name of the fault."""


def expected(fault: str) -> Expectation:
    """What is expected when a cluster has the fault of that name."""
    if fault not in EXPECTATIONS:
        raise ValueError(
            f"nobody is expected to notice {fault!r}, nor to survive it: say so in winready/proof/expected"
        )
    return EXPECTATIONS[fault]
