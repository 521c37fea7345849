"""A run in the cluster as objects: the account and its rights, the Job or CronJob, and where its results go.

The runner itself asks for nothing special, so that its namespace can be held to Pod Security ``restricted``; what the
run makes has namespaces of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from winready.checks.rights import prepared_namespaces, rights_to_grant
from winready.cluster.client import Object
from winready.cluster.directory import ActiveDirectory
from winready.cluster.resources import (
    CLAIMS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CRON_JOBS,
    JOBS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)
from winready.cluster.rights import granted
from winready.cluster.rights import manifest as run_rights
from winready.cluster.settings import Settings
from winready.deploy.defaults import KEEP, NAME, SIZE
from winready.engine.defaults import CLEANUP_SECONDS

MANAGER = "winready-deploy"
USER = 65532
"""The user of the image, who owns nothing."""
STARTING_SECONDS = 600
"""To find a node, pull the image and mount the volume."""
SETTLING_SECONDS = 60
"""To write the report and to tell the verdict, after cleanup."""
RUNS, INPUTS = "/runs", "/etc/winready"
DOMAIN, CONFORMANCE = "domain.yaml", "linux-conformance.xml"
TERMINATION_LOG = "/dev/termination-log"
POLICY_GROUP = "wgpolicyk8s.io"
KINDS = {
    resource.kind: resource
    for resource in (
        NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS, CONFIG_MAPS, CLAIMS,
        JOBS, CRON_JOBS,
    )
}  # fmt: skip
RESOURCES = {"requests": {"cpu": "200m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What the operator wants to have in the cluster."""

    image: str
    arguments: tuple[str, ...] = ()
    """What the run is told besides where to write and whom to tell."""
    timeout: float = 7200.0
    """Seconds that the run has before it gives up what is not finished."""
    namespace: str = NAME
    name: str = NAME
    own_namespace: bool = True
    """The namespace is made here, and goes with everything else."""
    schedule: str | None = None
    """Of a CronJob; without one it is a Job."""
    time_zone: str | None = None
    keep: int = KEEP
    volume: bool = True
    size: str = SIZE
    storage_class: str | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    """Where the runner itself goes, among Linux nodes."""
    tolerations: tuple[dict[str, Any], ...] = ()
    pull_secrets: tuple[str, ...] = ()
    metrics_port: int | None = None
    requirements: tuple[str, ...] = ()
    """What the run verifies: its rights depend on it."""
    namespace_prefix: str = ""
    """Of the namespaces for the run, which are made here; without it the run makes its own."""
    directory: ActiveDirectory | None = None
    directory_text: str = ""
    conformance: str = ""
    """What is known of Linux conformance, as a JUnit document."""
    report_dir: str = ""
    """The address of the store that runs are sent to; they are written to the volume first."""
    store_secret: str = ""
    """The Secret whose keys are the environment that this store wants."""

    @property
    def labels(self) -> dict[str, str]:
        """Of everything that is deployed."""
        return {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": self.name}

    @property
    def inputs(self) -> dict[str, str]:
        """Files that the run is told to read."""
        given = {DOMAIN: self.directory_text, CONFORMANCE: self.conformance}
        return {name: text for name, text in given.items() if text}

    @property
    def summary(self) -> str:
        """The ConfigMap that tells the last verdict."""
        return f"{self.name}-summary"

    @property
    def publishing(self) -> str:
        """The roles that allow to tell it."""
        return f"{self.name}-publishing"


def objects(wanted: Deployment) -> list[Object]:
    """Everything, in the order in which it can be created."""
    found = [*_space(wanted), *_rights(wanted), *publishing_rights(wanted), *_storage(wanted)]
    found.append(_cron_job(wanted) if wanted.schedule else _job(wanted))
    return [_labelled(item, wanted.labels) for item in found]


def publishing_rights(wanted: Deployment) -> list[Object]:
    """What the run may do to tell its verdict, apart from the rights that it needs to find it."""
    subject = {"kind": "ServiceAccount", "name": wanted.name, "namespace": wanted.namespace}
    return [
        *granted(wanted.publishing, wanted.namespace, namespaced_rules(wanted), subject),
        *granted(wanted.publishing, "", cluster_rules(wanted), subject),
    ]


def namespaced_rules(wanted: Deployment) -> list[Object]:
    """In the namespace of the runner."""
    # The jobs of a CronJob have names that nobody knows beforehand.
    own = {} if wanted.schedule else {"resourceNames": [wanted.name]}
    return [
        {"apiGroups": ["batch"], "resources": ["jobs"], **own, "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [wanted.summary], "verbs": ["patch"]},
        *_report_rules("policyreports", wanted.name),
    ]


def cluster_rules(wanted: Deployment) -> list[Object]:
    """A report about a cluster belongs to no namespace."""
    return _report_rules("clusterpolicyreports", wanted.name)


def _report_rules(plural: str, name: str) -> list[Object]:
    # Nobody can be allowed to create an object of one name only.
    return [
        {"apiGroups": [POLICY_GROUP], "resources": [plural], "verbs": ["create"]},
        {"apiGroups": [POLICY_GROUP], "resources": [plural], "resourceNames": [name], "verbs": ["patch"]},
    ]


def _space(wanted: Deployment) -> list[Object]:
    if not wanted.own_namespace:
        return []
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": wanted.namespace, "labels": levels}}]


def _rights(wanted: Deployment) -> list[Object]:
    settings = Settings(run_id="rights", active_directory=wanted.directory, namespace_prefix=wanted.namespace_prefix)
    rights = rights_to_grant(wanted.requirements, settings)
    made = [item for item in run_rights(wanted.name, wanted.namespace, None, rights) if item["kind"] != "Namespace"]
    spaces = prepared_namespaces(wanted.requirements, settings) if wanted.namespace_prefix else []
    return [*spaces, *made]


def _storage(wanted: Deployment) -> list[Object]:
    def config_map(name: str, content: Object) -> Object:
        metadata = {"name": name, "namespace": wanted.namespace}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}

    # Empty on purpose: the run fills it, and may not make another one.
    found = [config_map(wanted.summary, {})]
    if wanted.inputs:
        found.append(config_map(f"{wanted.name}-inputs", {"data": wanted.inputs}))
    if wanted.volume:
        spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": wanted.size}}}
        if wanted.storage_class is not None:
            spec["storageClassName"] = wanted.storage_class
        metadata = {"name": f"{wanted.name}-runs", "namespace": wanted.namespace}
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return found


def _job(wanted: Deployment) -> Object:
    metadata = {"name": wanted.name, "namespace": wanted.namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": _job_spec(wanted)}


def _cron_job(wanted: Deployment) -> Object:
    spec: Object = {"schedule": wanted.schedule}
    if wanted.time_zone:
        spec["timeZone"] = wanted.time_zone
    spec |= {
        # Two runs at the same time would fight for the nodes.
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": STARTING_SECONDS,
        "successfulJobsHistoryLimit": wanted.keep,
        "failedJobsHistoryLimit": wanted.keep,
        "jobTemplate": {"metadata": {"labels": dict(wanted.labels)}, "spec": _job_spec(wanted)},
    }
    metadata = {"name": wanted.name, "namespace": wanted.namespace}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def _job_spec(wanted: Deployment) -> Object:
    annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    return {
        # A Fail is a result; to try again would only hide it.
        "backoffLimit": 0,
        # Nor does another run begin while one that was told to end still cleans up.
        "podReplacementPolicy": "Failed",
        "activeDeadlineSeconds": math.ceil(wanted.timeout + CLEANUP_SECONDS) + STARTING_SECONDS,
        "template": {
            "metadata": {"labels": dict(wanted.labels), "annotations": annotations},
            "spec": _pod_spec(wanted),
        },
    }


def _pod_spec(wanted: Deployment) -> Object:
    volumes: list[Object] = [{"name": "tmp", "emptyDir": {}}]
    claim = {"persistentVolumeClaim": {"claimName": f"{wanted.name}-runs"}} if wanted.volume else {"emptyDir": {}}
    volumes.append({"name": "runs", **claim})
    if wanted.inputs:
        volumes.append({"name": "inputs", "configMap": {"name": f"{wanted.name}-inputs"}})
    spec: Object = {
        "os": {"name": "linux"},
        "nodeSelector": {"kubernetes.io/os": "linux", **wanted.node_selector},
        "serviceAccountName": wanted.name,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": int(CLEANUP_SECONDS) + SETTLING_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(wanted)],
        "volumes": volumes,
    }
    if wanted.tolerations:
        spec["tolerations"] = [dict(item) for item in wanted.tolerations]
    if wanted.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in wanted.pull_secrets]
    return spec


def _container(wanted: Deployment) -> Object:
    mounts: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}, {"name": "runs", "mountPath": RUNS}]  # noqa: S108
    if wanted.inputs:
        mounts.append({"name": "inputs", "mountPath": INPUTS, "readOnly": True})
    environment: list[Object] = [
        {"name": "HOME", "value": "/tmp"},  # noqa: S108
        _from_pod("WINREADY_NAMESPACE", "metadata.namespace"),
        _from_pod("WINREADY_JOB", "metadata.labels['batch.kubernetes.io/job-name']"),
    ]
    if wanted.report_dir:
        # What a store did not take waits where the pod's end does not reach.
        environment.append({"name": "XDG_STATE_HOME", "value": RUNS})
    container: Object = {
        "name": "winready",
        "image": wanted.image,
        "args": _arguments(wanted),
        "env": environment,
        "resources": {name: dict(amounts) for name, amounts in RESOURCES.items()},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Of a run that ends before it can say anything itself, the last lines of its log.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    if wanted.store_secret:
        container["envFrom"] = [{"secretRef": {"name": wanted.store_secret}}]
    if wanted.metrics_port is not None:
        container["ports"] = [{"name": "metrics", "containerPort": wanted.metrics_port}]
    return container


def _from_pod(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _arguments(wanted: Deployment) -> list[str]:
    """The command line of the run; Kubernetes puts in where it is, so that nobody has to change it in two places."""
    told = [
        "job=$(WINREADY_NAMESPACE)/$(WINREADY_JOB)",
        f"configmap=$(WINREADY_NAMESPACE)/{wanted.summary}",
        f"policy-report=$(WINREADY_NAMESPACE)/{wanted.name}",
        f"termination-log={TERMINATION_LOG}",
    ]
    words = [
        "run",
        "--report-dir",
        literal(wanted.report_dir) or RUNS,
        *(word for place in told for word in ("--publish", place)),
    ]
    if wanted.metrics_port is not None:
        words += ["--metrics-listen", f":{wanted.metrics_port}"]
    if wanted.directory_text:
        words += ["--active-directory", f"{INPUTS}/{DOMAIN}"]
    if wanted.conformance:
        words += ["--linux-conformance", f"{INPUTS}/{CONFORMANCE}"]
    return [*words, *(literal(word) for word in wanted.arguments)]


def literal(word: str) -> str:
    """A word of a command line in which Kubernetes replaces nothing."""
    return word.replace("$", "$$")


def _labelled(obj: Object, labels: dict[str, str]) -> Object:
    metadata = {**obj["metadata"], "labels": {**labels, **obj["metadata"].get("labels", {})}}
    return {**obj, "metadata": metadata}
