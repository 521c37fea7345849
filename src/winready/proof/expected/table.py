"""The table of all expectations."""

from __future__ import annotations

from winready.proof.expected.control_plane import CONTROL_PLANE
from winready.proof.expected.dns import DNS
from winready.proof.expected.identity import IDENTITY
from winready.proof.expected.kubelets import KUBELET
from winready.proof.expected.links import LINK
from winready.proof.expected.machines import MACHINE
from winready.proof.expected.model import HARMLESS, Expectation
from winready.proof.expected.policies import POLICY
from winready.proof.expected.reboots import REBOOT
from winready.proof.expected.runtimes import RUNTIME
from winready.proof.expected.service_proxy import SERVICE_PROXY
from winready.proof.expected.volumes import VOLUME
from winready.proof.expected.workloads import WORKLOAD

HEALTHY = "(healthy)"
"""Stands where the name of a fault would: nothing is broken, and everything must pass."""
PARTS: dict[str, dict[str, Expectation]] = {
    "service_proxy": SERVICE_PROXY,
    "dns": DNS,
    "links": LINK,
    "policies": POLICY,
    "kubelets": KUBELET,
    "reboots": REBOOT,
    "runtimes": RUNTIME,
    "machines": MACHINE,
    "identity": IDENTITY,
    "volumes": VOLUME,
    "control_plane": CONTROL_PLANE,
    "workloads": WORKLOAD,
}
"""Along the same cut as the faults."""
EXPECTATIONS: dict[str, Expectation] = {
    HEALTHY: HARMLESS,
    **{fault: expectation for part in PARTS.values() for fault, expectation in part.items()},
}
"""By the name of the fault."""


def expected(fault: str) -> Expectation:
    """What is expected when a cluster has the fault of that name."""
    if fault not in EXPECTATIONS:
        raise ValueError(
            f"nobody is expected to notice {fault!r}, nor to survive it: say so in winready/proof/expected"
        )
    return EXPECTATIONS[fault]
