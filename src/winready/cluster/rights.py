"""The rights that a run needs, no more: as a role to grant, and as a list to ask for beforehand."""

from __future__ import annotations

from typing import Any

from winready.cluster.client import Client
from winready.cluster.directory import ActiveDirectory
from winready.cluster.resources import ACCESS_REVIEWS

RBAC = "rbac.authorization.k8s.io"
READ = ["get", "list", "watch"]
WRITE = [*READ, "create", "delete", "patch"]
RULES: list[dict[str, list[str]]] = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": READ},
    {"apiGroups": [""], "resources": ["nodes/proxy", "nodes/configz", "nodes/stats"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": WRITE},
    {"apiGroups": [""], "resources": ["pods", "services", "configmaps"], "verbs": WRITE},
    # A run writes secrets of its own and reads nobody's.
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": READ},
    {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": WRITE},
    {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": READ},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices", "endpointslices/restricted"], "verbs": WRITE},
    # Those of others in a run's namespaces are looked for and answered; some requirements are about policies.
    {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": WRITE},
    {"apiGroups": [""], "resources": ["limitranges"], "verbs": READ},
    {"apiGroups": ["windows.k8s.io"], "resources": ["gmsacredentialspecs"], "verbs": READ},
    {"apiGroups": [RBAC], "resources": ["clusterroles", "clusterrolebindings"], "verbs": READ},
]
CLEANUP_RULES: list[dict[str, list[str]]] = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": READ},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": [*READ, "create", "delete"]},
    # A pod on each Windows node looks for folders of runs and removes them.
    {"apiGroups": [""], "resources": ["pods"], "verbs": [*READ, "create"]},
    {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": READ},
    {"apiGroups": [RBAC], "resources": ["clusterroles", "clusterrolebindings"], "verbs": READ},
]
"""What ``winready cleanup`` needs; the rights of a run include it."""
NEEDED = (
    ("", "nodes", "", "list"),
    ("", "namespaces", "", "create"),
    ("", "namespaces", "", "delete"),
    ("", "pods", "", "create"),
    ("", "pods", "", "watch"),
    ("", "pods", "exec", "create"),
    ("", "services", "", "create"),
    ("", "configmaps", "", "create"),
    ("", "secrets", "", "create"),
    ("apps", "deployments", "", "create"),
    ("apps", "statefulsets", "", "create"),
    ("discovery.k8s.io", "endpointslices", "", "create"),
)
"""What no run can do without; asked for before anything is created."""


def directory_rules(directory: ActiveDirectory) -> list[dict[str, list[str]]]:
    """What a run needs besides to let pods of its own log on to a domain: nobody may grant what he does not have."""
    rules: list[dict[str, list[str]]] = [
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"]},
        {"apiGroups": [RBAC], "resources": ["rolebindings"], "verbs": ["create"]},
    ]
    if directory.cluster_role:
        named = {"resources": ["clusterroles"], "resourceNames": [directory.cluster_role], "verbs": ["bind"]}
        return [*rules, {"apiGroups": [RBAC], **named}]
    specs = {"resources": ["gmsacredentialspecs"], "resourceNames": directory.credential_specs, "verbs": ["use"]}
    role = {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["create"]}
    return [*rules, role, {"apiGroups": ["windows.k8s.io"], **specs}]


def manifest(
    name: str, namespace: str, user: str | None, purpose: str = "run", directory: ActiveDirectory | None = None
) -> list[dict[str, Any]]:
    """A cluster role with the least rights for a run, or for cleaning up after runs, and its binding."""
    rules = CLEANUP_RULES if purpose == "cleanup" else RULES
    if directory is not None:
        rules = [*rules, *directory_rules(directory)]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    subject: dict[str, str] = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    if user:
        subject = {"kind": "User", "name": user, "apiGroup": RBAC}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [subject],
    }
    if user:
        return [role, binding]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    return [space, account, role, binding]


async def missing_rights(client: Client) -> list[str]:
    """The rights of `NEEDED` that the cluster does not grant us."""
    missing = []
    for group, resource, subresource, verb in NEEDED:
        attributes = {"group": group, "resource": resource, "verb": verb}
        if subresource:
            attributes["subresource"] = subresource
        review = await client.create(ACCESS_REVIEWS, {"spec": {"resourceAttributes": attributes}})
        if not (review.get("status") or {}).get("allowed"):
            name = f"{resource}/{subresource}" if subresource else resource
            missing.append(f"{verb} {name}" + (f" ({group})" if group else ""))
    return missing
