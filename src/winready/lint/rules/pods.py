"""Rules about whole pods: resources, volumes, kinds."""

from __future__ import annotations

from collections.abc import Iterator

from winready.lint.context import Facts
from winready.lint.objects import Pod, items, mapping
from winready.lint.rules import Hit, pod_check
from winready.lint.rules.security import options
from winready.lint.target import Target


@pod_check("res-missing-limits")
def missing_limits(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
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
