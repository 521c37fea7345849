"""Faults of what pods may ask for beyond the standard: probes, hooks, users, parts of volumes, ways of services."""

from __future__ import annotations

from winready_sandbox.faults.model import Fault

WORKLOAD_FAULTS = (
    Fault(
        "kubelet.windows.probes-ignored",
        "The kubelet of one Windows node takes containers for started, ready and well without probing them.",
        "node.kubelet",
        {"ignores_probes": True},
        fact="2.1: a readiness probe decides whether a pod is an endpoint; matrix: probes work as on Linux",
    ),
    Fault(
        "kubelet.windows.grace-ignored",
        "The kubelet of one Windows node kills containers at once, without their grace period.",
        "node.kubelet",
        {"graceful_stop_ignored": True},
        fact="matrix: terminationGracePeriodSeconds is honoured by containerd since 1.20",
    ),
    Fault(
        "kubelet.windows.hooks-ignored",
        "The kubelet of one Windows node runs neither postStart nor preStop hooks.",
        "node.kubelet",
        {"ignores_hooks": True},
        fact="matrix: postStart and preStop hooks work as on Linux",
    ),
    Fault(
        "kubelet.windows.ephemeral-ignored",
        "The kubelet of one Windows node never starts containers that are put into a running pod.",
        "node.kubelet",
        {"ignores_ephemeral": True},
        fact="matrix: ephemeral containers since 1.25; before, kubelets without the gate left them alone",
    ),
    Fault(
        "kubelet.windows.sidecars-stay-down",
        "A sidecar that has ended on one Windows node is not started again.",
        "node.kubelet",
        {"sidecars_stay_down": True},
        fact="matrix: native sidecars since 1.29, whose restart policy is their own",
    ),
    Fault(
        "kubelet.windows.no-service-variables",
        "Containers on one Windows node do not find services in their environment.",
        "node.kubelet",
        {"no_service_variables": True},
        fact="matrix: service variables as on Linux",
    ),
    Fault(
        "kubelet.windows.host-address-missing",
        "The kubelet of one Windows node does not tell the address of the node in the status of its pods.",
        "node.kubelet",
        {"host_address_missing": True},
        fact="matrix: pod status as on Linux; issue kubernetes/kubernetes#96670: wrong addresses in the status of pods",
    ),
    Fault(
        "node.windows.offers-huge-pages",
        "One Windows node says that it has huge pages.",
        "node.kubelet",
        {"huge_pages": "64Mi"},
        fact="matrix: Windows has no huge pages for containers",
    ),
    Fault(
        "node.windows.names-docker",
        "One Windows node names Docker as its container runtime.",
        "node.kubelet",
        {"runtime_name": "docker://24.0.9"},
        fact="matrix: dockershim is gone since 1.24; Mirantis Container Runtime with cri-dockerd remains",
    ),
    Fault(
        "runtime.windows.root-let-in",
        "One Windows node starts ContainerAdministrator where runAsNonRoot should keep it out.",
        "node.runtime",
        {"root_let_in": True},
        fact="matrix: runAsNonRoot keeps ContainerAdministrator out, in any letter case since 1.25",
    ),
    Fault(
        "runtime.windows.host-network-for-all",
        "Ordinary pods of one Windows node that ask for the network of the node get it.",
        "node.runtime",
        {"host_network_for_all": True},
        fact="matrix: the alpha gate WindowsHostNetwork of 1.26, which no runtime should act on",
    ),
    Fault(
        "runtime.windows.last-words-lost",
        "What containers on one Windows node write to their termination message is lost.",
        "node.runtime",
        {"last_words_lost": True},
        fact="matrix: mounts of single files need containerd",
    ),
    Fault(
        "volumes.windows.subpath-ignored",
        "On one Windows node a mount of a part of a volume is a mount of all of it.",
        "node.volumes",
        {"sub_paths_ignored": True},
        fact="matrix: subPath mounts since 1.23, with containerd only",
    ),
    Fault(
        "volumes.windows.modes-kept",
        "Files of volumes on one Windows node cannot be read by those whom their mode keeps out.",
        "node.volumes",
        {"modes_kept": True},
        fact="matrix: file modes of volumes are ignored",
    ),
    Fault(
        "service-proxy.windows.external-policy-ignored",
        "NodePorts of one Windows node forward to pods of other nodes although externalTrafficPolicy is Local.",
        "network.proxy",
        {"external_policy_ignored": True},
        fact="1.5: Local needs a proxy that programs it; matrix: since 1.20",
    ),
    Fault(
        "service-proxy.windows.internal-policy-ignored",
        "Cluster IPs on one Windows node lead to pods of other nodes although internalTrafficPolicy is Local.",
        "network.proxy",
        {"internal_policy_ignored": True},
        fact="matrix: internalTrafficPolicy Local since 1.27; before, the proxy of Windows did not heed it",
    ),
    Fault(
        "service-proxy.windows.affinity-ignored",
        "Session affinity has no effect on one Windows node.",
        "network.proxy",
        {"affinity_ignored": True},
        fact="matrix: affinity needs Windows Server 2022 or later",
    ),
)
