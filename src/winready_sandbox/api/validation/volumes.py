"""Volumes of pods and what mounts them."""

from __future__ import annotations

from winready_sandbox.api.errors import duplicate, forbidden_field, invalid, not_found_value, not_supported, required
from winready_sandbox.api.validation.formats import Errors, at, dns_label
from winready_sandbox.api.validation.reading import Object, children, section

_HOST_PATH_TYPES = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def volumes(spec: Object, path: str) -> Errors:
    """Every volume has a name of its own and exactly one source."""
    names: set[str] = set()
    for i, volume in enumerate(children(spec, "volumes")):
        here = f"{path}.volumes[{i}]"
        yield from _source(volume, here)
        name = str(volume.get("name") or "")
        if not name:
            yield required(f"{here}.name")
        else:
            yield from at(f"{here}.name", name, dns_label(name))
        if name in names:
            yield duplicate(f"{here}.name", name)
        names.add(name)


def _source(volume: Object, here: str) -> Errors:
    sources = [field for field, value in volume.items() if field != "name" and value is not None]
    if not sources:
        yield required(here, "must specify a volume type")
    for extra in sources[1:]:
        yield forbidden_field(f"{here}.{extra}", "may not specify more than 1 volume type")
    for field in sources[:1]:
        source = section(volume, field)
        path = f"{here}.{field}"
        if field == "hostPath":
            yield from _host_path(source, path)
        elif field == "persistentVolumeClaim" and not source.get("claimName"):
            yield required(f"{path}.claimName")
        elif field == "secret":
            if not source.get("secretName"):
                yield required(f"{path}.secretName")
            yield from _files(source, path)
        elif field == "configMap":
            if not source.get("name"):
                yield required(f"{path}.name")
            yield from _files(source, path)
        elif field in ("projected", "downwardAPI"):
            yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
        elif field == "csi" and not source.get("driver"):
            yield required(f"{path}.driver")
        elif field == "nfs":
            for name in ("server", "path"):
                if not source.get(name):
                    yield required(f"{path}.{name}")


def _host_path(source: Object, path: str) -> Errors:
    target = str(source.get("path") or "")
    if not target:
        yield required(f"{path}.path")
        return
    yield from _no_backsteps(target, f"{path}.path")
    if source.get("type", "") not in _HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", source.get("type"), _HOST_PATH_TYPES)


def _files(source: Object, path: str) -> Errors:
    yield from _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for i, item in enumerate(children(source, "items")):
        here = f"{path}.items[{i}]"
        if not item.get("key"):
            yield required(f"{here}.key")
        target = str(item.get("path") or "")
        if not target:
            yield required(f"{here}.path")
        yield from relative_path(target, f"{here}.path")
        yield from _mode(item.get("mode"), f"{here}.mode")


def _mode(value: object, field: str) -> Errors:
    if isinstance(value, int) and not 0 <= value <= 0o777:
        yield invalid(field, value, _MODE)


def relative_path(target: str, field: str) -> Errors:
    """A path that stays below where it starts."""
    if target.startswith("/"):
        yield invalid(field, target, "must be a relative path")
    yield from _no_backsteps(target, field)


def _no_backsteps(target: str, field: str) -> Errors:
    if ".." in target.split("/"):
        yield invalid(field, target, "must not contain '..'")


def mounts(container: Object, known: set[str], path: str) -> Errors:
    """Mounts of a container: known volumes, each place used once."""
    places: set[str] = set()
    devices = {
        str(device.get("devicePath")): str(device.get("name")) for device in children(container, "volumeDevices")
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
        if name in devices.values():
            yield invalid(f"{here}.name", name, "must not already exist in volumeDevices")
        if place in devices:
            yield invalid(f"{here}.mountPath", place, "must not already exist as a path in volumeDevices")
        sub_path, expression = str(mount.get("subPath") or ""), str(mount.get("subPathExpr") or "")
        # The API server names the list here, not the item.
        yield from relative_path(sub_path, f"{path}.volumeMounts.subPath")
        if sub_path and expression:
            yield invalid(f"{here}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        yield from relative_path(expression, f"{path}.volumeMounts.subPathExpr")
