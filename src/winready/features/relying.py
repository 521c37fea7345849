"""What each workload for Windows relies on, with the line that needs it, and the fields that Windows does not take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from winready.engine.workloads import FieldFinding, Need, Workload
from winready.features import names, table
from winready.features.manifests import Manifests, Placed, line_of
from winready.lint.fields import dotted
from winready.lint.finding import Finding
from winready.lint.objects import Container, Object, Pod, dig, items, mapping
from winready.lint.run import Run, Settings
from winready.spec.yamlfile import Path

Hit = tuple[str, Object, Path]
"""An id, and the field of an object that relies on it."""

Calls = dict[tuple[str, str, str], list[tuple[Object, Path]]]
"""The fields that name a service, by its kind, namespace and name."""

OF_SERVICES = {
    "windows": "core.network.windows-to-linux-service-ip",
    "linux": "core.network.linux-to-windows-service-ip",
}
"""By who calls whom of the other system through a service."""


def workloads(manifests: Manifests) -> list[Workload]:
    """The workloads for Windows, in the order in which they were read."""
    findings, calls = _findings(manifests), _calls(manifests)
    result = []
    for placed in manifests.windows:
        owner, related = placed.pod.object, manifests.concerning(placed)
        mine = [finding for each in (owner, *related) for finding in findings.get(_key(each), ())]
        result.append(
            Workload(
                kind=owner.kind,
                namespace=owner.namespace,
                name=owner.name,
                path=owner.file,
                line=line_of(owner),
                needs=_needs(_hits(manifests, placed, related, calls)),
                findings=[_told(finding) for finding in mine],
            )
        )
    return result


def _hits(manifests: Manifests, placed: Placed, related: Sequence[Object], calls: Calls) -> Iterator[Hit]:
    pod, trees = placed.pod, table.load()
    for use, path in trees["Pod"].hits(pod.template):
        if use.applies(pod.host_process):
            yield use.id, pod.object, (*pod.prefix, *path)
    for object in (pod.object, *related):
        # A bare pod is its own template, which was looked at.
        if object.kind in trees and object.kind != "Pod":
            for use, path in trees[object.kind].hits(with_defaults(object)):
                yield use.id, object, path
    yield from _volumes(pod)
    yield from _called(manifests, pod)
    for object in related:
        for caller, path in calls.get((object.kind, object.namespace, object.name), ()):
            yield OF_SERVICES["linux"], caller, path


def with_defaults(object: Object) -> Mapping[str, Any]:
    """An object as the API server would fill it in, as far as the table asks; a headless service has no type."""
    if object.kind != "Service":
        return object.value
    spec = mapping(object.value, "spec")
    kind = "headless" if spec.get("clusterIP") == "None" else spec.get("type") or "ClusterIP"
    return {**object.value, "spec": {**spec, "type": kind}}


def _volumes(pod: Pod) -> Iterator[Hit]:
    """What only several fields together tell: who shares a volume, and who writes to the node."""
    mounts: dict[str, list[tuple[Container, Path, Mapping[str, Any]]]] = {}
    for container in pod.containers:
        for index, mount in enumerate(items(container.value, "volumeMounts")):
            path = (*pod.prefix, *container.path, "volumeMounts", index)
            mounts.setdefault(str(dig(mount, "name")), []).append((container, path, mapping(mount)))
    for volume in items(pod.spec, "volumes"):
        mounted = mounts.get(str(dig(volume, "name")), [])
        if len({container.name for container, _, _ in mounted}) > 1:
            yield "shared-volumes", pod.object, (*mounted[1][1], "name")
        if mapping(volume, "hostPath") and not pod.host_process and not _pipe(volume):
            for _, path, mount in mounted:
                if mount.get("readOnly") is not True:
                    yield "core.storage.hostpath-write", pod.object, (*path, "name")
        if mapping(volume, "configMap") or mapping(volume, "secret"):
            for _, path, mount in mounted:
                if mount.get("subPath"):
                    yield "subpath-secret", pod.object, (*path, "subPath")


def _pipe(volume: Any) -> bool:
    return str(dig(volume, "hostPath", "path")).replace("/", "\\").startswith("\\\\.\\pipe\\")


def _called(manifests: Manifests, pod: Pod) -> Iterator[Hit]:
    """Names that the containers are told: services, and hosts outside the cluster."""
    for object, path, host, certain in _hosts(manifests, pod):
        named = _service(manifests, host, pod.object.namespace)
        known = manifests.service(named) if named is not None else None
        if known is None and not (certain or (named and "." in host)):
            continue
        yield "core.network.dns-internal" if named else "core.network.dns-external", object, path
        if known is not None and dig(known.value, "spec", "type") == "ExternalName":
            yield "svc-externalname", object, path
        if named is not None and manifests.behind(named) == {"linux"}:
            yield OF_SERVICES["windows"], object, path


def _calls(manifests: Manifests) -> Calls:
    """The services whose names Linux workloads are told, and where."""
    found: Calls = {}
    for other in manifests.others:
        for object, path, host, _ in _hosts(manifests, other.pod):
            if (named := _service(manifests, host, other.pod.object.namespace)) is not None:
                found.setdefault(("Service", *named), []).append((object, path))
    return found


def _service(manifests: Manifests, host: str, namespace: str) -> tuple[str, str] | None:
    """The service that a name means, by namespace and name: ``db.data`` is one where the manifests have it."""
    name, _, other = host.partition(".")
    if other and manifests.service((other, name)) is not None:
        return other, name
    return names.service(host, namespace)


def _hosts(manifests: Manifests, pod: Pod) -> Iterator[tuple[Object, Path, str, bool]]:
    for object, path, text in _texts(manifests, pod):
        for host, certain in names.hosts(text):
            yield object, path, host, certain


def _texts(manifests: Manifests, pod: Pod) -> Iterator[tuple[Object, Path, str]]:
    """What containers are told: variables, arguments, and ConfigMaps of the same manifests."""
    told: set[str] = set()
    for container in pod.containers:
        below = (*pod.prefix, *container.path)
        for index, variable in enumerate(items(container.value, "env")):
            if isinstance(value := dig(variable, "value"), str):
                yield pod.object, (*below, "env", index, "value"), value
            told.add(str(dig(variable, "valueFrom", "configMapKeyRef", "name")))
        for steps in ("command", "args"):
            for index, value in enumerate(items(container.value, steps)):
                if isinstance(value, str):
                    yield pod.object, (*below, steps, index), value
        told |= {str(dig(source, "configMapRef", "name")) for source in items(container.value, "envFrom")}
    for volume in items(pod.spec, "volumes"):
        told.add(str(dig(volume, "configMap", "name")))
        told |= {str(dig(source, "configMap", "name")) for source in items(volume, "projected", "sources")}
    for name in sorted(told):
        if (config := manifests.referred.get(("ConfigMap", pod.object.namespace, name))) is not None:
            for key, value in mapping(config.value, "data").items():
                if isinstance(value, str):
                    yield config, ("data", key), value


def _needs(hits: Iterable[Hit]) -> list[Need]:
    """One need for each id, at the first field that has it; the others are named."""
    first: dict[str, Need] = {}
    also: dict[str, list[str]] = {}
    for id, object, path in sorted(hits, key=lambda hit: (hit[1].file, line_of(hit[1], hit[2]))):
        place = f"{object.file}:{line_of(object, path)}"
        if id not in first:
            first[id] = Need(id=id, path=object.file, line=line_of(object, path), field=dotted(path))
        elif place != first[id].place and place not in also.setdefault(id, []):
            also[id].append(place)
    return [msgspec.structs.replace(need, also=also.get(id, [])) for id, need in first.items()]


def _key(object: Object) -> tuple[str, str, str, str]:
    return object.file, object.kind, object.namespace, object.name


def _findings(manifests: Manifests) -> dict[tuple[str, str, str, str], list[Finding]]:
    """What lint says, by object; what somebody silenced with a reason stays silent."""
    found: dict[tuple[str, str, str, str], list[Finding]] = {}
    run = Run((), Settings(manifests.profile, extra=manifests.inputs, minimum="warning"))
    for one in run.results():
        if isinstance(one, Finding) and not one.suppressed:
            found.setdefault((one.path, one.kind, one.namespace, one.name), []).append(one)
    return found


def _told(finding: Finding) -> FieldFinding:
    return FieldFinding(
        rule=finding.rule,
        severity=finding.severity,
        effect=finding.effect,
        path=finding.path,
        line=finding.line,
        reason=finding.message,
        fix=finding.fix,
    )
