"""Faults of network policy engines."""

from __future__ import annotations

from winready_sandbox.faults.model import Fault

POLICY_FAULTS = (
    Fault(
        "policy.windows.not-enforced",
        "Network policies have no effect on the pods of one Windows node.",
        "network.policy",
        {"not_enforced": True},
        fact="briefs K1 and K2",
    ),
    Fault(
        "policy.windows.blocks-all",
        "A pod that any network policy selects is cut off altogether on one Windows node.",
        "network.policy",
        {"block_all": True},
        fact="briefs K1 and K2",
    ),
    Fault(
        "policy.windows.namespaces-ignored",
        "Namespace selectors of network policies count as met by every namespace on one Windows node.",
        "network.policy",
        {"namespaces_ignored": True},
        fact="brief K2",
    ),
    Fault(
        "policy.windows.pods-ignored",
        "Pod selectors of network policies count as met by every pod of the namespace on one Windows node.",
        "network.policy",
        {"pods_ignored": True},
        fact="brief K1",
    ),
    Fault(
        "policy.windows.never-removed",
        "A network policy that was deleted stays in force on one Windows node.",
        "network.policy",
        {"never_removed": True},
        fact="briefs K1 and K2: all allowed again once the policy is removed",
    ),
    Fault(
        "policy.windows.same-node-let-in",
        "Network policies have no effect between pods of one and the same Windows node.",
        "network.policy",
        {"same_node_let_in": True},
        fact="issue projectcalico/calico#4078: still reached from a pod of the same Windows node; brief K1",
    ),
    Fault(
        "policy.windows.egress-ignored",
        "What network policies say of outgoing connections has no effect on one Windows node.",
        "network.policy",
        {"egress_ignored": True},
        fact="issue projectcalico/calico#4289: egress of Windows pods not blocked",
    ),
    Fault(
        "policy.windows.chosen-pods-kept-out",
        "Pod selectors of network policies find nobody on one Windows node: allowed pods are kept out, too.",
        "network.policy",
        {"pods_unknown": True},
        fact="issue projectcalico/calico#5800: with a podSelector nobody reaches the Windows pod",
    ),
    Fault(
        "policy.windows.chosen-namespaces-kept-out",
        "Namespace selectors of network policies find nobody on one Windows node: allowed ones are kept out, too.",
        "network.policy",
        {"namespaces_unknown": True},
        fact="issue projectcalico/calico#4936: a namespaceSelector cuts Windows pods off",
    ),
    Fault(
        "policy.windows.late",
        "Changes of network policies take three minutes on one Windows node.",
        "network.policy",
        {"late": 180.0},
        fact="issue Azure/azure-container-networking#1614: a minute or more to apply; brief K1: 60 s before fail",
    ),
    Fault(
        "policy.windows.removed-late",
        "A network policy that was deleted stays in force for a minute and a half on one Windows node.",
        "network.policy",
        {"removed_late": 90.0},
        fact="issue Azure/azure-container-networking#1614: a minute or more for HNS; brief K1: all allowed again",
    ),
    Fault(
        "policy.windows.lost-later",
        "A network policy is no longer in force two minutes after it was made or changed, on one Windows node.",
        "network.policy",
        {"lost_after": 120.0},
        fact="issues projectcalico/calico#5164, Azure/azure-container-networking#1568: HNS or the agent forgets",
    ),
    Fault(
        "policy.windows.later-pods-missed",
        "Pods that start on one Windows node after a network policy came into force are not covered by it.",
        "network.policy",
        {"later_pods_missed": True},
        fact="issue Azure/AKS#2996: a policy not applied at the beginning of a pod's life",
    ),
    Fault(
        "policy.windows.labels-stale",
        "To network policies on one Windows node other pods keep the labels that they started with.",
        "network.policy",
        {"labels_stale": True},
        fact="issue Azure/azure-container-networking#1613: policies stop to be updated after a label was removed",
    ),
    Fault(
        "policy.windows.updates-missed",
        "A network policy that is changed stays in force as it was on one Windows node.",
        "network.policy",
        {"updates_missed": True},
        fact="issue Azure/azure-container-networking#1613: policy events are queued again for ever",
    ),
)
