"""What subresources of pods may change: ephemeral containers are added, amounts of cpu and memory are resized."""

from __future__ import annotations

from winready_sandbox.api.errors import FieldError, forbidden_field, invalid
from winready_sandbox.api.gates import on
from winready_sandbox.api.pod_resources import quality_of_service
from winready_sandbox.api.validation.formats import Errors
from winready_sandbox.api.validation.pods import pod_and_images
from winready_sandbox.api.validation.reading import Object, children, section

_MIRROR = "kubernetes.io/config.mirror"
_RESIZABLE = ("cpu", "memory")
_WHOLE = "[]"
"""How the API server writes the path of nothing in particular."""


def pod_part(subresource: str, new: Object, old: Object, minor: int) -> list[FieldError]:
    """What is wrong with a write to a subresource of a pod."""
    check = _ephemeral_containers if subresource == "ephemeralcontainers" else _resize
    return list(check(new, old, minor))


def _static(old: Object) -> bool:
    return _MIRROR in section(section(old, "metadata"), "annotations")


def _ephemeral_containers(new: Object, old: Object, minor: int) -> Errors:
    if _static(old):
        yield forbidden_field(_WHOLE, "static pods do not support ephemeral containers")
        return
    yield from pod_and_images(new, minor)
    before = {str(c.get("name")): c for c in children(section(old, "spec"), "ephemeralContainers")}
    after = {str(c.get("name")): c for c in children(section(new, "spec"), "ephemeralContainers")}
    for name, container in before.items():
        if name not in after:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            yield forbidden_field("spec.ephemeralContainers", detail)
        elif after[name] != container:
            detail = f'existing ephemeral containers "{name}" may not be changed\n'
            yield forbidden_field("spec.ephemeralContainers", detail)


def _resize(new: Object, old: Object, minor: int) -> Errors:
    if _static(old):
        yield forbidden_field(_WHOLE, "static pods cannot be resized")
        return
    spec, before = section(new, "spec"), section(old, "spec")
    if section(before, "os").get("name") == "windows":
        yield forbidden_field(_WHOLE, "windows pods cannot be resized")
        return
    yield from pod_and_images(new, minor)
    quality = quality_of_service(spec)
    if quality != (section(old, "status").get("qosClass") or quality_of_service(before)):
        detail = "Pod QOS Class may not change as a result of resizing"
        yield invalid("spec", section(old, "status").get("qosClass"), detail)
    if not _node_resizes(old):
        yield forbidden_field("spec", "Pod running on node without support for resize")
    if any(section(each, "resources").get(kind) for each in (spec, before) for kind in ("limits", "requests")):
        if not on("InPlacePodLevelResourcesVerticalScaling", minor):
            detail = "resize of pods with pod-level resources is forbidden when"
            detail += " InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
            yield forbidden_field(_WHOLE, detail)
            return
        yield from _pod_level(spec, before)
    yield from _containers(spec, before, minor)


def _node_resizes(old: Object) -> bool:
    """Whether the node of a running pod says what its containers have; other nodes cannot resize."""
    for status in children(section(old, "status"), "containerStatuses"):
        if isinstance(section(status, "state").get("running"), dict):
            return status.get("resources") is not None
    return True


def _pod_level(spec: Object, before: Object) -> Errors:
    if before.get("resources") is not None and spec.get("resources") is None:
        yield forbidden_field("spec.resources", "pod-level resources cannot be removed")
        return
    new, old = section(spec, "resources"), section(before, "resources")
    for kind in ("requests", "limits"):
        if set(section(old, kind)) - set(section(new, kind)):
            yield forbidden_field(f"spec.resources.{kind}", f"pod-level resource {kind} cannot be removed")
    if _kept(new, old) != _kept(old, old):
        yield forbidden_field("spec", "only cpu and memory resources are mutable at pod-level")


def _kept(resources: Object, old: Object) -> Object:
    """Amounts with those of cpu and memory as they were."""
    kept: Object = {key: value for key, value in resources.items() if key not in ("limits", "requests")}
    for kind in ("limits", "requests"):
        fixed = {name: value for name, value in section(resources, kind).items() if name not in _RESIZABLE}
        fixed |= {name: value for name, value in section(old, kind).items() if name in _RESIZABLE}
        if fixed:
            kept[kind] = fixed
    return kept


def _containers(spec: Object, before: Object, minor: int) -> Errors:
    for kind, what in (("containers", "containers"), ("initContainers", "initContainers")):
        new, old = children(spec, kind), children(before, kind)
        if len(new) != len(old):
            yield forbidden_field(f"spec.{kind}", f"{what} may not be added or removed on resize")
            return
        for i, (after, was) in enumerate(zip(new, old, strict=True)):
            if after.get("name") != was.get("name"):
                detail = f"{what} may not be renamed or reordered on resize"
                yield forbidden_field(f"spec.{kind}[{i}].name", detail)
                return
    for i, (after, was) in enumerate(
        zip(children(spec, "initContainers"), children(before, "initContainers"), strict=True)
    ):
        here, sidecar = f"spec.initContainers[{i}]", was.get("restartPolicy") == "Always"
        if sidecar or on("InPlacePodVerticalScalingInitContainers", minor):
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            yield from _container(after, was, here, here, detail)
        elif after != was:
            yield forbidden_field("spec", "resources for non-sidecar init containers are immutable")
    for i, (after, was) in enumerate(zip(children(spec, "containers"), children(before, "containers"), strict=True)):
        detail = "only cpu and memory resources are mutable"
        yield from _container(after, was, f"spec.containers[{i}]", "spec", detail)


def _container(after: Object, was: Object, here: str, field: str, detail: str) -> Errors:
    new, old = section(after, "resources"), section(was, "resources")
    for kind in ("requests", "limits"):
        if set(section(old, kind)) - set(section(new, kind)):
            yield forbidden_field(f"{here}.resources.{kind}", f"resource {kind} cannot be removed")
    rest = {key: value for key, value in after.items() if key not in ("resources", "resizePolicy")}
    same = {key: value for key, value in was.items() if key not in ("resources", "resizePolicy")}
    if rest != same or _kept(new, old) != _kept(old, old):
        yield forbidden_field(field, detail)
