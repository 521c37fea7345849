"""Releases of Kubernetes for a Windows worker: which may stand beside which API server, and what changed in them."""

from __future__ import annotations

import re

from winready.node.parameters import ParametersError, Paths
from winready.spec.versions import Version, is_release, release_order

OLDEST = Version(1, 26)
"""HostProcess containers are stable from here on; kube-proxy and Flannel rest on them."""
OLDER_BY = 3
RUNTIME_PIPE = "npipe:////./pipe/containerd-containerd"
REMOVED_FLAGS = {
    24: ("cni-bin-dir", "cni-cache-dir", "cni-conf-dir", "docker-endpoint", "image-pull-progress-deadline",
         "network-plugin", "network-plugin-mtu"),
    26: ("log-dir", "log-file", "log-file-max-size", "logtostderr"),
    27: ("container-runtime", "master-service-namespace"),
    31: ("iptables-drop-bit", "iptables-masquerade-bit", "keep-terminated-pod-volumes"),
    34: ("cloud-config", "register-schedulable"),
    35: ("pod-infra-container-image",),
}  # fmt: skip
"""By minor version: flags that the kubelet refuses from there on."""
_VENDOR = re.compile(r"(\d+\.\d+\.\d+)(?:[-+](?!(?:alpha|beta|rc)\.).*)?")


def plain_release(text: str) -> str:
    """``1.34.2`` of ``v1.34.2``, ``v1.34.2-gke.100`` and ``v1.34.2+k3s1``; pre-releases keep their name."""
    bare = text.strip().removeprefix("v")
    match = _VENDOR.fullmatch(bare)
    return match[1] if match else bare.partition("+")[0]


def check_release(release: str, server: str) -> None:
    """Refuse what cannot join: too old for these scripts, newer than the API server, or too far behind it."""
    if not is_release(release):
        raise ParametersError(f"{release[:60]!r} is not a release of Kubernetes", "write it like 1.36.3")
    version = Version.parse(release)
    if version < OLDEST:
        raise ParametersError(
            f"Kubernetes {release} is too old: HostProcess containers, which kube-proxy and Flannel run in, are stable "
            f"from {OLDEST} on",
            f"choose {OLDEST} or newer",
        )
    if not server:
        return
    try:
        host = Version.parse(server)
    except ValueError:
        raise ParametersError(
            f"the API server does not say which Kubernetes it is: {server[:60]!r}", "look at it with 'kubectl version'"
        ) from None
    if (host.major, host.minor) < (version.major, version.minor):
        raise ParametersError(
            f"a kubelet {release} is newer than the API server ({server}), which Kubernetes does not allow",
            f"choose {host} or older, or upgrade the control plane first",
        )
    if host.minor - version.minor > OLDER_BY:
        raise ParametersError(
            f"a kubelet {release} is {host.minor - version.minor} minor versions older than the API server ({server}); "
            f"{OLDER_BY} are allowed",
            f"choose {host.major}.{host.minor - OLDER_BY} or newer",
        )


def newer(one: str, other: str) -> str:
    """The newer of two releases."""
    return max(one, other, key=release_order)


def removed_flags(release: str) -> list[str]:
    """Names of flags that the kubelet of this release no longer knows."""
    minor = Version.parse(release).minor
    return sorted(name for since, names in REMOVED_FLAGS.items() if since <= minor for name in names)


def kubelet_flags(release: str, paths: Paths, pause: str, labels: dict[str, str], taints: list[str]) -> list[str]:
    """How the kubelet of this release is started on Windows, one argument each."""
    flags = [
        "--windows-service",
        rf"--config={paths.kubelet}\config.yaml",
        rf"--bootstrap-kubeconfig={paths.kubernetes}\bootstrap-kubelet.conf",
        rf"--kubeconfig={paths.kubernetes}\kubelet.conf",
        rf"--cert-dir={paths.kubelet}\pki",
        f"--root-dir={paths.kubelet}",
        "--hostname-override={node}",
        f"--container-runtime-endpoint={RUNTIME_PIPE}",
        # What Windows does not have and complains about; the cluster's kubelet configuration is written for Linux.
        "--cgroups-per-qos=false",
        "--enforce-node-allocatable=",
        "--resolv-conf=",
    ]
    if Version.parse(release).minor < 27:
        flags.append(f"--pod-infra-container-image={pause}")
    if labels:
        flags.append("--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items()))
    if taints:
        flags.append("--register-with-taints=" + ",".join(taints))
    return flags


def join_api(release: str) -> str:
    """The version of kubeadm's configuration that this release reads without a warning."""
    return "kubeadm.k8s.io/v1beta4" if Version.parse(release).minor >= 31 else "kubeadm.k8s.io/v1beta3"
