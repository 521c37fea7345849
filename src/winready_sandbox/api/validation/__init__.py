"""Objects that the real API server would refuse are refused here, with its field paths and its words.

Not every rule of the real server is here, but those that writers of manifests and tests of Windows workloads meet. All
rules are pure: what depends on other objects (quotas, name clashes, free addresses) is admission's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from winready_sandbox.api.errors import FieldError
from winready_sandbox.api.validation import (
    claims,
    jobs,
    networking,
    others,
    persistent_volumes,
    pods,
    scaling,
    workloads,
)
from winready_sandbox.api.validation.formats import Errors
from winready_sandbox.api.validation.metadata import metadata
from winready_sandbox.versions import DEFAULT_MINOR

__all__ = ["validate"]

Object = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io"

_RULES: dict[tuple[str, str], Callable[[Object, Object | None, int], Errors]] = {
    ("", "Pod"): pods.pod,
    ("", "Service"): networking.service,
    ("", "Endpoints"): networking.endpoints,
    ("", "ConfigMap"): others.config_map,
    ("", "Secret"): others.secret,
    ("", "Node"): others.node,
    ("", "LimitRange"): scaling.limit_range,
    ("", "ResourceQuota"): others.quota,
    ("", "PersistentVolumeClaim"): claims.claim,
    ("", "PersistentVolume"): persistent_volumes.volume,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): scaling.autoscaler,
    ("batch", "Job"): jobs.job,
    ("batch", "CronJob"): jobs.cron_job,
    ("discovery.k8s.io", "EndpointSlice"): networking.endpoint_slice,
    ("networking.k8s.io", "NetworkPolicy"): networking.network_policy,
    ("coordination.k8s.io", "Lease"): others.lease,
    ("policy", "PodDisruptionBudget"): others.disruption_budget,
    ("scheduling.k8s.io", "PriorityClass"): others.priority_class,
    ("node.k8s.io", "RuntimeClass"): others.runtime_class,
    ("storage.k8s.io", "StorageClass"): others.storage_class,
    (_RBAC, "Role"): others.role,
    (_RBAC, "ClusterRole"): others.role,
    (_RBAC, "RoleBinding"): others.role_binding,
    (_RBAC, "ClusterRoleBinding"): others.role_binding,
}


def validate(
    kind: str, group: str, obj: Object, old: Object | None = None, minor: int = DEFAULT_MINOR
) -> list[FieldError]:
    """What is wrong with an object, or with the change from ``old``, for a server of version 1.``minor``.

    A write that leaves everything but metadata and status alone is not looked at again: status writes are frequent.
    """
    errors: list[FieldError] = []
    if old is None or obj.get("metadata") is not old.get("metadata"):
        errors += metadata(kind, obj, old, minor)
    rules = _RULES.get((group, kind))
    if rules is not None and (old is None or _content(obj) != _content(old)):
        errors += rules(obj, old, minor)
    return errors


def _content(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}
