"""Is this pod meant for Windows? Surely, by inference, or not at all.

Only ``spec.os`` is a declaration. Selectors, affinity and RuntimeClasses lead a pod to Windows nodes and are strong
evidence; tolerations, windowsOptions and image names are weak: they do not place anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from winready.lint.context import BUILD_LABEL, OS_LABELS, Facts
from winready.lint.images import is_windows
from winready.lint.objects import Pod, dig, items, mapping
from winready.spec.yamlfile import Path

_REQUIRED: Path = (
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)
_WINDOWS_HANDLER = re.compile(r"(?i)^runhcs|windows|wcow")
_WINDOWS_TAINT = re.compile(r"(?i)^win")
_TAINT_KEYS = frozenset({"os", "kubernetes.io/os", "node.kubernetes.io/os", "windows", "platform"})


@dataclass(frozen=True, slots=True)
class Target:
    """The verdict: the operating system, how it is known, and whether the pod is led there."""

    os: str  # "windows", "linux" or "" when nothing tells
    declared: bool = False
    placed: bool = False
    evidence: str = ""
    path: Path = ()
    # Evidence that neither places nor declares, but that an image cannot fake.
    by_image: bool = False

    @property
    def windows(self) -> bool:
        return self.os == "windows"

    @property
    def sure(self) -> bool:
        """Sure enough to change a manifest: declared, placed, or all images are Windows images."""
        return self.declared or self.placed or self.by_image


def decide(pod: Pod, facts: Facts) -> Target:
    """The operating system that a pod is meant for."""
    placements = list(_placements(pod, facts))
    name = dig(pod.spec, "os", "name")
    if isinstance(name, str) and name.lower() in ("windows", "linux"):
        placed = any(system == name.lower() for system, _, _ in placements)
        return Target(name.lower(), True, placed, f"spec.os.name: {name}", ("spec", "os", "name"))
    if placements:
        system, evidence, path = placements[0]
        return Target(system, False, True, evidence, path)
    return _weak(pod)


def selected(pod: Pod) -> tuple[str, Path] | None:
    """The operating system that the node selector itself names."""
    for label in OS_LABELS:
        value = dig(pod.spec, "nodeSelector", label)
        if isinstance(value, str):
            return value, ("spec", "nodeSelector", label)
    return None


def _placements(pod: Pod, facts: Facts) -> Iterator[tuple[str, str, Path]]:
    """Everything that leads the pod to nodes of one operating system."""
    if (found := selected(pod)) is not None:
        yield found[0], f"nodeSelector {found[1][-1]}: {found[0]}", found[1]
    if (build := dig(pod.spec, "nodeSelector", BUILD_LABEL)) is not None:
        yield "windows", f"nodeSelector {BUILD_LABEL}: {build}", ("spec", "nodeSelector", BUILD_LABEL)
    if "affinity" in pod.spec:
        yield from _affinity(pod)
    if "runtimeClassName" in pod.spec:
        yield from _runtime_class(pod, facts)


def _affinity(pod: Pod) -> Iterator[tuple[str, str, Path]]:
    terms = items(pod.template, *_REQUIRED)
    found = [next(_expressions(term), None) for term in terms]
    if not found or any(one is None for one in found) or len({one[0] for one in found if one}) != 1:
        return  # terms are alternatives: only what all of them ask for is certain
    system, index = found[0] or ("", 0)
    path = (*_REQUIRED, 0, "matchExpressions", index, "key")
    yield system, f"required node affinity to {system}", path


def _expressions(term: Any) -> Iterator[tuple[str, int]]:
    for index, expression in enumerate(items(term, "matchExpressions")):
        key, operator, values = dig(expression, "key"), dig(expression, "operator"), items(expression, "values")
        if key == BUILD_LABEL and operator in ("In", "Exists"):
            yield "windows", index
        elif key in OS_LABELS:
            if operator == "In" and len(values) == 1:
                yield str(values[0]), index
            elif operator == "NotIn" and values in (["windows"], ["linux"]):
                yield ("linux" if values == ["windows"] else "windows"), index


def _runtime_class(pod: Pod, facts: Facts) -> Iterator[tuple[str, str, Path]]:
    name, path = str(pod.spec["runtimeClassName"]), ("spec", "runtimeClassName")
    known = facts.runtime_class(pod)
    for label in OS_LABELS:
        if isinstance(system := dig(known, "scheduling", "nodeSelector", label), str):
            yield system, f"RuntimeClass {name} selects {system} nodes", path
            return
    if dig(known, "scheduling", "nodeSelector", BUILD_LABEL) is not None:
        yield "windows", f"RuntimeClass {name} selects a Windows build", path
    elif known and looks_windows(known):
        return  # it looks like Windows but selects nothing: rc-os-selector says so
    elif not known and _WINDOWS_HANDLER.search(name):
        yield "windows", f"runtimeClassName: {name}", path


def looks_windows(runtime_class: Mapping[str, Any]) -> bool:
    """Whether the handler or the name of a RuntimeClass sounds like Windows."""
    name = str(dig(runtime_class, "metadata", "name") or "")
    return bool(_WINDOWS_HANDLER.search(str(runtime_class.get("handler") or "")) or _WINDOWS_HANDLER.search(name))


def windows_toleration(toleration: Any) -> bool:
    """Whether a toleration looks made for Windows nodes."""
    key, value = dig(toleration, "key"), dig(toleration, "value")
    if not isinstance(key, str):
        return False
    if isinstance(value, str) and _WINDOWS_TAINT.match(value):
        return key in _TAINT_KEYS or "os" in re.split(r"[./-]", key)
    return key == "windows" or key.endswith("/windows")


def _weak(pod: Pod) -> Target:
    for index, toleration in enumerate(items(pod.spec, "tolerations")):
        if windows_toleration(toleration):
            return _by_image(pod, f"toleration for {toleration.get('key')}", ("spec", "tolerations", index))
    if mapping(pod.spec, "securityContext", "windowsOptions"):
        return _by_image(pod, "windowsOptions", ("spec", "securityContext", "windowsOptions"))
    for container in pod.containers:
        if "securityContext" in container.value and mapping(container.value, "securityContext", "windowsOptions"):
            return _by_image(pod, "windowsOptions", (*container.path, "securityContext", "windowsOptions"))
    for container in pod.containers:
        if is_windows(container.image):
            return _by_image(pod, f"image {container.image}", (*container.path, "image"))
    return Target("")


def _by_image(pod: Pod, evidence: str, path: Path) -> Target:
    images = [container.image for container in pod.containers]
    return Target("windows", evidence=evidence, path=path, by_image=bool(images) and all(map(is_windows, images)))
