"""Sound clusters whose names and links are different."""

from __future__ import annotations

from winready.proof.healthy.model import Scene, Variant

RKE2_DNS = "rke2-coredns-rke2-coredns"
LOSS, LATENCY = 0.03, 0.04
"""Of every packet to and from Windows nodes, and one way in seconds: a cluster that spans two sites."""


async def two_sites(scene: Scene) -> None:
    """Packets take their time, and some do not arrive."""
    for node in scene.names("windows"):
        link = scene.sandbox.fabric.nodes[node].defects.link
        link.packet_loss, link.latency = LOSS, LATENCY


async def rename_dns(scene: Scene) -> None:
    """Cluster DNS at the address that kubelets give to pods, behind a service with another name."""
    old = scene.api.get("services", "kube-dns", "kube-system")
    scene.api.delete("services", "kube-dns", "kube-system")
    spec = {key: old["spec"][key] for key in ("selector", "clusterIP", "ports")}
    labels = {"k8s-app": "kube-dns", "app.kubernetes.io/name": "rke2-coredns"}
    made = {"metadata": {"name": RKE2_DNS, "labels": labels}, "spec": spec}
    scene.api.create("services", made, "kube-system")


NETWORK = (
    Variant(
        "network.cluster-domain",
        "The cluster's own names end in another domain, and kubelets do not show their configuration.",
        "kubernetes.io: DNS for Services and Pods, cluster domain; Kubelet authorization, nodes/configz",
        {"cluster_domain": "k8s.example.com", "hides_configuration": True},
    ),
    Variant(
        "network.dns-service-renamed",
        f"The service of cluster DNS is called {RKE2_DNS}; its label is the usual one.",
        "RKE2: the chart rke2-coredns names its service after itself, with the label k8s-app=kube-dns",
        {"node_local_dns": True},
        prepare=rename_dns,
    ),
    Variant(
        "network.node-local-dns",
        "Linux nodes have a DNS cache of their own, Windows nodes have none.",
        "kubernetes.io: Using NodeLocal DNSCache in Kubernetes Clusters",
        {"node_local_dns": True},
    ),
    Variant(
        "network.two-sites",
        "Windows nodes are at another site: 40 ms each way, and 3 of 100 packets are lost.",
        "windows-facts 1.5: first packets may be lost, never judge a single probe",
        prepare=two_sites,
        long="S5 S6 C1",
    ),
)
