"""Defaults of pods and pod templates, and what admission adds to a new pod."""

from __future__ import annotations

import re
from typing import Any

from winready_sandbox.api.pod_resources import (
    children,
    container_limits,
    container_requests,
    is_overcommitted,
    is_pod_level,
    text_of,
)

Object = dict[str, Any]

APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
"""Before the name of a container: the annotation that was a profile before there was a field for it."""
_SOURCES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
SOURCE_DEFAULTS: dict[str, Object] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""What disks of others are if nobody says so, in pods and in persistent volumes."""
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    r"(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::\d+)?/)?"
    rf"{_PART}(?:/{_PART})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@[A-Za-z0-9_+.-]+:[0-9a-fA-F]{{32,}})?",
    re.ASCII,
)
_NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def field_map(obj: Object, field: str) -> Object:
    """The map in a field, made if there is none; what is no map is left for validation to refuse."""
    value = obj.get(field)
    if value is None:
        value = obj[field] = {}
    return value if isinstance(value, dict) else {}


def default_pod(pod: Object) -> None:
    """Defaults of a pod: those of a template, and a few that templates do not have."""
    spec = field_map(pod, "spec")
    for container in children(spec, "containers") + children(spec, "initContainers"):
        resources = field_map(container, "resources")
        if isinstance(resources.get("limits"), dict):
            requests = field_map(resources, "requests")
            for name, quantity in resources["limits"].items():
                requests.setdefault(name, quantity)
    _pod_resources(spec)
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("hostNetwork"):
        for container in children(spec, "containers") + children(spec, "initContainers"):
            for port in children(container, "ports"):
                if "containerPort" in port and not port.get("hostPort"):
                    port["hostPort"] = port["containerPort"]


def _pod_resources(spec: Object) -> None:
    """What a pod with amounts of its own asks for: what its containers do, or else what it is limited to."""
    own = spec.get("resources")
    if not isinstance(own, dict) or not (own.get("limits") or own.get("requests")):
        return
    limits, requests = field_map(own, "limits"), field_map(own, "requests")
    for name, total in container_limits(spec).items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, text_of(name, total))
    if limits:
        for name, total in container_requests(spec).items():
            if is_pod_level(name) and is_overcommitted(name):
                requests.setdefault(name, text_of(name, total))
        for name, quantity in limits.items():
            if is_pod_level(name):
                requests.setdefault(name, quantity)
    for name in ("limits", "requests"):
        if not own[name]:
            del own[name]


def default_template(spec: Object) -> Object:
    """Defaults of the template in a workload's spec; returns the template."""
    template = field_map(spec, "template")
    field_map(template, "metadata")
    default_pod_spec(field_map(template, "spec"))
    return template


def default_pod_spec(spec: Object) -> None:
    """Defaults that pods and templates share."""
    spec["restartPolicy"] = spec.get("restartPolicy") or "Always"
    spec["dnsPolicy"] = spec.get("dnsPolicy") or "ClusterFirst"
    spec["schedulerName"] = spec.get("schedulerName") or "default-scheduler"
    spec.setdefault("terminationGracePeriodSeconds", 30)
    field_map(spec, "securityContext")
    if spec.get("serviceAccountName") or spec.get("serviceAccount"):
        name = spec.get("serviceAccountName") or spec.get("serviceAccount")
        spec["serviceAccountName"] = spec["serviceAccount"] = name
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in children(spec, kind):
            _container(container)
    for volume in children(spec, "volumes"):
        _volume(volume)


def tolerate_node_trouble(pod: Object) -> None:
    """The patience with nodes in trouble that admission gives a new pod."""
    spec = field_map(pod, "spec")
    tolerations = spec.get("tolerations") if isinstance(spec.get("tolerations"), list) else []
    for key in _NODE_TROUBLE:
        if not any(_tolerates(toleration, key) for toleration in children(spec, "tolerations")):
            patience = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations = [*(tolerations or []), patience]
    spec["tolerations"] = tolerations


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def pull_policy(image: str) -> str:
    """``Always`` for images whose tag may move: ``latest``, said or implied. What names no image moves nowhere."""
    found = _IMAGE.fullmatch(image)
    if found is None or found["digest"]:
        return "IfNotPresent"
    return "Always" if found["tag"] in (None, "latest") else "IfNotPresent"


def _container(container: Object) -> None:
    container["imagePullPolicy"] = container.get("imagePullPolicy") or pull_policy(str(container.get("image", "")))
    container["terminationMessagePath"] = container.get("terminationMessagePath") or "/dev/termination-log"
    container["terminationMessagePolicy"] = container.get("terminationMessagePolicy") or "File"
    field_map(container, "resources")
    for port in children(container, "ports"):
        port["protocol"] = port.get("protocol") or "TCP"
    for variable in children(container, "env"):
        source = variable.get("valueFrom")
        if isinstance(source, dict):
            _field_reference(source)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(name), dict):
            _probe(container[name])
    lifecycle = container.get("lifecycle")
    if isinstance(lifecycle, dict):
        for name in ("postStart", "preStop"):
            if isinstance(lifecycle.get(name), dict):
                _http(lifecycle[name])


def _field_reference(source: Object) -> None:
    if isinstance(source.get("fieldRef"), dict):
        source["fieldRef"].setdefault("apiVersion", "v1")
    if isinstance(source.get("resourceFieldRef"), dict):
        source["resourceFieldRef"].setdefault("divisor", "0")


def _probe(probe: Object) -> None:
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    for name, value in numbers.items():
        probe[name] = probe.get(name) or value
    if isinstance(probe.get("grpc"), dict):
        probe["grpc"].setdefault("service", "")
    _http(probe)


def _http(handler: Object) -> None:
    request = handler.get("httpGet")
    if isinstance(request, dict):
        request["path"] = request.get("path") or "/"
        request["scheme"] = request.get("scheme") or "HTTP"


def _volume(volume: Object) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for name in _SOURCES_WITH_MODE:
        if isinstance(volume.get(name), dict):
            volume[name].setdefault("defaultMode", 0o644)
    for name, defaults in SOURCE_DEFAULTS.items():
        if isinstance(volume.get(name), dict):
            volume[name].update({**defaults, **volume[name]})
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")
    if isinstance(volume.get("image"), dict):
        volume["image"].setdefault("pullPolicy", pull_policy(str(volume["image"].get("reference", ""))))
    if isinstance(volume.get("ephemeral"), dict):
        template = field_map(volume["ephemeral"], "volumeClaimTemplate")
        field_map(template, "metadata")
        field_map(template, "spec").setdefault("volumeMode", "Filesystem")
    downward = [volume["downwardAPI"]] if isinstance(volume.get("downwardAPI"), dict) else []
    if isinstance(volume.get("projected"), dict):
        for source in children(volume["projected"], "sources"):
            if isinstance(source.get("serviceAccountToken"), dict):
                source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
            if isinstance(source.get("downwardAPI"), dict):
                downward.append(source["downwardAPI"])
    for part in downward:
        for item in children(part, "items"):
            _field_reference(item)
