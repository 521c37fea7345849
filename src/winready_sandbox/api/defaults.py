"""Values that the API server fills in, so that clients and nodes never have to guess them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from winready_sandbox.api.pod_defaults import SOURCE_DEFAULTS, default_pod, default_template, field_map
from winready_sandbox.api.pod_resources import children

Object = dict[str, Any]

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""How often the template of a daemon set has changed, a field once and an annotation since."""
_RBAC = "rbac.authorization.k8s.io"


def apply_defaults(kind: str, group: str, obj: Object) -> None:
    """Fill in what the writer left out; the object must be a copy that nobody else holds."""
    fill = _DEFAULTS.get((group, kind))
    if fill is not None:
        fill(obj)


def _replicated(obj: Object) -> Object:
    spec = field_map(obj, "spec")
    spec.setdefault("replicas", 1)
    default_template(spec)
    return spec


def _deployment(obj: Object) -> None:
    spec = _replicated(obj)
    strategy = field_map(spec, "strategy")
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = field_map(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _replica_set(obj: Object) -> None:
    _replicated(obj)


def _replication_controller(obj: Object) -> None:
    spec = _replicated(obj)
    labels = field_map(field_map(spec, "template"), "metadata").get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        metadata = field_map(obj, "metadata")
        metadata["labels"] = metadata.get("labels") or dict(labels)


def _daemon_set(obj: Object) -> None:
    field_map(field_map(obj, "metadata"), "annotations").setdefault(TEMPLATE_GENERATION, "1")
    spec = field_map(obj, "spec")
    default_template(spec)
    strategy = field_map(spec, "updateStrategy")
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = field_map(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def _stateful_set(obj: Object) -> None:
    spec = _replicated(obj)
    spec.setdefault("serviceName", "")
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = field_map(spec, "updateStrategy")
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        field_map(strategy, "rollingUpdate").setdefault("partition", 0)
    retention = field_map(spec, "persistentVolumeClaimRetentionPolicy")
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    for claim in children(spec, "volumeClaimTemplates"):
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("apiVersion", "v1")
        field_map(claim, "status").setdefault("phase", "Pending")
        _claim(claim)


def _job(obj: Object) -> None:
    spec = field_map(obj, "spec")
    template = default_template(spec)
    metadata = field_map(obj, "metadata")
    _job_spec(spec)
    _failure_policy(spec)
    uid = metadata.get("uid")
    if uid and not spec.setdefault("manualSelector", False) and not spec.get("selector"):
        _own_selector(spec, template, str(metadata.get("name", "")), str(uid))
    labels = field_map(template, "metadata").get("labels")
    if isinstance(labels, dict) and labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def _job_spec(spec: Object) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")


def _failure_policy(spec: Object) -> None:
    policy = spec.get("podFailurePolicy")
    for rule in children(policy if isinstance(policy, dict) else {}, "rules"):
        for pattern in children(rule, "onPodConditions"):
            pattern.setdefault("status", "True")


def _own_selector(spec: Object, template: Object, name: str, uid: str) -> None:
    """A job finds its pods by its own uid, so that a job of the same name finds none of them."""
    labels = field_map(field_map(template, "metadata"), "labels")
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = name
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _cron_job(obj: Object) -> None:
    spec = field_map(obj, "spec")
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = field_map(spec, "jobTemplate")
    field_map(template, "metadata")
    default_template(field_map(template, "spec"))
    _failure_policy(field_map(template, "spec"))


def _service(obj: Object) -> None:
    spec = field_map(obj, "spec")
    kind = spec.setdefault("type", "ClusterIP")
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        field_map(field_map(spec, "sessionAffinityConfig"), "clientIP").setdefault("timeoutSeconds", 10800)
    for port in children(spec, "ports"):
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _endpoints(obj: Object) -> None:
    for subset in children(obj, "subsets"):
        for port in children(subset, "ports"):
            port.setdefault("protocol", "TCP")


def _endpoint_slice(obj: Object) -> None:
    for endpoint in children(obj, "endpoints"):
        field_map(endpoint, "conditions")
    for port in children(obj, "ports"):
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict):
        data = field_map(obj, "data")
        for key, value in plain.items():
            data[key] = base64.b64encode(str(value).encode()).decode()


def _volume(obj: Object) -> None:
    spec = field_map(obj, "spec")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    for name, defaults in SOURCE_DEFAULTS.items():
        if isinstance(spec.get(name), dict):
            spec[name].update({**defaults, **spec[name]})
    if isinstance(spec.get("hostPath"), dict):
        spec["hostPath"].setdefault("type", "")


def _claim(obj: Object) -> None:
    field_map(obj, "spec").setdefault("volumeMode", "Filesystem")


def _namespace(obj: Object) -> None:
    metadata = field_map(obj, "metadata")
    if metadata.get("name"):
        field_map(metadata, "labels")["kubernetes.io/metadata.name"] = metadata["name"]


def _node(obj: Object) -> None:
    status = obj.get("status")
    if isinstance(status, dict) and "allocatable" not in status and isinstance(status.get("capacity"), dict):
        status["allocatable"] = dict(status["capacity"])


def _limit_range(obj: Object) -> None:
    for item in children(field_map(obj, "spec"), "limits"):
        if item.get("type") != "Container":
            continue
        default, request = field_map(item, "default"), field_map(item, "defaultRequest")
        for sources, target in ((("max",), default), (("default", "min"), request)):
            for source in sources:
                for name, value in field_map(item, source).items():
                    target.setdefault(name, value)
        for name in ("max", "min", "default", "defaultRequest"):
            if not item[name]:
                del item[name]


def _network_policy(obj: Object) -> None:
    spec = field_map(obj, "spec")
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in children(spec, direction):
            for port in children(rule, "ports"):
                port.setdefault("protocol", "TCP")


def _ingress_class(obj: Object) -> None:
    parameters = field_map(obj, "spec").get("parameters")
    if isinstance(parameters, dict):
        parameters.setdefault("scope", "Cluster")


def _storage_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(obj: Object) -> None:
    spec = field_map(obj, "spec")
    spec.setdefault("attachRequired", True)
    for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(name, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec["volumeLifecycleModes"] = spec.get("volumeLifecycleModes") or ["Persistent"]


def _priority_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _role_binding(obj: Object) -> None:
    reference = field_map(obj, "roleRef")
    reference["apiGroup"] = reference.get("apiGroup") or _RBAC
    for subject in children(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = subject.get("apiGroup") or _RBAC


def _autoscaler(obj: Object) -> None:
    spec = field_map(obj, "spec")
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _webhooks(obj: Object) -> None:
    for hook in children(obj, "webhooks"):
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        service = field_map(hook, "clientConfig").get("service")
        if isinstance(service, dict):
            service.setdefault("port", 443)
        for rule in children(hook, "rules"):
            rule.setdefault("scope", "*")
        if obj.get("kind") == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")


def _mutating_policy(obj: Object) -> None:
    spec = field_map(obj, "spec")
    spec.setdefault("failurePolicy", "Fail")
    match = spec.get("matchConstraints")
    if isinstance(match, dict):
        match.setdefault("matchPolicy", "Equivalent")
        match.setdefault("namespaceSelector", {})
        match.setdefault("objectSelector", {})
        for rule in children(match, "resourceRules"):
            rule.setdefault("scope", "*")


def _lease(obj: Object) -> None:
    field_map(obj, "spec")


def _pod_template(obj: Object) -> None:
    default_template(obj)


_DEFAULTS: dict[tuple[str, str], Callable[[Object], None]] = {
    ("", "Pod"): default_pod,
    ("", "PodTemplate"): _pod_template,
    ("", "Service"): _service,
    ("", "Endpoints"): _endpoints,
    ("", "Secret"): _secret,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "LimitRange"): _limit_range,
    ("", "ReplicationController"): _replication_controller,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("coordination.k8s.io", "Lease"): _lease,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("networking.k8s.io", "IngressClass"): _ingress_class,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    (_RBAC, "RoleBinding"): _role_binding,
    (_RBAC, "ClusterRoleBinding"): _role_binding,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _mutating_policy,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
}
