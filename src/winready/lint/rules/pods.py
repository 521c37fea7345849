"""Rules about whole pods: resources, volumes, kinds."""

from __future__ import annotations

from collections.abc import Iterator

from winready.lint.context import Facts
from winready.lint.objects import Pod, dig, items, mapping
from winready.lint.rules import Hit, pod_check
from winready.lint.rules.security import options
from winready.lint.target import Target

_ISTIO, _REVISION = "sidecar.istio.io/inject", "istio.io/rev"
_ASKING = {
    _ISTIO: ("true",),
    "linkerd.io/inject": ("enabled", "ingress"),
    "vault.hashicorp.com/agent-inject": ("true",),
}
"""Annotations, of Istio labels as well, by which pods ask for a sidecar."""


@pod_check("pod-sidecar-injection")
def sidecar_injection(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    metadata = mapping(pod.template, "metadata")
    for part in ("labels", "annotations"):
        for key, value in mapping(metadata, part).items():
            # The annotation of this name is written by Istio, after it has been asked.
            revision = key == _REVISION and part == "labels"
            asked = revision or (key in _ASKING and str(value).lower() in _ASKING[key])
            if asked and (not _spared_by_istio(pod) if revision or key == _ISTIO else part == "annotations"):
                yield Hit(("metadata", part, key), f"{key}: {value} asks for a sidecar")
                return
    labels = facts.namespaces.get(pod.object.namespace)
    if labels and (labels.get("istio-injection") == "enabled" or _REVISION in labels) and not _spared_by_istio(pod):
        yield Hit(target.path, f"namespace {pod.object.namespace} has Istio add a sidecar to every pod")


def _spared_by_istio(pod: Pod) -> bool:
    refused = [dig(pod.template, "metadata", part, _ISTIO) for part in ("labels", "annotations")]
    return pod.spec.get("hostNetwork") is True or any(str(value).lower() == "false" for value in refused)


@pod_check("res-missing-limits")
def missing_limits(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.host_process or str(pod.spec.get("priorityClassName", "")).startswith("system-"):
        return
    for container in pod.containers:
        if container.path[1] != "containers":
            continue
        missing = [name for name in ("cpu", "memory") if name not in mapping(container.value, "resources", "limits")]
        if missing:
            yield Hit(
                (*container.path, "resources", "limits"),
                f"container {container.name} has no {' and no '.join(missing)} limit",
            )


@pod_check("pod-multi-container")
def multi_container(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if len(pod.containers) > 1:
        yield Hit(("spec", "containers"))


@pod_check("vol-projected-ownership")
def projected_ownership(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if not any(True for _ in options(pod, "runAsUserName")):
        return
    for index, volume in enumerate(items(pod.spec, "volumes")):
        if mapping(volume, "projected"):
            yield Hit(("spec", "volumes", index, "projected"))


@pod_check("kinds-workload-controllers")
def workload_controllers(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.object.kind not in ("Pod", "PodTemplate"):
        yield Hit(())
