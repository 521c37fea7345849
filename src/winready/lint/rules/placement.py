"""Rules about where pods go."""

from __future__ import annotations

from collections.abc import Iterator

from winready.lint.context import BUILD_LABEL, OS_LABELS, Facts, Taint
from winready.lint.images import build_of, is_windows
from winready.lint.objects import Pod, dig, items, mapping
from winready.lint.rules import Hit, pod_check
from winready.lint.target import Target, selected, windows_toleration

_SPEC = ("spec",)


@pod_check("os-field-missing")
def os_field_missing(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    yield Hit(target.path, f"the pod is meant for Windows ({target.evidence}) and does not declare it")


@pod_check("os-field-invalid-value")
def os_field_invalid_value(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.spec.get("os") is not None:
        name = dig(pod.spec, "os", "name")
        if name not in ("linux", "windows"):
            yield Hit(("spec", "os", "name"), f"spec.os.name is {name!r}" if name else "spec.os has no name")


@pod_check("os-field-without-node-selector")
def os_field_without_node_selector(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if target.declared and not target.placed and selected(pod) is None:
        yield Hit(("spec", "os", "name"))


@pod_check("os-field-selector-conflict")
def os_field_selector_conflict(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    found = selected(pod)
    if target.declared and found is not None and found[0] != target.os:
        yield Hit(found[1], f"spec.os.name says {target.os}, the node selector {found[0]}")


@pod_check("os-pod-label-mismatch")
def os_pod_label_mismatch(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    label = pod.labels.get("kubernetes.io/os")
    if label is not None and target.os and (target.declared or target.placed) and label != target.os:
        detail = f"the pod is labelled kubernetes.io/os: {label}, but goes to {target.os} nodes"
        yield Hit(("metadata", "labels", "kubernetes.io/os"), detail)


@pod_check("sched-windows-image-unpinned")
def windows_image_unpinned(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if target.declared or target.placed:
        return
    for container in pod.containers:
        if is_windows(container.image):
            yield Hit(
                (*container.path, "image"), f"{container.image} is a Windows image, but nothing selects Windows nodes"
            )


@pod_check("sched-linux-workload-unpinned")
def linux_workload_unpinned(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if (
        facts.profile.has_windows_nodes
        and not facts.profile.taints
        and not target.os
        and pod.object.kind != "DaemonSet"
    ):
        yield Hit(_SPEC)


@pod_check("sched-daemonset-unpinned")
def daemonset_unpinned(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.object.kind == "DaemonSet" and not target.placed and not any(is_windows(c.image) for c in pod.containers):
        yield Hit(_SPEC)


@pod_check("sched-missing-toleration")
def missing_toleration(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    missing = missing_tolerations(pod, facts)
    if missing:
        yield Hit(_toleration_path(pod), f"no toleration for the taint {missing[0]} of the Windows nodes", "error")
    elif not facts.profile.taints and not any(map(_may_be_meant, _tolerations(pod, facts))):
        yield Hit(_toleration_path(pod))


def _may_be_meant(toleration: object) -> bool:
    return windows_toleration(toleration) or (dig(toleration, "operator") == "Exists" and not dig(toleration, "key"))


def missing_tolerations(pod: Pod, facts: Facts) -> list[Taint]:
    """The known taints of Windows nodes that a pod does not tolerate."""
    present = _tolerations(pod, facts)
    return [
        taint
        for taint in facts.profile.taints
        if taint.effect != "PreferNoSchedule" and not any(map(taint.tolerated_by, present))
    ]


def _tolerations(pod: Pod, facts: Facts) -> list[object]:
    return [*items(pod.spec, "tolerations"), *items(facts.runtime_class(pod), "scheduling", "tolerations")]


def _toleration_path(pod: Pod) -> tuple[str, ...]:
    return ("spec", "tolerations") if "tolerations" in pod.spec else _SPEC


@pod_check("sched-toleration-only")
def toleration_only(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if target.placed or any(is_windows(container.image) for container in pod.containers):
        return
    for index, toleration in enumerate(items(pod.spec, "tolerations")):
        if windows_toleration(toleration):
            yield Hit(("spec", "tolerations", index))
            return


@pod_check("sched-windows-build-unpinned")
def windows_build_unpinned(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if len(set(facts.profile.builds)) < 2 or pod.host_process or BUILD_LABEL in mapping(pod.spec, "nodeSelector"):
        return
    if dig(facts.runtime_class(pod), "scheduling", "nodeSelector", BUILD_LABEL) is not None:
        return
    for container in pod.containers:
        if (build := build_of(container.image)) is not None:
            yield Hit(
                (*container.path, "image"), f"{container.image} is for build 10.0.{build}, and the cluster has others"
            )
            return


@pod_check("rc-selector-conflict")
def runtime_class_conflict(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    class_selector = mapping(facts.runtime_class(pod), "scheduling", "nodeSelector")
    for key, value in mapping(pod.spec, "nodeSelector").items():
        if key in class_selector and class_selector[key] != value:
            name = pod.spec.get("runtimeClassName")
            detail = f"the pod selects {key}: {value}, its RuntimeClass {name} {class_selector[key]}"
            yield Hit(("spec", "nodeSelector", key), detail)


@pod_check("rc-hyperv-handler")
def hyperv_runtime_class(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if "runtimeClassName" in pod.spec and uses_hyperv(pod, facts):
        yield Hit(("spec", "runtimeClassName"))


def uses_hyperv(pod: Pod, facts: Facts) -> bool:
    """Whether the RuntimeClass of a pod isolates by Hyper-V, by its handler or, when unknown, its name."""
    handler = facts.runtime_class(pod).get("handler") or pod.spec.get("runtimeClassName")
    return isinstance(handler, str) and ("hyperv" in handler.lower() or "hypervisor" in handler.lower())


def stable_label(label: str) -> str:
    """The label that replaces a deprecated one."""
    return label.removeprefix("beta.") if label in (*OS_LABELS, "beta.kubernetes.io/arch") else label
