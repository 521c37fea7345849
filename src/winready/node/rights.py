"""The rights that ``winready node`` needs, by command, so that nobody has to grant more than is used."""

from __future__ import annotations

from winready.cluster.client import Object
from winready.node.addons import NAMESPACE
from winready.node.joining import KUBE_PUBLIC, KUBE_SYSTEM

RBAC = "rbac.authorization.k8s.io"
WRITE = ["get", "list", "create", "patch", "delete"]
Rules = list[dict[str, list[str]]]


def _rule(group: str, resources: list[str], verbs: list[str], names: list[str] | None = None) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **({"resourceNames": names} if names else {})}


RIGHTS: dict[tuple[str, str], Rules] = {
    ("join-command", KUBE_PUBLIC): [_rule("", ["configmaps"], ["get"], ["cluster-info"])],
    ("join-command", KUBE_SYSTEM): [_rule("", ["secrets"], ["create"])],
    ("addons", ""): [
        _rule("", ["namespaces", "serviceaccounts", "configmaps"], WRITE),
        _rule("apps", ["daemonsets"], WRITE),
        # What others keep in the namespace is looked for before it is deleted.
        _rule("apps", ["deployments", "statefulsets"], ["list"]),
        _rule("", ["pods", "services"], ["get", "list"]),
        _rule(RBAC, ["clusterroles", "clusterrolebindings"], WRITE),
        _rule(RBAC, ["clusterroles"], ["bind"], ["system:node-proxier", f"{NAMESPACE}:flannel"]),
        # Nobody may grant what he does not have: these are the rights of Flannel.
        _rule("", ["nodes"], ["get", "list", "watch"]),
        _rule("", ["nodes/status"], ["patch"]),
        _rule(
            "admissionregistration.k8s.io",
            ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
            WRITE,
        ),
        _rule("networking.k8s.io", ["servicecidrs"], ["list"]),
    ],
    ("preflight", ""): [
        _rule("", ["nodes"], ["list"]),
        _rule("", ["services", "configmaps"], ["get"]),
        _rule("networking.k8s.io", ["servicecidrs"], ["list"]),
        _rule("apps", ["daemonsets"], ["list"]),
    ],
    ("preflight", KUBE_SYSTEM): [_rule("", ["secrets"], ["list"])],
    ("drain", ""): [
        _rule("", ["nodes"], ["get", "list", "patch"]),
        _rule("", ["pods"], ["get", "list"]),
        _rule("", ["pods/eviction"], ["create"]),
    ],
    ("remove", ""): [_rule("", ["nodes"], ["get", "list", "delete"]), _rule("", ["pods"], ["list"])],
}
"""By command and the namespace that its rights end at; empty: the whole cluster."""


def manifest(name: str, namespace: str, user: str | None) -> list[Object]:
    """One role and binding for each command; 'verify' needs the rights of a run instead."""
    subject: Object = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    found: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
    ]
    if user:
        subject, found = {"kind": "User", "name": user, "apiGroup": RBAC}, []
    for (command, space), rules in RIGHTS.items():
        kind = "Role" if space else "ClusterRole"
        metadata = {"name": f"{name}-node-{command}", **({"namespace": space} if space else {})}
        found.append({"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules})
        role = {"apiGroup": RBAC, "kind": kind, "name": metadata["name"]}
        found.append(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": role,
                "subjects": [subject],
            }
        )
    return found
