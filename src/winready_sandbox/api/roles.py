"""The roles and bindings that every real cluster starts with, as far as anything here can ask for them.

Left out are the roles of single controllers (``system:controller:*``): the embedded controllers
work inside the process and need no rights.
"""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.identity import AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED

RBAC = "rbac.authorization.k8s.io"
AGGREGATE = f"{RBAC}/aggregate-to-"
READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_WRITE = "create delete deletecollection get list patch update watch"

Object = dict[str, Any]


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Object:
    """A rule from words; ``core`` stands for the group without a name."""
    made: Object = {
        "verbs": verbs.split(),
        "apiGroups": ["" if group == "core" else group for group in groups.split()],
        "resources": resources.split(),
    }
    if names:
        made["resourceNames"] = names.split()
    return made


def paths(*urls: str, verbs: str = "get") -> Object:
    """A rule for paths that are no resources."""
    return {"verbs": verbs.split(), "nonResourceURLs": list(urls)}


EVENTS = rule("create patch update", "core events.k8s.io", "events")
TOKEN_REVIEWS = rule("create", "authentication.k8s.io", "tokenreviews")
SUBJECT_REVIEWS = rule("create", "authorization.k8s.io", "subjectaccessreviews")
HEALTH = ("/healthz", "/livez", "/readyz")
VERSION = ("/version", "/version/")

VIEW = [
    rule(
        READ,
        "core",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
        "replicationcontrollers/scale serviceaccounts services services/status",
    ),
    rule(
        READ,
        "core",
        "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas "
        "resourcequotas/status",
    ),
    rule(READ, "core", "namespaces"),
    rule(READ, "core events.k8s.io", "events"),
    rule(READ, "discovery.k8s.io", "endpointslices"),
    rule(
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
        "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    ),
    rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    rule(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    rule(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    rule(READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
]

EDIT = [
    rule(READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    rule("impersonate", "core", "serviceaccounts"),
    rule(WRITE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    rule("create", "core", "pods/eviction"),
    rule(
        WRITE,
        "core",
        "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts "
        "services services/proxy",
    ),
    rule("create", "core", "serviceaccounts/token"),
    rule(WRITE, "core events.k8s.io", "events"),
    rule(
        WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
        "statefulsets/scale",
    ),
    rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE, "batch", "cronjobs jobs"),
    rule(WRITE, "policy", "poddisruptionbudgets"),
    rule(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    rule(READ_WRITE, "coordination.k8s.io", "leases"),
    rule(WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
]

ADMIN_ONLY = [
    rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    rule(READ_WRITE, RBAC, "rolebindings roles"),
]

NODE = [
    TOKEN_REVIEWS,
    rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
    rule(READ, "core", "services"),
    rule("create get list watch", "core", "nodes"),
    rule("patch update", "core", "nodes/status"),
    rule("patch update", "core", "nodes"),
    EVENTS,
    rule(READ, "core", "pods"),
    rule("create delete", "core", "pods"),
    rule("patch update", "core", "pods/status"),
    rule("create", "core", "pods/eviction"),
    rule(READ, "core", "configmaps secrets"),
    rule("get", "core", "persistentvolumeclaims persistentvolumes"),
    rule("get", "core", "endpoints"),
    rule("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
    rule("create delete get patch update", "coordination.k8s.io", "leases"),
    rule("get", "storage.k8s.io", "volumeattachments"),
    rule("create", "core", "serviceaccounts/token"),
    rule("get patch update", "core", "persistentvolumeclaims/status"),
    rule(READ, "storage.k8s.io", "csidrivers"),
    rule("create delete get patch update", "storage.k8s.io", "csinodes"),
    rule(READ, "node.k8s.io", "runtimeclasses"),
    rule("get", "resource.k8s.io", "resourceclaims"),
    rule("deletecollection", "resource.k8s.io", "resourceslices"),
    rule("get", "core", "serviceaccounts"),
]

SCHEDULER = [
    EVENTS,
    rule("create", "coordination.k8s.io", "leases"),
    rule("get list update watch", "coordination.k8s.io", "leases", "kube-scheduler"),
    rule(READ, "core", "nodes"),
    rule("delete get list watch", "core", "pods"),
    rule("create", "core", "bindings pods/binding"),
    rule("patch update", "core", "pods/status"),
    rule(READ, "core", "replicationcontrollers services"),
    rule(READ, "apps", "replicasets statefulsets"),
    rule(READ, "policy", "poddisruptionbudgets"),
    rule(READ, "core", "persistentvolumeclaims persistentvolumes"),
    TOKEN_REVIEWS,
    SUBJECT_REVIEWS,
    rule(READ, "storage.k8s.io", "csidrivers csinodes csistoragecapacities volumeattachments"),
    rule(READ, "core", "namespaces"),
]

CONTROLLER_MANAGER = [
    EVENTS,
    rule("create", "coordination.k8s.io", "leases"),
    rule("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
    rule("create", "core", "secrets serviceaccounts"),
    rule("delete", "core", "secrets"),
    rule("get", "core", "configmaps namespaces secrets serviceaccounts"),
    rule("update", "core", "secrets serviceaccounts"),
    TOKEN_REVIEWS,
    SUBJECT_REVIEWS,
    rule("list watch", "*", "*"),
    rule("create", "core", "serviceaccounts/token"),
]

ROLES: dict[str, list[Object]] = {
    "cluster-admin": [rule("*", "*", "*"), paths("*", verbs="*")],
    "system:aggregate-to-admin": ADMIN_ONLY,
    "system:aggregate-to-edit": EDIT,
    "system:aggregate-to-view": VIEW,
    "system:auth-delegator": [TOKEN_REVIEWS, SUBJECT_REVIEWS],
    "system:basic-user": [
        rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        rule("create", "authentication.k8s.io", "selfsubjectreviews"),
    ],
    "system:discovery": [
        paths("/api", "/api/*", "/apis", "/apis/*", *HEALTH, "/openapi", "/openapi/*", *VERSION),
    ],
    "system:kube-aggregator": [rule(READ, "core", "endpoints services")],
    "system:kube-controller-manager": CONTROLLER_MANAGER,
    "system:kube-dns": [rule("list watch", "core", "endpoints services")],
    "system:kube-scheduler": SCHEDULER,
    "system:kubelet-api-admin": [
        rule(READ, "core", "nodes"),
        rule("proxy", "core", "nodes"),
        rule("*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        rule("*", "core", "nodes/configz nodes/healthz nodes/pods"),
    ],
    "system:monitoring": [
        paths(*HEALTH, *(f"{path}/*" for path in HEALTH), "/metrics", "/metrics/slis"),
        rule("get", "core", "nodes/metrics"),
    ],
    "system:node": NODE,
    "system:node-bootstrapper": [rule("create get list watch", "certificates.k8s.io", "certificatesigningrequests")],
    "system:node-problem-detector": [
        rule("get", "core", "nodes"),
        rule("patch", "core", "nodes/status"),
        EVENTS,
    ],
    "system:node-proxier": [
        rule("list watch", "core", "endpoints services"),
        rule(READ, "core", "nodes"),
        EVENTS,
        rule("list watch", "networking.k8s.io", "servicecidrs"),
        rule("list watch", "discovery.k8s.io", "endpointslices"),
    ],
    "system:persistent-volume-provisioner": [
        rule("create delete get list watch", "core", "persistentvolumes"),
        rule("get list update watch", "core", "persistentvolumeclaims"),
        rule(READ, "storage.k8s.io", "storageclasses"),
        rule("watch", "core", "events"),
        EVENTS,
    ],
    "system:public-info-viewer": [paths(*HEALTH, *VERSION)],
    "system:service-account-issuer-discovery": [
        paths(
            "/.well-known/openid-configuration",
            "/.well-known/openid-configuration/",
            "/openid/v1/jwks",
            "/openid/v1/jwks/",
        )
    ],
    "system:volume-scheduler": [
        rule("get list patch update watch", "core", "persistentvolumes"),
        rule(READ, "storage.k8s.io", "storageclasses"),
        rule("get list patch update watch", "core", "persistentvolumeclaims"),
    ],
}

AGGREGATED: dict[str, list[Object]] = {
    "admin": [*EDIT, *VIEW, *ADMIN_ONLY],
    "edit": [*EDIT, *VIEW],
    "view": VIEW,
}
"""Roles made of others, as a controller keeps them."""

LABELS: dict[str, str] = {
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
    "edit": "admin",
    "view": "edit",
}
"""Which roles the label of a role adds it to."""

BINDINGS: dict[str, list[tuple[str, str]]] = {
    "cluster-admin": [("Group", MASTERS)],
    "system:basic-user": [("Group", AUTHENTICATED)],
    "system:discovery": [("Group", AUTHENTICATED)],
    "system:kube-controller-manager": [("User", "system:kube-controller-manager")],
    "system:kube-dns": [("ServiceAccount", "kube-dns")],
    "system:kube-scheduler": [("User", "system:kube-scheduler")],
    "system:monitoring": [("Group", "system:monitoring")],
    "system:node": [],
    "system:node-proxier": [("User", "system:kube-proxy")],
    "system:public-info-viewer": [("Group", AUTHENTICATED), ("Group", UNAUTHENTICATED)],
    "system:service-account-issuer-discovery": [("Group", SERVICE_ACCOUNTS)],
    "system:volume-scheduler": [("User", "system:kube-scheduler")],
}


def cluster_roles() -> list[Object]:
    """The cluster roles of a fresh cluster."""
    made = [{**_object("ClusterRole", name), "rules": rules} for name, rules in ROLES.items()]
    for name, rules in AGGREGATED.items():
        selector = {"matchLabels": {f"{AGGREGATE}{name}": "true"}}
        aggregation = {"clusterRoleSelectors": [selector]}
        made.append({**_object("ClusterRole", name), "aggregationRule": aggregation, "rules": rules})
    return made


def cluster_role_bindings() -> list[Object]:
    """The cluster role bindings of a fresh cluster."""
    made = []
    for name, subjects in BINDINGS.items():
        binding = _object("ClusterRoleBinding", name)
        binding["roleRef"] = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        if subjects:
            binding["subjects"] = [_subject(kind, subject) for kind, subject in subjects]
        made.append(binding)
    return made


def _object(kind: str, name: str) -> Object:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if name in LABELS and kind == "ClusterRole":
        labels[f"{AGGREGATE}{LABELS[name]}"] = "true"
    annotations = {f"{RBAC}/autoupdate": "true"}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata}


def _subject(kind: str, name: str) -> Object:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "kube-system"}
    return {"apiGroup": RBAC, "kind": kind, "name": name}
