"""Where a container has its volumes: mounted in a place of their own, or as raw devices."""

from __future__ import annotations

from collections.abc import Mapping

from winready_sandbox.api.errors import forbidden_field, invalid, not_found_value, not_supported, required
from winready_sandbox.api.validation.formats import Errors
from winready_sandbox.api.validation.projections import no_backsteps, relative_path
from winready_sandbox.api.validation.reading import Object, children, section

_PROPAGATIONS = ["Bidirectional", "HostToContainer", "None"]
_RECURSIVE = ["Disabled", "Enabled", "IfPossible"]


def mounts(container: Object, known: Mapping[str, Object], path: str) -> Errors:
    """Mounts of a container: known volumes, each place used once."""
    places: set[str] = set()
    devices = {
        str(device.get("name")): str(device.get("devicePath")) for device in children(container, "volumeDevices")
    }
    for i, mount in enumerate(children(container, "volumeMounts")):
        here = f"{path}.volumeMounts[{i}]"
        name, place = str(mount.get("name") or ""), str(mount.get("mountPath") or "")
        if not name:
            yield required(f"{here}.name")
        if name not in known:
            yield not_found_value(f"{here}.name", name)
        if not place:
            yield required(f"{here}.mountPath")
        if place in places:
            yield invalid(f"{here}.mountPath", place, "must be unique")
        places.add(place)
        if name in devices:
            yield invalid(f"{here}.name", name, "must not already exist in volumeDevices")
        if place in devices.values():
            yield invalid(f"{here}.mountPath", place, "must not already exist as a path in volumeDevices")
        yield from _part(mount, here, path)
        yield from _sharing(mount, container, path)


def _part(mount: Object, here: str, path: str) -> Errors:
    sub_path, expression = str(mount.get("subPath") or ""), str(mount.get("subPathExpr") or "")
    # The API server names the list here, not the item.
    yield from relative_path(sub_path, f"{path}.volumeMounts.subPath")
    if sub_path and expression:
        yield invalid(f"{here}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
    yield from relative_path(expression, f"{path}.volumeMounts.subPathExpr")


def _sharing(mount: Object, container: Object, path: str) -> Errors:
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    field = f"{path}.volumeMounts.mountPropagation"
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            yield not_supported(field, propagation, _PROPAGATIONS)
        if propagation == "Bidirectional" and not section(container, "securityContext").get("privileged"):
            yield forbidden_field(field, "Bidirectional mount propagation is available only to privileged containers")
    field = f"{path}.volumeMounts.recursiveReadOnly"
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden_field(field, "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            yield forbidden_field(field, "may only be specified when mountPropagation is None or not specified")
    elif recursive not in (None, "Disabled"):
        yield not_supported(field, recursive, _RECURSIVE)


def devices(container: Object, known: Mapping[str, Object], path: str) -> Errors:
    """Raw devices of a container: claims, each in a place of its own."""
    places: set[str] = set()
    names: set[str] = set()
    mounted = {str(mount.get("name")): str(mount.get("mountPath")) for mount in children(container, "volumeMounts")}
    for i, device in enumerate(children(container, "volumeDevices")):
        here = f"{path}.volumeDevices[{i}]"
        name, place = str(device.get("name") or ""), str(device.get("devicePath") or "")
        volume = known.get(name)
        if not name:
            yield required(f"{here}.name")
        if name in names:
            yield invalid(f"{here}.name", name, "must be unique")
        if volume is None:
            yield not_found_value(f"{here}.name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{here}.name", name, detail)
        if not place:
            yield required(f"{here}.devicePath")
        if place in places:
            yield invalid(f"{here}.devicePath", place, "must be unique")
        if place and any(True for _ in no_backsteps(place, here)):
            yield invalid(f"{here}.devicePath", place, "can not contain backsteps ('..')")
        else:
            places.add(place)
        if name in mounted:
            yield invalid(f"{here}.name", name, "must not already exist in volumeMounts")
        if place in mounted.values():
            yield invalid(f"{here}.devicePath", place, "must not already exist as a path in volumeMounts")
        names.add(name)
