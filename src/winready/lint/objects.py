"""Kubernetes objects in documents: lists taken apart, pod templates found, selectors matched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from winready.lint.fields import CONTAINER_LISTS
from winready.spec.yamlfile import Document, Path

# The kinds that rules know, with the API groups that may define them: a Service of Knative is not ours.
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Pod": ("",),
    "PodTemplate": ("",),
    "ReplicationController": ("",),
    "Service": ("",),
    "PersistentVolume": ("",),
    "PersistentVolumeClaim": ("",),
    "Namespace": ("",),
    "ResourceQuota": ("",),
    "LimitRange": ("",),
    "Deployment": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "DaemonSet": ("apps", "extensions"),
    "StatefulSet": ("apps",),
    "Job": ("batch",),
    "CronJob": ("batch",),
    "NetworkPolicy": ("networking.k8s.io", "extensions"),
    "StorageClass": ("storage.k8s.io",),
    "RuntimeClass": ("node.k8s.io",),
    "HorizontalPodAutoscaler": ("autoscaling",),
    "PriorityClass": ("scheduling.k8s.io",),
    "GMSACredentialSpec": ("windows.k8s.io",),
}
_TEMPLATE: Mapping[str, Path] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "ReplicationController", "DaemonSet", "StatefulSet", "Job"), ("spec", "template")
    ),
}
CLUSTER_SCOPED = frozenset({"PersistentVolume", "StorageClass", "RuntimeClass", "Namespace", "PriorityClass"})


def dig(value: Any, *steps: str | int) -> Any:
    """The value below ``steps``, or None wherever the way ends."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def mapping(value: Any, *steps: str | int) -> Mapping[str, Any]:
    """The mapping below ``steps``; empty when there is none."""
    found = dig(value, *steps)
    return found if isinstance(found, dict) else {}


def items(value: Any, *steps: str | int) -> list[Any]:
    """The list below ``steps``; empty when there is none."""
    found = dig(value, *steps)
    return found if isinstance(found, list) else []


class Object:
    """One Kubernetes object and its place in a file."""

    __slots__ = ("annotations", "document", "file", "kind", "name", "namespace", "path", "value")

    def __init__(self, file: str, document: Document, path: Path, value: Mapping[str, Any], default: str) -> None:
        self.file, self.document, self.path, self.value = file, document, path, value
        self.kind = str(value.get("kind"))
        metadata = mapping(value, "metadata")
        self.name = str(metadata.get("name") or metadata.get("generateName") or "")
        self.namespace = "" if self.kind in CLUSTER_SCOPED else str(metadata.get("namespace") or default)
        self.annotations = mapping(metadata, "annotations")


def objects(file: str, document: Document, default_namespace: str) -> Iterator[Object]:
    """The objects of a document that rules know; lists are taken apart, everything else is passed over."""
    for object in everything(file, document, default_namespace):
        if known(object):
            yield object


def everything(file: str, document: Document, default_namespace: str) -> Iterator[Object]:
    """The objects of a document whatever their kind; lists are taken apart."""
    pending: list[tuple[Path, Any]] = [((), document.value)]
    while pending:
        path, value = pending.pop(0)
        if not isinstance(value, dict):
            continue
        kind, version = value.get("kind"), value.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(version, str):
            continue
        if kind not in _GROUPS and kind.endswith("List") and isinstance(value.get("items"), list):
            pending += [((*path, "items", index), item) for index, item in enumerate(value["items"])]
        else:
            yield Object(file, document, path, value, default_namespace)


def known(object: Object) -> bool:
    """Whether rules know this kind of object."""
    return str(object.value["apiVersion"]).rpartition("/")[0] in _GROUPS.get(object.kind, ())


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod, with its place below the pod template."""

    path: Path
    name: str
    value: Mapping[str, Any]

    @property
    def image(self) -> str:
        image = self.value.get("image")
        return image if isinstance(image, str) else ""

    def commands(self) -> Iterator[tuple[Path, list[str]]]:
        """Everything that it runs: command, arguments, exec probes and hooks."""
        for steps in _COMMANDS:
            found = dig(self.value, *steps)
            if isinstance(found, list) and found:
                yield (*self.path, *steps), [str(part) for part in found]


_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("command",),
    ("args",),
    ("livenessProbe", "exec", "command"),
    ("readinessProbe", "exec", "command"),
    ("startupProbe", "exec", "command"),
    ("lifecycle", "postStart", "exec", "command"),
    ("lifecycle", "preStop", "exec", "command"),
)


class Pod:
    """A pod or the pod template of a workload."""

    def __init__(self, object: Object, prefix: Path, template: Mapping[str, Any]) -> None:
        self.object, self.prefix, self.template = object, prefix, template
        self.spec = mapping(template, "spec")
        self.labels = mapping(template, "metadata", "labels")

    @cached_property
    def containers(self) -> list[Container]:
        return [
            Container(("spec", name, index), str(value.get("name", "")), value)
            for name in CONTAINER_LISTS
            if name in self.spec
            for index, value in enumerate(items(self.spec, name))
            if isinstance(value, dict)
        ]

    @cached_property
    def host_process(self) -> bool:
        """Whether any container is effectively HostProcess."""
        return any(self.is_host_process(container) for container in self.containers)

    def is_host_process(self, container: Container) -> bool:
        return self.option(container, "windowsOptions", "hostProcess") is True

    def option(self, container: Container, *steps: str) -> Any:
        """A security option as the container gets it: its own, else that of the pod."""
        own = dig(container.value, "securityContext", *steps)
        return own if own is not None else dig(self.spec, "securityContext", *steps)


def template_path(value: Mapping[str, Any]) -> Path | None:
    """Where the pod template of an object stands, if its kind has one."""
    return _TEMPLATE.get(str(value.get("kind")))


def pod_of(object: Object) -> Pod | None:
    """The pod template of an object, if it has one."""
    if object.kind not in _TEMPLATE:
        return None
    prefix = _TEMPLATE[object.kind]
    template = dig(object.value, *prefix) if prefix else object.value
    return (
        Pod(object, prefix, template) if isinstance(template, dict) and isinstance(template.get("spec"), dict) else None
    )


def selects(selector: Any, labels: Mapping[str, Any]) -> bool:
    """Whether a label selector (matchLabels and matchExpressions) takes these labels; an empty one takes all."""
    for key, value in mapping(selector, "matchLabels").items():
        if labels.get(key) != value:
            return False
    for expression in items(selector, "matchExpressions"):
        key, operator, values = (
            str(dig(expression, "key")),
            str(dig(expression, "operator")),
            items(expression, "values"),
        )
        present = key in labels
        wanted = present and labels[key] in values
        if not {"In": wanted, "NotIn": not wanted, "Exists": present, "DoesNotExist": not present}.get(operator, True):
            return False
    return True
