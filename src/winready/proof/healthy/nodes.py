"""Sound clusters whose nodes are different: how many, which builds and versions, what they are called and can do."""

from __future__ import annotations

from winready.engine.terms import SMALL_CLUSTER
from winready.proof.expected.names import WINDOWS_CORE
from winready.proof.healthy.model import Scene, Variant
from winready.proof.healthy.scenery import cordon, label, taint

CLOUD = "eu-central-1.compute.internal"


async def usual_taint(scene: Scene) -> None:
    """As most hybrid clusters keep Linux pods off Windows nodes."""
    for node in scene.names("windows"):
        taint(scene, node, "os", "windows", "NoSchedule")


async def own_taints(scene: Scene) -> None:
    """Node pools of two teams, and a node that an autoscaler would rather remove."""
    first, second = scene.names("windows")[:2]
    taint(scene, first, "dedicated", "billing", "NoSchedule")
    taint(scene, second, "dedicated", "billing", "NoExecute")
    taint(scene, second, "DeletionCandidateOfClusterAutoscaler", "1731700000", "PreferNoSchedule")


async def one_cordoned(scene: Scene) -> None:
    """Somebody is about to repair a node."""
    cordon(scene, scene.names("windows")[-1])


async def labelled(scene: Scene) -> None:
    """Zones, pools, roles, and annotations of people who do not write English."""
    for number, node in enumerate(scene.names("windows") + scene.names("linux")):
        label(
            scene,
            node,
            {"topology.kubernetes.io/zone": f"eu-central-1{'abc'[number % 3]}", "agentpool": f"pool{number % 2}"},
            {"contact": "Zuständig: 運用チーム", "note": 'quotes " and\nlines'},
        )


NODES = (
    Variant(
        "nodes.three-of-each",
        "Three nodes of each system.",
        "windows-facts 2.1: as many fixtures as nodes",
        {"linux": 3, "windows": 3},
    ),
    Variant(
        "nodes.twelve-windows",
        "Twelve Windows nodes in three zones, all judged.",
        "kubernetes.io: Considerations for large clusters",
        {"windows": 12},
        prepare=labelled,
    ),
    Variant(
        "nodes.one-windows",
        "One Windows node: too few by the rule, and the operator says so.",
        "the standard: rule.cluster-size",
        {"windows": 1},
        waived=(SMALL_CLUSTER,),
        unjudged="K1 K2 S6 P7 X5",
    ),
    Variant(
        "nodes.server-2019",
        "Windows Server 2019.",
        "windows-facts 1.5: session affinity since 2022",
        {"windows_build": "2019"},
        unjudged="X1 X2 X3 X4 X5",
    ),
    Variant(
        "nodes.server-2025",
        "Windows Server 2025.",
        "kubernetes.io: Windows containers in Kubernetes, supported versions",
        {"windows_build": "2025"},
        windows_builds="current",
        features="ws2025",
        long="S6",
    ),
    Variant(
        "nodes.mixed-builds",
        "Windows Server 2019 and 2022 side by side.",
        "windows-facts 1.2: images follow the build of the node",
        {"windows_build": "2019,2022"},
        long="C1",
    ),
    Variant(
        "nodes.mixed-newer-builds",
        "Windows Server 2022 and 2025 side by side.",
        "windows-facts 1.1: a 2022 image on a 2025 host is legal",
        {"windows_build": "2022,2025"},
        windows_builds="current",
    ),
    Variant(
        "nodes.draft-builds",
        "Windows Server, versions 1909 and 2004: in the draft's list, and the images of the standard have left them.",
        "images.yaml: builds 18363 and 19041 were dropped from test images after 2021",
        {"windows_build": "18363,19041"},
        windows_builds="draft",
        blocked=WINDOWS_CORE,
        says="no match for platform",
    ),
    Variant(
        "nodes.usual-taint",
        "Windows nodes are tainted os=windows:NoSchedule.",
        "kubernetes.io: Guide for Running Windows Containers in Kubernetes, taints and tolerations",
        prepare=usual_taint,
    ),
    Variant(
        "nodes.own-taints",
        "Windows nodes carry taints of their operators, NoSchedule, NoExecute and PreferNoSchedule.",
        "kubernetes.io: Taints and Tolerations, dedicated nodes",
        prepare=own_taints,
        tolerate=("dedicated=billing",),
        long="S6 C1",
    ),
    Variant(
        "nodes.cordoned",
        "One of three Windows nodes is cordoned.",
        "kubernetes.io: Safely Drain a Node",
        {"windows": 3},
        prepare=one_cordoned,
    ),
    Variant(
        "nodes.full-names",
        "Nodes are called by their full names in a cloud.",
        "kubernetes.io: Nodes, node name uniqueness; Amazon EKS names nodes by their private DNS names",
        {"node_domain": CLOUD},
    ),
    Variant(
        "nodes.labels-and-annotations",
        "Nodes have zones, pools and annotations beyond ASCII.",
        "kubernetes.io: Well-Known Labels",
        prepare=labelled,
    ),
    Variant(
        "nodes.small",
        "Windows nodes have two processors and eight GiB.",
        "windows-facts 2.1: requests of 50m and 100Mi",
        {"cores": 2, "memory": 8},
    ),
    Variant(
        "nodes.oldest-kubernetes",
        "Kubernetes 1.24 and containerd 1.6.",
        "windows-facts 1.4: HostProcess containers of containerd 1.6",
        {"kubernetes": "1.24", "containerd": "1.6.36"},
        long="S6 P7",
    ),
    Variant(
        "nodes.newest-kubernetes",
        "Kubernetes 1.37 and containerd 2.2.",
        "kubernetes.io: Releases",
        {"kubernetes": "1.37", "containerd": "2.2.0"},
    ),
    Variant(
        "nodes.containerd-1-7",
        "containerd 1.7.",
        "windows-facts 1.4: the bind filter since containerd 1.7",
        {"containerd": "1.7.27"},
    ),
    Variant(
        "nodes.dual-stack",
        "Both IP families.",
        "kubernetes.io: IPv4/IPv6 dual-stack",
        {"dual_stack": True},
        whole=True,
    ),
    Variant(
        "nodes.hyper-v",
        "Windows nodes can isolate pods by Hyper-V, and a RuntimeClass offers it.",
        "windows-facts 1.1: Hyper-V isolation is legal",
        {"hyper_v": True},
    ),
    Variant(
        "nodes.graceful-shutdown",
        "A node that shuts down gives its pods a minute.",
        "kubernetes.io: Node Shutdowns, graceful node shutdown on Windows since 1.32",
        {"shutdown_grace": 60.0, "shutdown_grace_critical": 20.0},
        long="S6 P7",
    ),
    Variant(
        "nodes.slow-pulls",
        "A Windows image takes 14 minutes to arrive.",
        "windows-facts 2.1: 15 minutes for a cold pull",
        {"pull_seconds": 840.0},
    ),
)
