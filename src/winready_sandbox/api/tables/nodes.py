"""Nodes: readiness, roles and what they run."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.objects import Object
from winready_sandbox.api.tables.columns import NONE, UNKNOWN, Layout, age, columns, name_of, part

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"


def _cells(node: Object) -> list[Any]:
    info = part(node, "status", "nodeInfo") or {}
    return [
        name_of(node),
        _status(node),
        ",".join(_roles(node)) or NONE,
        age(node),
        info.get("kubeletVersion", ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _status(node: Object) -> str:
    conditions = part(node, "status", "conditions") or []
    ready = next((each for each in conditions if each.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if part(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Object) -> list[str]:
    roles = set()
    for label, value in (node["metadata"].get("labels") or {}).items():
        if label.startswith(ROLE_PREFIX) and len(label) > len(ROLE_PREFIX):
            roles.add(label.removeprefix(ROLE_PREFIX))
        elif label == ROLE_LABEL and value:
            roles.add(value)
    return sorted(roles)


def _address(node: Object, kind: str) -> str:
    addresses = part(node, "status", "addresses") or []
    return next((each["address"] for each in addresses if each.get("type") == kind), NONE)


NODES = {
    ("", "nodes"): Layout(
        columns(
            "Name | Status | Roles | Age | Version | Internal-IP+ | External-IP+ | OS-Image+ | Kernel-Version+ "
            "| Container-Runtime+"
        ),
        _cells,
    )
}
