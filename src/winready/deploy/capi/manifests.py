"""The extension as objects: its account and rights, the server, and the ExtensionConfig that has it asked.

The Secret for its certificate is empty on purpose: the server fills it, and Cluster API takes the authority from there.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, field
from typing import Any

from winready.cluster.client import Object
from winready.cluster.resources import (
    CLAIMS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    NAMESPACES,
    NETWORK_POLICIES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from winready.cluster.rights import granted
from winready.deploy.capi.child import CLEAN_UP_SECONDS
from winready.deploy.capi.workload import SUFFIX, secret_name
from winready.deploy.defaults import SIZE
from winready.deploy.manifests import USER, literal

NAME = "winready-capi"
PORT, METRICS_PORT = 9443, 8080
MANAGER_NAMESPACE = "capi-system"
EXTENSION_CONFIGS = Resource(
    "runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig", "extensionconfigs", namespaced=False
)
INJECT = "runtime.cluster.x-k8s.io/inject-ca-from-secret"
KINDS = {
    resource.kind: resource
    for resource in (
        NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS, SECRETS, CLAIMS,
        DEPLOYMENTS, SERVICES, NETWORK_POLICIES, EXTENSION_CONFIGS,
    )
}  # fmt: skip
STATE = "/state"
RESOURCES = {"requests": {"cpu": "200m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What the operator wants to have in the management cluster."""

    image: str
    arguments: tuple[str, ...] = ()
    """What the server is told besides where it is and what it keeps where."""
    namespace: str = NAME
    name: str = NAME
    own_namespace: bool = True
    namespaces: tuple[str, ...] = ()
    """Whose clusters are judged; none: all of them."""
    clusters: tuple[tuple[str, str], ...] = ()
    """Or these clusters alone, by namespace and name."""
    suffix: str = SUFFIX
    """How the names of the Secrets end that lead to these clusters."""
    manager_namespace: str = MANAGER_NAMESPACE
    state: str = STATE
    report_dir: str = f"{STATE}/runs"
    store_secret: str = ""
    """Whose keys are the environment by which object stores know us."""
    size: str = SIZE
    storage_class: str | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()
    pull_secrets: tuple[str, ...] = ()

    @property
    def labels(self) -> dict[str, str]:
        """Of everything that is deployed."""
        return {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": self.name}

    @property
    def tls(self) -> str:
        """The Secret for certificate and key."""
        return f"{self.name}-tls"

    @property
    def places(self) -> list[str]:
        """The namespaces that controllers ask about; none: all."""
        return sorted({*self.namespaces, *(namespace for namespace, _ in self.clusters)})


def objects(wanted: Extension) -> list[Object]:
    """Everything, in the order in which it can be created."""
    found = [*_space(wanted), *_rights(wanted), *_kept(wanted), _deployment(wanted), _service(wanted),
             _network_policy(wanted), extension_config(wanted)]  # fmt: skip
    return [_labelled(item, wanted.labels) for item in found]


def extension_config(wanted: Extension) -> Object:
    """What has the controllers ask us; Cluster API itself fills in the authority."""
    service = {"namespace": wanted.namespace, "name": wanted.name, "port": 443}
    made = _config(wanted.name, {"service": service}, wanted.places)
    made["metadata"]["annotations"] = {INJECT: f"{wanted.namespace}/{wanted.tls}"}
    return made


def config_by_url(name: str, url: str, ca: bytes, places: list[str], policy: str = "") -> Object:
    """The same for a server outside of the cluster, which may have another policy for those who ask by this."""
    client = {"url": url, "caBundle": base64.b64encode(ca).decode()}
    return _config(name, client, places, policy)


def _config(name: str, client: Object, places: list[str], policy: str = "") -> Object:
    spec: Object = {"clientConfig": client, "namespaceSelector": {}}
    if places:
        named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": places}
        spec["namespaceSelector"] = {"matchExpressions": [named]}
    if policy:
        spec["settings"] = {"policy": policy}
    return {"apiVersion": EXTENSION_CONFIGS.api_version, "kind": "ExtensionConfig", "metadata": {"name": name},
            "spec": spec}  # fmt: skip


def _space(wanted: Extension) -> list[Object]:
    if not wanted.own_namespace:
        return []
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": wanted.namespace, "labels": levels}}]


def _rights(wanted: Extension) -> list[Object]:
    subject = {"kind": "ServiceAccount", "name": wanted.name, "namespace": wanted.namespace}
    found: list[Object] = [_named("v1", "ServiceAccount", wanted, wanted.name)]
    own = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [wanted.tls], "verbs": ["get", "update"]}
    found += granted(f"{wanted.name}-tls", wanted.namespace, [own], subject)
    reading = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    for place in wanted.places if wanted.places else [""]:
        names = [secret_name(name, wanted.suffix) for namespace, name in wanted.clusters if namespace == place]
        only = {"resourceNames": names} if names and place not in wanted.namespaces else {}
        found += granted(wanted.name, place, [{**reading, **only}], subject)
    return found


def _kept(wanted: Extension) -> list[Object]:
    found: list[Object] = [{**_named("v1", "Secret", wanted, wanted.tls), "type": "Opaque"}]
    if not wanted.state.startswith("/"):
        return found
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": wanted.size}}}
    if wanted.storage_class is not None:
        spec["storageClassName"] = wanted.storage_class
    return [*found, {**_named("v1", "PersistentVolumeClaim", wanted, f"{wanted.name}-state"), "spec": spec}]


def _deployment(wanted: Extension) -> Object:
    return {
        **_named("apps/v1", "Deployment", wanted, wanted.name),
        "spec": {
            # One server runs and tells; a second one would only find its facts written already.
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": dict(wanted.labels)},
            "template": {"metadata": {"labels": dict(wanted.labels)}, "spec": _pod(wanted)},
        },
    }


def _pod(wanted: Extension) -> Object:
    volumes: list[Object] = [{"name": "tmp", "emptyDir": {}}]
    claim = {"persistentVolumeClaim": {"claimName": f"{wanted.name}-state"}}
    volumes.append({"name": "state", **(claim if wanted.state.startswith("/") else {"emptyDir": {}})})
    spec: Object = {
        "os": {"name": "linux"},
        "nodeSelector": {"kubernetes.io/os": "linux", **wanted.node_selector},
        "serviceAccountName": wanted.name,
        "terminationGracePeriodSeconds": math.ceil(CLEAN_UP_SECONDS) + 30,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(wanted)],
        "volumes": volumes,
    }  # fmt: skip
    if wanted.tolerations:
        spec["tolerations"] = [dict(item) for item in wanted.tolerations]
    if wanted.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in wanted.pull_secrets]
    return spec


def _container(wanted: Extension) -> Object:
    probe = {"httpGet": {"path": "/healthz", "port": "hooks", "scheme": "HTTPS"}}
    told = [
        "capi", "serve", f"{wanted.namespace}/{wanted.name}", "--identity-secret", f"{wanted.namespace}/{wanted.tls}",
        "--port", str(PORT), "--metrics-listen", f":{METRICS_PORT}", "--state", wanted.state,
        "--report-dir", wanted.report_dir,
    ]  # fmt: skip
    secret = [{"secretRef": {"name": wanted.store_secret}}] if wanted.store_secret else []
    return {
        "name": "winready",
        "image": wanted.image,
        "args": [literal(word) for word in (*told, *wanted.arguments)],
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108
        **({"envFrom": secret} if secret else {}),
        "ports": [
            {"name": "hooks", "containerPort": PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "livenessProbe": {**probe, "periodSeconds": 20, "timeoutSeconds": 5, "failureThreshold": 6},
        "readinessProbe": {**probe, "periodSeconds": 5, "timeoutSeconds": 5},
        "resources": {name: dict(amounts) for name, amounts in RESOURCES.items()},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "state", "mountPath": STATE}],  # noqa: S108
    }


def _service(wanted: Extension) -> Object:
    ports = [{"name": "hooks", "port": 443, "targetPort": "hooks"}]
    return {**_named("v1", "Service", wanted, wanted.name), "spec": {"selector": dict(wanted.labels), "ports": ports}}


def _network_policy(wanted: Extension) -> Object:
    """Hooks carry no proof of who asks: only Cluster API's namespace may. Metrics tell no secrets."""
    asking = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": wanted.manager_namespace}}}
    return {
        **_named("networking.k8s.io/v1", "NetworkPolicy", wanted, wanted.name),
        "spec": {
            "podSelector": {"matchLabels": dict(wanted.labels)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [asking], "ports": [{"port": "hooks"}]}, {"ports": [{"port": "metrics"}]}],
        },
    }


def _named(version: str, kind: str, wanted: Extension, name: str) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": wanted.namespace}}


def _labelled(obj: Object, labels: dict[str, str]) -> Object:
    metadata = {**obj["metadata"], "labels": {**labels, **obj["metadata"].get("labels", {})}}
    return {**obj, "metadata": metadata}
