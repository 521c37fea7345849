"""What a node says about itself: labels, addresses, capacity, node info, conditions."""

from __future__ import annotations

from typing import Any

from winready_sandbox.machine.images import Image
from winready_sandbox.machine.machine import Machine
from winready_sandbox.nodes.configuration import KUBELET_PORT, MAX_PODS, Settings
from winready_sandbox.nodes.defects import KubeletDefects
from winready_sandbox.nodes.times import stamp

Object = dict[str, Any]
_DISK = 128 * 2**30


def labels(machine: Machine, defects: KubeletDefects) -> dict[str, str]:
    """The labels that a kubelet sets on its own node."""
    os = defects.labels_os or machine.os
    result = {
        "beta.kubernetes.io/arch": machine.architecture,
        "beta.kubernetes.io/os": os,
        "kubernetes.io/arch": machine.architecture,
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": os,
        # Whoever judges this cluster must know that it is none of flesh and blood.
        "sandbox.winready.io/simulated": "true",
    }
    if machine.build is not None:
        result["node.kubernetes.io/windows-build"] = (
            defects.labels_build or defects.reports_build or machine.build.label
        )
    return result


def conditions(
    *, ready: bool, reason: str, message: str, memory_pressure: bool, previous: list[Object]
) -> list[Object]:
    """The four conditions, with the transition times of what did not change; those that others set stay."""
    now = stamp()
    wanted = [
        ("MemoryPressure", True, "KubeletHasInsufficientMemory", "kubelet has insufficient memory available")
        if memory_pressure
        else ("MemoryPressure", False, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", False, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", False, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", ready, reason, message),
    ]
    before = {item["type"]: item for item in previous}
    result = [item for item in previous if item["type"] not in {kind for kind, *_ in wanted}]
    for kind, value, why, words in wanted:
        status, old = "True" if value else "False", before.get(kind)
        since = old["lastTransitionTime"] if old and old["status"] == status else now
        result.append(
            {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since,
                "reason": why,
                "message": words,
            }
        )
    return result


def status(
    machine: Machine, addresses: list[str], images: list[Image], *, settings: Settings, defects: KubeletDefects
) -> Object:
    """The node's status without its conditions.

    There is no ``Hostname`` address: an API server prefers it over the others, and nobody resolves these names.
    """
    memory = int(machine.memory_bytes * defects.memory_share)
    reported_build = defects.reports_build
    capacity = {
        "cpu": str(machine.cores),
        "memory": f"{memory // 1024}Ki",
        "pods": str(MAX_PODS),
        "ephemeral-storage": f"{_DISK // 1024}Ki",
    }
    if defects.huge_pages:
        capacity["hugepages-2Mi"] = defects.huge_pages
    if machine.os == "linux":
        capacity |= {"hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    allocatable = capacity | {
        "memory": f"{(memory - settings.memory_threshold(machine.os)) // 1024}Ki",
        "ephemeral-storage": str(_DISK * 9 // 10),
    }
    kernel = machine.kernel_version
    if reported_build and machine.build is not None:
        kernel = f"{reported_build}.{machine.build.revision}"
    result: Object = {
        "capacity": capacity,
        "allocatable": allocatable,
        "addresses": [{"type": "InternalIP", "address": address} for address in addresses],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        "nodeInfo": {
            "machineID": machine.machine_id,
            "systemUUID": machine.system_uuid,
            "bootID": machine.boot_id,
            "kernelVersion": kernel,
            "osImage": machine.os_image,
            "containerRuntimeVersion": defects.runtime_name or machine.runtime_version,
            "kubeletVersion": settings.version,
            "kubeProxyVersion": "",
            "operatingSystem": machine.os,
            "architecture": machine.architecture,
        },
        "images": [{"names": [image.repo_digest, image.name], "sizeBytes": image.size} for image in images[:50]],
    }
    if settings.declares_features:
        # With this feature an API server hands exec through as a WebSocket; without it, it speaks SPDY to the node.
        result["declaredFeatures"] = ["ExtendWebSocketsToKubelet"]
    return result
