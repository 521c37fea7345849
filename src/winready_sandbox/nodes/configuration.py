"""How a kubelet is configured: what ``/configz`` shows, what is kept back from pods, when it evicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winready_sandbox import quantity
from winready_sandbox.machine.errors import OS
from winready_sandbox.versions import minor_of_build

Object = dict[str, Any]
KUBELET_PORT = 10250
MAX_PODS = 110
_WINDOWS_EVICTS_FROM = 31


@dataclass(frozen=True)
class Settings:
    """How a node is set up, beyond what its machine is."""

    version: str = "v1.36.3"
    """Of the kubelet."""
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()
    """Key, value, effect."""
    shutdown_grace: float = 0.0
    """Seconds of graceful node shutdown; 0 = a reboot ends pods without notice."""
    shutdown_grace_critical: float = 0.0
    """The last part of them, which belongs to critical pods."""
    pull_seconds: float = 0.0
    """The least that a pull of an image takes on a Windows node that does not have it yet."""
    hides_configuration: bool = False
    """Whether ``/configz`` is closed to everybody."""
    declares_features: bool = True
    sets_pod_cidr: bool = True

    def eviction_hard(self, os: OS) -> dict[str, str]:
        """The default thresholds; Windows needs more memory for itself, and kept none free before 1.31."""
        if os == "linux":
            return {
                "memory.available": "100Mi",
                "nodefs.available": "10%",
                "nodefs.inodesFree": "5%",
                "imagefs.available": "15%",
                "imagefs.inodesFree": "5%",
            }
        disks = {"nodefs.available": "10%", "imagefs.available": "15%"}
        evicts = minor_of_build(self.version) >= _WINDOWS_EVICTS_FROM
        return {"memory.available": "500Mi", **disks} if evicts else disks

    def memory_threshold(self, os: OS) -> int:
        """Bytes that must stay free: pods are evicted below, and the scheduler never gives them away."""
        return int(quantity.parse(self.eviction_hard(os).get("memory.available", 0)))


def document(settings: Settings, os: OS, *, domain: str, nameservers: list[str]) -> Object:
    """The configuration as the kubelet tells it."""
    endpoint = "npipe:////./pipe/containerd-containerd" if os == "windows" else "unix:///run/containerd/containerd.sock"
    return {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "clusterDomain": domain,
        "clusterDNS": nameservers,
        "maxPods": MAX_PODS,
        "port": KUBELET_PORT,
        "syncFrequency": "1m0s",
        "nodeStatusReportFrequency": "5m0s",
        "nodeLeaseDurationSeconds": 40,
        "evictionHard": settings.eviction_hard(os),
        "evictionPressureTransitionPeriod": "5m0s",
        "shutdownGracePeriod": f"{settings.shutdown_grace:g}s",
        "shutdownGracePeriodCriticalPods": f"{settings.shutdown_grace_critical:g}s",
        "featureGates": {},
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": endpoint,
    }
