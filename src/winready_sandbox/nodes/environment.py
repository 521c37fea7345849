"""What a container finds in its environment, and the command line that follows from it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from winready_sandbox import quantity
from winready_sandbox.nodes import resources

Object = dict[str, Any]
Lookup = Callable[[str, str], Object | None]
"""Finds a ``configmaps`` or ``secrets`` object of the pod's namespace by name."""

_REFERENCE = re.compile(r"\$(\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")


class ConfigError(Exception):
    """Something that a container refers to is not there (``CreateContainerConfigError``)."""


def expand(text: str, values: dict[str, str]) -> str:
    """Replace ``$(NAME)`` as Kubernetes does: unknown names stay, ``$$(NAME)`` escapes."""

    def one(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return values.get(match[2], match[0])

    return _REFERENCE.sub(one, text)


def service_variables(services: Iterable[Object], namespace: str, *, links: bool) -> dict[str, str]:
    """``NAME_SERVICE_HOST`` and its kin, for the pod's namespace and for ``kubernetes``."""
    result: dict[str, str] = {}
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        master = metadata["namespace"] == "default" and metadata["name"] == "kubernetes"
        if not master and not (links and metadata["namespace"] == namespace):
            continue
        address = spec.get("clusterIP", "")
        if not address or address == "None" or not spec.get("ports"):
            continue
        result.update(_link_variables(metadata["name"].upper().replace("-", "_"), address, spec["ports"]))
    return result


def _link_variables(prefix: str, address: str, ports: list[Object]) -> dict[str, str]:
    host = f"[{address}]" if ":" in address else address
    first = ports[0]
    result = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(first["port"])}
    for port in ports:
        if port.get("name"):
            result[f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
    for position, port in enumerate(ports):
        protocol = port.get("protocol", "TCP")
        url = f"{protocol.lower()}://{host}:{port['port']}"
        if position == 0:
            result[f"{prefix}_PORT"] = url
        stem = f"{prefix}_PORT_{port['port']}_{protocol}"
        result[stem] = url
        result[f"{stem}_PROTO"] = protocol.lower()
        result[f"{stem}_PORT"] = str(port["port"])
        result[f"{stem}_ADDR"] = address
    return result


def field_value(pod: Object, path: str, *, addresses: list[str], host_addresses: list[str], node: str) -> str:
    """What a ``fieldRef`` stands for; the addresses are those the runtime gave, the API may not know them yet."""
    metadata, spec = pod["metadata"], pod["spec"]
    if match := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        values = metadata.get(path.split(".")[1]) or {}
        return "\n".join(f'{key}="{_quoted(value)}"' for key, value in sorted(values.items()))
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": node,
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.hostIP": host_addresses[0],
        "status.hostIPs": ",".join(host_addresses),
        "status.podIP": addresses[0] if addresses else "",
        "status.podIPs": ",".join(addresses),
    }
    if path not in known:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return str(known[path])


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(pod: Object, container: Object, reference: Object, allocatable: dict[str, str]) -> str:
    """What a ``resourceFieldRef`` stands for; limits that are not set are what the node can give."""
    source = container
    if name := reference.get("containerName"):
        everyone = (pod["spec"].get("initContainers") or []) + pod["spec"]["containers"]
        source = next((item for item in everyone if item["name"] == name), container)
    which, _, resource = reference["resource"].partition(".")
    value = (resources.limits(source) if which == "limits" else resources.requests(source)).get(resource)
    if value is None:
        value = quantity.parse(allocatable.get(resource, "0")) if which == "limits" else Fraction(0)
    divisor = quantity.parse(reference.get("divisor") or "1") or Fraction(1)
    return str(-(-value // divisor))


def container_variables(
    container: Object,
    base: dict[str, str],
    lookup: Lookup,
    field: Callable[[str], str],
    resource: Callable[[Object], str],
) -> dict[str, str]:
    """``envFrom`` and ``env`` of a container on top of the service variables, with ``$(NAME)`` expanded."""
    result: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        prefix = source.get("prefix", "")
        for kind, resource_name in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
            if reference := source.get(kind):
                data = _data(resource_name, reference, lookup)
                result.update({prefix + key: value for key, value in data.items()})
    for item in container.get("env") or []:
        name = item["name"]
        if "valueFrom" in item:
            value = _value_from(item["valueFrom"], lookup, field, resource)
            if value is not None:
                result[name] = value
        else:
            result[name] = expand(item.get("value") or "", {**base, **result})
    return {**base, **result}


def _data(resource: str, reference: Object, lookup: Lookup) -> dict[str, str]:
    found = lookup(resource, reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(f'{resource[:-1]} "{reference["name"]}" not found')
    return text_data(found)


def text_data(obj: Object) -> dict[str, str]:
    """The entries of a config map or secret as text."""
    return {key: value.decode("utf-8", "surrogateescape") for key, value in binary_data(obj).items()}


def binary_data(obj: Object) -> dict[str, bytes]:
    """The entries of a config map or secret as bytes."""
    result = {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}
    secret = obj.get("kind") == "Secret" or "type" in obj
    for key, value in (obj.get("data") or {}).items():
        result[key] = base64.b64decode(value) if secret else value.encode("utf-8", "surrogateescape")
    return result


def _value_from(
    source: Object, lookup: Lookup, field: Callable[[str], str], resource: Callable[[Object], str]
) -> str | None:
    if reference := source.get("fieldRef"):
        return field(reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return resource(reference)
    for kind, plural in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if reference := source.get(kind):
            data = _data(plural, reference, lookup)
            if reference["key"] in data:
                return data[reference["key"]]
            if reference.get("optional"):
                return None
            word = "ConfigMap" if plural == "configmaps" else "Secret"
            raise ConfigError(f"couldn't find key {reference['key']} in {word} {reference['name']}")
    return None


def command_line(container: Object, entrypoint: list[str], cmd: list[str], values: dict[str, str]) -> list[str]:
    """The argument vector: ``command`` replaces the image's entrypoint and drops its arguments."""
    command = [expand(part, values) for part in container.get("command") or []]
    args = [expand(part, values) for part in container.get("args") or []]
    if command:
        return command + args
    return entrypoint + (args or cmd)
