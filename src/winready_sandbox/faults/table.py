"""The table of all faults."""

from __future__ import annotations

import difflib

from winready_sandbox.faults.control_plane import CONTROL_PLANE_FAULTS
from winready_sandbox.faults.dns import DNS_FAULTS
from winready_sandbox.faults.identity import IDENTITY_FAULTS
from winready_sandbox.faults.kubelets import KUBELET_FAULTS
from winready_sandbox.faults.links import LINK_FAULTS
from winready_sandbox.faults.machines import MACHINE_FAULTS
from winready_sandbox.faults.model import Fault
from winready_sandbox.faults.policies import POLICY_FAULTS
from winready_sandbox.faults.reboots import REBOOT_FAULTS
from winready_sandbox.faults.runtimes import RUNTIME_FAULTS
from winready_sandbox.faults.service_proxy import SERVICE_PROXY_FAULTS
from winready_sandbox.faults.volumes import VOLUME_FAULTS
from winready_sandbox.faults.workloads import WORKLOAD_FAULTS

PARTS: dict[str, tuple[Fault, ...]] = {
    "service_proxy": SERVICE_PROXY_FAULTS,
    "dns": DNS_FAULTS,
    "links": LINK_FAULTS,
    "policies": POLICY_FAULTS,
    "kubelets": KUBELET_FAULTS,
    "reboots": REBOOT_FAULTS,
    "runtimes": RUNTIME_FAULTS,
    "machines": MACHINE_FAULTS,
    "identity": IDENTITY_FAULTS,
    "volumes": VOLUME_FAULTS,
    "control_plane": CONTROL_PLANE_FAULTS,
    "workloads": WORKLOAD_FAULTS,
}
"""The faults of each part of a cluster."""
FAULTS: dict[str, Fault] = {fault.name: fault for faults in PARTS.values() for fault in faults}


class UnknownFault(ValueError):
    """A fault that is not in the table; the message names the nearest."""


def find(name: str) -> Fault:
    """The fault of that name."""
    if name not in FAULTS:
        near = difflib.get_close_matches(name, FAULTS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownFault(f"there is no fault {name!r}{hint} ('winready sandbox faults' lists them)")
    return FAULTS[name]
