"""Files that volumes are filled with: keys of secrets and config maps, facts about the pod, tokens."""

from __future__ import annotations

from winready_sandbox.api.errors import invalid, not_supported, required
from winready_sandbox.api.validation.formats import Errors, qualified_name
from winready_sandbox.api.validation.reading import Object, children, items, section

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_FIELD_PATHS = ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"]
_OTHER_FIELD_PATHS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_RESOURCES = ["limits.cpu", "limits.ephemeral-storage", "limits.memory"]
_RESOURCES += ["requests.cpu", "requests.ephemeral-storage", "requests.memory"]
_CPU_DIVISORS = ("1m", "1")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def mode(value: object, field: str) -> Errors:
    """Permissions of a file."""
    if isinstance(value, int) and not 0 <= value <= 0o777:
        yield invalid(field, value, _MODE)


def relative_path(target: str, field: str) -> Errors:
    """A path that stays below where it starts."""
    if target.startswith("/"):
        yield invalid(field, target, "must be a relative path")
    yield from no_backsteps(target, field)


def no_backsteps(target: str, field: str) -> Errors:
    """A path that never goes up."""
    if ".." in target.split("/"):
        yield invalid(field, target, "must not contain '..'")


def _target(target: str, field: str) -> Errors:
    """Where a file goes; names that begin with two dots are the kubelet's."""
    yield from relative_path(target, field)
    if target.startswith("..") and not target.startswith("../"):
        yield invalid(field, target, "must not start with '..'")


def files(source: Object, path: str) -> Errors:
    """Which keys become which files."""
    for i, item in enumerate(children(source, "items")):
        yield from _file(item, f"{path}.items[{i}]")


def _file(item: Object, here: str) -> Errors:
    if not item.get("key"):
        yield required(f"{here}.key")
    target = str(item.get("path") or "")
    if not target:
        yield required(f"{here}.path")
    yield from _target(target, f"{here}.path")
    yield from mode(item.get("mode"), f"{here}.mode")


def downward_api(source: Object, path: str) -> Errors:
    """Facts about the pod as files."""
    yield from mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in children(source, "items"):
        yield from _fact(item, path)


def _fact(item: Object, path: str) -> Errors:
    # The API server names the list here, not the item.
    target = str(item.get("path") or "")
    if not target:
        yield required(f"{path}.path")
    yield from _target(target, f"{path}.path")
    if item.get("fieldRef") is not None:
        yield from field_reference(section(item, "fieldRef"), f"{path}.fieldRef", _FIELD_PATHS, _OTHER_FIELD_PATHS)
        if item.get("resourceFieldRef") is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif item.get("resourceFieldRef") is not None:
        yield from resource_reference(section(item, "resourceFieldRef"), f"{path}.resourceFieldRef", volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from mode(item.get("mode"), f"{path}.mode")


def field_reference(reference: Object, path: str, allowed: list[str], others: tuple[str, ...]) -> Errors:
    """A field of the pod: one of those that are offered here, or at least one that can be selected by."""
    if not reference.get("apiVersion"):
        yield required(f"{path}.apiVersion")
        return
    wanted = str(reference.get("fieldPath") or "")
    base, bracket, key = wanted.partition("['")
    if not wanted:
        yield required(f"{path}.fieldPath")
    elif bracket and key.endswith("']") and base in ("metadata.labels", "metadata.annotations"):
        key = key[:-2]
        for text in qualified_name(key.lower() if base == "metadata.annotations" else key):
            yield invalid(path, key, text)
    elif wanted not in allowed:
        if wanted in others:
            yield not_supported(f"{path}.fieldPath", wanted, allowed)
        else:
            detail = "error converting fieldPath: field label not supported: " + wanted
            yield invalid(f"{path}.fieldPath", wanted, detail)


def resource_reference(reference: Object, path: str, volume: bool = False) -> Errors:
    """An amount that a container asks for or is limited to."""
    wanted = str(reference.get("resource") or "")
    if volume and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not wanted:
        yield required(f"{path}.resource")
    elif wanted not in _RESOURCES and not wanted.startswith(("limits.hugepages-", "requests.hugepages-")):
        yield not_supported(f"{path}.resource", wanted, _RESOURCES)
    divisor = str(reference.get("divisor") or "0")
    what = wanted.partition(".")[2]
    allowed = _CPU_DIVISORS if what == "cpu" else _BYTE_DIVISORS
    named = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "local ephemeral storage"}
    if divisor != "0" and divisor not in allowed and (what in named or what.startswith("hugepages-")):
        known = "1m and 1" if what == "cpu" else ", ".join(_BYTE_DIVISORS)
        detail = f"only divisor's values {known} are supported with the {named.get(what, 'hugepages')} resource"
        yield invalid(f"{path}.divisor", wanted, detail)


def projected(source: Object, path: str) -> Errors:
    """Several sources in one volume."""
    yield from mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for i, item in enumerate(items(source, "sources")):
        here = f"{path}.sources[{i}]"
        given = item if isinstance(item, dict) else {}
        for kind in ("secret", "configMap"):
            if given.get(kind) is not None:
                part = section(given, kind)
                if not part.get("name"):
                    yield required(f"{here}.{kind}.name")
                for number, each in enumerate(children(part, "items")):
                    yield from _file(each, f"{here}.{kind}.items[{number}]")
                    yield from _once(str(each.get("path") or ""), taken, path, str(part.get("name") or ""))
        if given.get("downwardAPI") is not None:
            for each in children(section(given, "downwardAPI"), "items"):
                yield from _fact(each, f"{here}.downwardAPI")
                yield from _once(str(each.get("path") or ""), taken, path, str(each.get("path") or ""))
        if given.get("serviceAccountToken") is not None:
            yield from _token(section(given, "serviceAccountToken"), path, f"{here}.serviceAccountToken")
        if len([value for value in given.values() if value is not None]) > 1:
            yield invalid(here, given, "may not specify more than 1 volume type per source")


def _once(target: str, taken: set[str], path: str, shown: str) -> Errors:
    if target and target in taken:
        yield invalid(path, shown, "conflicting duplicate paths")
    taken.add(target)


def _token(token: Object, path: str, here: str) -> Errors:
    seconds = token.get("expirationSeconds", 3600)
    if isinstance(seconds, int) and seconds < 600:
        yield invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if isinstance(seconds, int) and seconds > 2**32:
        yield invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    # The API server names the volume here, not the source.
    if not token.get("path"):
        yield required(f"{path}.path")
    else:
        yield from _target(str(token["path"]), f"{path}.path")
