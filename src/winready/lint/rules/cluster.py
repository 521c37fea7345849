"""Rules that only a cluster can answer: what a pod refers to and where it could go are there, or they are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from winready.lint.context import Facts
from winready.lint.fitting import Fitting
from winready.lint.objects import Pod, dig, items
from winready.lint.rules import Hit, View, object_check, pod_check
from winready.lint.rules.placement import missing_tolerations
from winready.lint.rules.security import options
from winready.lint.target import Target
from winready.spec.yamlfile import Path

_SYSTEM = ("system-node-critical", "system-cluster-critical")
_NAMED = 4
"""Nodes that are named one by one."""


@pod_check("sched-no-node")
def no_node(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    nodes = facts.profile.has.nodes
    if not nodes or not target.windows or missing_tolerations(pod, facts):
        return
    fitting = Fitting(pod, facts)
    obstacles = [fitting.obstacle(node) for node in nodes]
    found = [one for one in obstacles if one is not None]
    if len(found) < len(nodes):
        return
    told = [f"{node.name}: {one.reason}" for node, one in zip(nodes, found, strict=True)]
    more = f"; and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    yield Hit(found[0].path, f"no Windows node takes the pod ({'; '.join(told[:_NAMED])}{more})")


@pod_check("rc-unknown")
def unknown_runtime_class(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    name = pod.spec.get("runtimeClassName")
    if facts.profile.has.runtime_classes and isinstance(name, str) and name and name not in facts.runtime_classes:
        yield Hit(("spec", "runtimeClassName"), f"the cluster has no RuntimeClass {name}")


@pod_check("sched-priority-unknown")
def unknown_priority_class(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    there, name = facts.profile.has.priority_classes, pod.spec.get("priorityClassName")
    if there is None or not isinstance(name, str) or not name:
        return
    if name not in (*_SYSTEM, *there, *facts.priority_classes):
        yield Hit(("spec", "priorityClassName"), f"the cluster has no PriorityClass {name}")


@pod_check("gmsa-spec-unknown")
def unknown_credential_spec(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    there = facts.profile.has.credential_specs
    for path, name in options(pod, "gmsaCredentialSpecName"):
        if there is not None and isinstance(name, str) and name not in {*there, *facts.credential_specs}:
            yield Hit(path, f"the cluster has no GMSACredentialSpec {name}")


@object_check("vol-class-unknown")
def unknown_class_of_claim(view: View) -> Iterator[Hit]:
    yield from _unknown_class(view.facts, view.value, view.prefix)


@pod_check("vol-class-unknown")
def unknown_class_of_ephemeral(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    for path, claim in _ephemeral(pod):
        yield from _unknown_class(facts, claim, path)


def _unknown_class(facts: Facts, claim: Any, path: Path) -> Iterator[Hit]:
    there, by_hand = facts.profile.has.storage_classes, facts.profile.has.volume_classes
    name = dig(claim, "spec", "storageClassName")
    # An empty name, or that of a volume, asks for a volume that somebody made by hand.
    if there is None or by_hand is None or name == "" or dig(claim, "spec", "volumeName"):
        return
    if name is None and not any(one.default for one in (*there.values(), *facts.classes.values())):
        detail = "the claim names no StorageClass, and the cluster has no default one"
        yield Hit((*path, "spec"), detail)
    elif name is not None and str(name) not in {*there, *facts.classes, *by_hand, *facts.volume_classes}:
        yield Hit((*path, "spec", "storageClassName"), f"the cluster has neither StorageClass {name} nor volumes of it")


@object_check("vol-csi-not-on-windows")
def driver_of_claim(view: View) -> Iterator[Hit]:
    yield from _driver_of_class(view.facts, view.value, view.prefix)


@pod_check("vol-csi-not-on-windows")
def driver_of_volume(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    for path, claim in _ephemeral(pod):
        yield from _driver_of_class(facts, claim, path)
    for index, volume in enumerate(items(pod.spec, "volumes")):
        driver = dig(volume, "csi", "driver")
        if driver in facts.profile.has.drivers_elsewhere:
            yield Hit(("spec", "volumes", index, "csi", "driver"), _elsewhere(driver))


def _driver_of_class(facts: Facts, claim: Any, path: Path) -> Iterator[Hit]:
    classes = {**(facts.profile.has.storage_classes or {}), **facts.classes}
    name = dig(claim, "spec", "storageClassName")
    chosen = [one for key, one in classes.items() if (one.default if name is None else key == name)]
    # Of several default classes the newest is taken, which is not known here.
    if chosen and all(one.provisioner in facts.profile.has.drivers_elsewhere for one in chosen):
        place = (*path, "spec", "storageClassName") if name is not None else (*path, "spec")
        yield Hit(place, _elsewhere(chosen[0].provisioner))


def _elsewhere(driver: str) -> str:
    return f"the CSI driver {driver} is on other nodes of the cluster and on no Windows node"


def _ephemeral(pod: Pod) -> Iterator[tuple[Path, Any]]:
    for index, volume in enumerate(items(pod.spec, "volumes")):
        if claim := dig(volume, "ephemeral", "volumeClaimTemplate"):
            yield ("spec", "volumes", index, "ephemeral", "volumeClaimTemplate"), claim
