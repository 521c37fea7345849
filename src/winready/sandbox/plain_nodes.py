"""Nodes as mere objects: registered and ready, with nothing behind them."""

from __future__ import annotations

import datetime
from typing import Any

from winready.sandbox.plan import WINDOWS, NodePlan

CAPACITY = {"cpu": "4", "ephemeral-storage": "100Gi", "memory": "16Gi", "pods": "110"}


def plain_node(plan: NodePlan, minor: int) -> dict[str, Any]:
    """The Node object that a kubelet of that operating system would register."""
    windows = plan.os == WINDOWS
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": plan.name,
        "kubernetes.io/os": plan.os,
    }
    if windows:
        labels["node.kubernetes.io/windows-build"] = f"10.0.{plan.build}"
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    info = {
        "architecture": "amd64",
        "operatingSystem": plan.os,
        "osImage": "Windows Server 2022 Datacenter" if windows else "Debian GNU/Linux 12 (bookworm)",
        "kernelVersion": f"10.0.{plan.build}.2700" if windows else "6.1.0-18-amd64",
        "containerRuntimeVersion": "containerd://1.7.27",
        "kubeletVersion": f"v1.{minor}.0",
        "kubeProxyVersion": f"v1.{minor}.0",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": plan.name, "labels": labels},
        "spec": {"podCIDR": plan.pod_cidr, "podCIDRs": [plan.pod_cidr]},
        "status": {
            "capacity": CAPACITY,
            "allocatable": CAPACITY,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": plan.address}, {"type": "Hostname", "address": plan.name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": info,
        },
    }
