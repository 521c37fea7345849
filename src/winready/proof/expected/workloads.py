"""Who notices faults of what pods may ask for beyond the standard: features of the matrix, and no requirement."""

from __future__ import annotations

from winready.proof.expected.model import Expectation

WORKLOAD = {
    "kubelet.windows.probes-ignored": Expectation(
        features="probes startup-probes grpc-probes lifecycle-hooks termination-grace-period sidecars"
    ),
    "kubelet.windows.grace-ignored": Expectation(features="termination-grace-period"),
    "kubelet.windows.hooks-ignored": Expectation(features="lifecycle-hooks"),
    "kubelet.windows.ephemeral-ignored": Expectation(features="ephemeral-containers"),
    "kubelet.windows.sidecars-stay-down": Expectation(features="sidecars"),
    "kubelet.windows.no-service-variables": Expectation(features="svc-headless-env"),
    "kubelet.windows.host-address-missing": Expectation(features="pod-status"),
    "node.windows.offers-huge-pages": Expectation(features="hugepages"),
    "node.windows.names-docker": Expectation(features="dockershim containerd"),
    "runtime.windows.root-let-in": Expectation(features="run-as-non-root"),
    "runtime.windows.host-network-for-all": Expectation(features="host-network"),
    "runtime.windows.last-words-lost": Expectation(features="single-file-mounts"),
    "volumes.windows.subpath-ignored": Expectation(features="subpath subpath-secret"),
    "volumes.windows.modes-kept": Expectation(features="default-mode"),
    "service-proxy.windows.external-policy-ignored": Expectation(features="local-traffic-policy"),
    "service-proxy.windows.internal-policy-ignored": Expectation(features="internal-traffic-policy"),
    "service-proxy.windows.affinity-ignored": Expectation(features="session-affinity"),
}
