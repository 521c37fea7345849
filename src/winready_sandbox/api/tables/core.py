"""Services, volumes, events and the other kinds of the core group."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.objects import Object
from winready_sandbox.api.tables.columns import (
    NONE,
    UNKNOWN,
    Layout,
    age,
    columns,
    container_cells,
    joined,
    labels_text,
    name_of,
    part,
    since,
)

_MODES = {
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOnce": "RWO",
    "ReadWriteOncePod": "RWOP",
}


def _service(service: Object) -> list[Any]:
    spec = service.get("spec") or {}
    ports = []
    for port in spec.get("ports") or []:
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return [
        name_of(service),
        spec.get("type", ""),
        spec.get("clusterIP") or NONE,
        _external(service),
        ",".join(ports) or NONE,
        age(service),
        labels_text(spec.get("selector")),
    ]


def _external(service: Object) -> str:
    spec = service.get("spec") or {}
    given = list(spec.get("externalIPs") or [])
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        ingress = part(service, "status", "loadBalancer", "ingress") or []
        given = [each.get("ip") or each.get("hostname", "") for each in ingress] + given
        return ",".join(given) or "<pending>"
    return ",".join(given) or NONE


def _endpoints(obj: Object) -> list[Any]:
    places = []
    for subset in obj.get("subsets") or []:
        for port in subset.get("ports") or [None]:
            for address in subset.get("addresses") or []:
                ip = f"[{address['ip']}]" if ":" in address["ip"] else address["ip"]
                places.append(f"{ip}:{port['port']}" if port else address["ip"])
    shown = ",".join(places[:3]) + (f" + {len(places) - 3} more..." if len(places) > 3 else "")
    return [name_of(obj), shown or NONE, age(obj)]


def _event(event: Object) -> list[Any]:
    about = event.get("involvedObject") or event.get("regarding") or {}
    series = event.get("series") or {}
    core = "message" in event or "involvedObject" in event
    first = event.get("firstTimestamp" if core else "deprecatedFirstTimestamp") or event.get("eventTime")
    last = event.get("lastTimestamp" if core else "deprecatedLastTimestamp") or first
    count = event.get("count" if core else "deprecatedCount") or 1
    if series:
        count, last = series.get("count", count), series.get("lastObservedTime", last)
    source = event.get("source" if core else "deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController", "")
    host = source.get("host") or event.get("reportingInstance", "")
    return [
        since(last),
        event.get("type", ""),
        event.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        (event.get("message") or event.get("note") or "").strip(),
        since(first),
        count,
        name_of(event),
    ]


def _volume(volume: Object) -> list[Any]:
    spec = volume.get("spec") or {}
    claim = spec.get("claimRef")
    phase = part(volume, "status", "phase") or ""
    return [
        name_of(volume),
        part(spec, "capacity", "storage") or "",
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if volume["metadata"].get("deletionTimestamp") else phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        part(volume, "status", "reason") or "",
        age(volume),
        spec.get("volumeMode") or "<unset>",
    ]


def _claim(claim: Object) -> list[Any]:
    spec = claim.get("spec") or {}
    bound = bool(spec.get("volumeName"))
    phase = part(claim, "status", "phase") or ""
    return [
        name_of(claim),
        "Terminating" if claim["metadata"].get("deletionTimestamp") else phase,
        spec.get("volumeName", ""),
        (part(claim, "status", "capacity", "storage") or "") if bound else "",
        _modes(claim.get("status") or {}) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        age(claim),
        spec.get("volumeMode") or "<unset>",
    ]


def _modes(spec: Object) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in spec.get("accessModes") or [])


def _replication_controller(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    numbers = [spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name_of(obj), *numbers, age(obj), *container_cells(spec.get("template")), labels_text(spec.get("selector"))]


def _quota(quota: Object) -> list[Any]:
    hard, used = part(quota, "status", "hard") or {}, part(quota, "status", "used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        words = f"{name}: {used.get(name, 0)}/{hard[name]}"
        (limits if name.startswith("limits.") else requests).append(words)
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age(quota)]


def _data(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


CORE = {
    ("", "services"): Layout(columns("Name | Type | Cluster-IP | External-IP | Port(s) | Age | Selector+"), _service),
    ("", "endpoints"): Layout(columns("Name | Endpoints | Age"), _endpoints),
    ("", "namespaces"): Layout(
        columns("Name | Status | Age"), lambda obj: [name_of(obj), part(obj, "status", "phase") or "", age(obj)]
    ),
    ("", "configmaps"): Layout(columns("Name | Data# | Age"), lambda obj: [name_of(obj), _data(obj), age(obj)]),
    ("", "secrets"): Layout(
        columns("Name | Type | Data | Age"), lambda obj: [name_of(obj), obj.get("type", ""), str(_data(obj)), age(obj)]
    ),
    ("", "events"): Layout(
        columns("Last Seen | Type | Reason | Object | Subobject+ | Source+ | Message | First Seen+ | Count+ | Name+"),
        _event,
    ),
    ("", "persistentvolumes"): Layout(
        columns(
            "Name | Capacity | Access Modes | Reclaim Policy | Status | Claim | StorageClass | VolumeAttributesClass "
            "| Reason | Age | VolumeMode+"
        ),
        _volume,
    ),
    ("", "persistentvolumeclaims"): Layout(
        columns(
            "Name | Status | Volume | Capacity | Access Modes | StorageClass | VolumeAttributesClass | Age "
            "| VolumeMode+"
        ),
        _claim,
    ),
    ("", "replicationcontrollers"): Layout(
        columns("Name | Desired# | Current# | Ready# | Age | Containers+ | Images+ | Selector+"),
        _replication_controller,
    ),
    ("", "resourcequotas"): Layout(columns("Name | Request | Limit | Age"), _quota),
    ("", "limitranges"): Layout(
        columns("Name | Created At@"),
        lambda obj: [name_of(obj), obj["metadata"].get("creationTimestamp") or UNKNOWN],
    ),
    ("networking.k8s.io", "ingresses"): Layout(
        columns("Name | Class | Hosts | Address | Ports | Age"),
        lambda obj: [
            name_of(obj),
            part(obj, "spec", "ingressClassName") or NONE,
            joined((rule.get("host") for rule in part(obj, "spec", "rules") or [] if rule.get("host")), "*"),
            ",".join(
                each.get("ip") or each.get("hostname", "")
                for each in part(obj, "status", "loadBalancer", "ingress") or []
            ),
            "80, 443" if part(obj, "spec", "tls") else "80",
            age(obj),
        ],
    ),
}
