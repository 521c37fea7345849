"""Containers of pods: names, images, ports, environment, resources, probes."""

from __future__ import annotations

from winready_sandbox.api.errors import duplicate, forbidden_field, invalid, not_found_value, not_supported, required
from winready_sandbox.api.validation.formats import (
    NEGATIVE,
    Errors,
    at,
    config_key,
    dns_label,
    env_name,
    nonnegative,
    port,
    port_name,
    port_number,
    qualified_name,
)
from winready_sandbox.api.validation.reading import Object, children, items, section
from winready_sandbox.api.validation.volumes import mounts
from winready_sandbox.api.validation.windows import windows_options
from winready_sandbox.quantity import REFUSAL, canonical, parse

PROTOCOLS = ["SCTP", "TCP", "UDP"]
_FIELD_PATHS = ["metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"]
_FIELD_PATHS += ["status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"]
_OTHER_FIELD_PATHS = (
    "metadata.labels",
    "metadata.annotations",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
)
_VALUE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_STANDARD = {"cpu", "memory", "ephemeral-storage"}
_EPHEMERAL_REFUSES = ("ports", "resources", "lifecycle", *_PROBES)
_MAX_ID = 2**31 - 1


def containers(spec: Object, path: str, minor: int) -> Errors:
    """All containers of a pod."""
    known = {str(volume.get("name") or "") for volume in children(spec, "volumes")}
    regular, initial = children(spec, "containers"), children(spec, "initContainers")
    if not regular:
        yield required(f"{path}.containers")
    names: set[str] = set()
    for i, container in enumerate(regular):
        here = f"{path}.containers[{i}]"
        yield from _common(container, known, here, minor)
        yield from _unique(container, names, here)
        yield from _hooks(container, here, minor)
        policy = container.get("restartPolicy")
        if policy is not None and minor < 35:
            yield forbidden_field(f"{here}.restartPolicy", "may not be set for non-init containers")
        elif policy not in (None, "Always", "Never", "OnFailure"):
            yield not_supported(f"{here}.restartPolicy", policy, ["Always", "Never", "OnFailure"])
    yield from _host_ports(regular, f"{path}.containers")
    for i, container in enumerate(initial):
        here = f"{path}.initContainers[{i}]"
        yield from _common(container, known, here, minor)
        yield from _unique(container, names, here)
        yield from _init_hooks(container, here, minor)
    yield from _ephemeral(spec, known, names, path, minor)


def _unique(container: Object, names: set[str], here: str) -> Errors:
    name = str(container.get("name") or "")
    if name in names:
        yield duplicate(f"{here}.name", name)
    names.add(name)


def _common(container: Object, known: set[str], here: str, minor: int) -> Errors:
    name = str(container.get("name") or "")
    if not name:
        yield required(f"{here}.name")
    else:
        yield from at(f"{here}.name", name, dns_label(name))
    if not container.get("image"):
        yield required(f"{here}.image")
    policy = container.get("terminationMessagePolicy", "File")
    if policy not in ("File", "FallbackToLogsOnError"):
        yield not_supported(f"{here}.terminationMessagePolicy", policy, ["File", "FallbackToLogsOnError"])
    yield from _ports(container, here)
    yield from _environment(container, here, minor)
    yield from mounts(container, known, here)
    pull = container.get("imagePullPolicy", "Always")
    if pull not in ("Always", "IfNotPresent", "Never"):
        yield not_supported(f"{here}.imagePullPolicy", pull, ["Always", "IfNotPresent", "Never"])
    yield from resources(section(container, "resources"), f"{here}.resources")
    yield from _security(section(container, "securityContext"), f"{here}.securityContext")


def _ports(container: Object, here: str) -> Errors:
    names: set[str] = set()
    for i, item in enumerate(children(container, "ports")):
        path = f"{here}.ports[{i}]"
        name = item.get("name")
        if name:
            wrong = list(at(f"{path}.name", name, port_name(str(name))))
            yield from wrong
            if not wrong and name in names:
                yield duplicate(f"{path}.name", name)
            names.add(str(name))
        if not item.get("containerPort"):
            yield required(f"{path}.containerPort")
        else:
            yield from at(f"{path}.containerPort", item["containerPort"], port_number(item["containerPort"]))
        if item.get("hostPort"):
            yield from at(f"{path}.hostPort", item["hostPort"], port_number(item["hostPort"]))
        if item.get("protocol", "TCP") not in PROTOCOLS:
            yield not_supported(f"{path}.protocol", item.get("protocol"), PROTOCOLS)


def _host_ports(items: list[Object], path: str) -> Errors:
    taken: set[str] = set()
    for i, container in enumerate(items):
        for j, item in enumerate(children(container, "ports")):
            if not item.get("hostPort"):
                continue
            place = f"{item.get('protocol', 'TCP')}/{item.get('hostIP', '')}/{item['hostPort']}"
            if place in taken:
                yield duplicate(f"{path}[{i}].ports[{j}].hostPort", place)
            taken.add(place)


def _environment(container: Object, here: str, minor: int) -> Errors:
    for i, variable in enumerate(children(container, "env")):
        path = f"{here}.env[{i}]"
        name = str(variable.get("name") or "")
        if not name:
            yield required(f"{path}.name")
        else:
            yield from at(f"{path}.name", name, env_name(name, minor))
        if isinstance(variable.get("valueFrom"), dict):
            yield from _value_source(variable, f"{path}.valueFrom", minor)
    for i, source in enumerate(children(container, "envFrom")):
        # The API server names the list here, not the item, unless a reference in it is wrong.
        path = f"{here}.envFrom"
        given = [kind for kind in ("configMapRef", "secretRef") if isinstance(source.get(kind), dict)]
        for kind in given:
            if not source[kind].get("name"):
                yield required(f"{path}[{i}].{kind}.name")
        if not given:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid(path, "", "may not have more than one field specified at a time")


def _value_source(variable: Object, path: str, minor: int) -> Errors:
    source = variable["valueFrom"]
    given = [kind for kind in _VALUE_SOURCES if isinstance(source.get(kind), dict)]
    for kind in given:
        reference = source[kind]
        if kind == "fieldRef":
            yield from _field_reference(reference, f"{path}.fieldRef")
        elif kind in ("configMapKeyRef", "secretKeyRef"):
            for name in ("name", "key"):
                if not reference.get(name):
                    yield required(f"{path}.{kind}.{name}")
            if reference.get("key"):
                yield from at(f"{path}.{kind}.key", reference["key"], config_key(str(reference["key"])))
        elif kind == "resourceFieldRef" and not reference.get("resource"):
            yield required(f"{path}.resourceFieldRef.resource")
    if not given:
        known = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`"
        known += ", `secretKeyRef` or `fileKeyRef`" if minor >= 35 else " or `secretKeyRef`"
        yield invalid(path, "", f"must specify one of: {known}")
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _field_reference(reference: Object, path: str) -> Errors:
    wanted = str(reference.get("fieldPath") or "")
    if not wanted:
        yield required(f"{path}.fieldPath")
    elif not wanted.startswith(("metadata.labels['", "metadata.annotations['")) and wanted not in _FIELD_PATHS:
        if wanted in _OTHER_FIELD_PATHS:
            yield not_supported(f"{path}.fieldPath", wanted, _FIELD_PATHS)
        else:
            yield invalid(
                f"{path}.fieldPath", wanted, "error converting fieldPath: field label not supported: " + wanted
            )


def resources(value: Object, path: str) -> Errors:
    """Requests and limits: known names, quantities, requests within limits."""
    limits = section(value, "limits")
    for kind in ("limits", "requests"):
        for name, quantity in section(value, kind).items():
            here = f"{path}.{kind}[{name}]"
            yield from _resource_name(str(name), here)
            yield from quantity_value(str(name), quantity, here)
    for name, quantity in section(value, "requests").items():
        overcommit = _overcommit(str(name))
        if name not in limits:
            if not overcommit:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            continue
        try:
            request, limit = parse(quantity), parse(limits[name])
        except ValueError:
            continue
        if request != limit and not overcommit:
            yield invalid(f"{path}.requests", str(quantity), f"must be equal to {name} limit of {limits[name]}")
        elif request > limit:
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", str(quantity), detail)
    names = {*limits, *section(value, "requests")}
    if any(str(name).startswith("hugepages-") for name in names) and not names & {"cpu", "memory"}:
        yield forbidden_field(path, "HugePages require cpu or memory")


def _overcommit(name: str) -> bool:
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith("hugepages-")


def _resource_name(name: str, here: str) -> Errors:
    wrong = list(at(here, name, qualified_name(name)))
    yield from wrong
    if wrong or "/" in name or name in _STANDARD or name.startswith("hugepages-"):
        return
    yield invalid(here, name, "must be a standard resource type or fully qualified")
    yield invalid(here, name, "must be a standard resource for containers")


def quantity_value(name: str, quantity: object, here: str) -> Errors:
    """An amount of a resource; amounts of extended ones are whole."""
    try:
        amount = parse(quantity)
    except ValueError:
        yield invalid(here, quantity, REFUSAL)
        return
    if amount < 0:
        yield invalid(here, str(quantity), NEGATIVE)
    whole = ("/" in name and "kubernetes.io/" not in name) or name.startswith("count/")
    if whole and amount.denominator != 1:
        yield invalid(here, canonical(quantity), "must be an integer")


def _security(security: Object, here: str) -> Errors:
    for name in ("runAsUser", "runAsGroup"):
        yield from user_id(security.get(name), f"{here}.{name}")
    mount = security.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        yield not_supported(f"{here}.procMount", mount, ["Default", "Unmasked"])
    yield from seccomp(security, here)
    if security.get("allowPrivilegeEscalation") is False:
        if security.get("privileged") is True:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(here, security, detail)
        if "CAP_SYS_ADMIN" in items(section(security, "capabilities"), "add"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(here, security, detail)
    yield from windows_options(security, here)


def user_id(value: object, field: str) -> Errors:
    """A user or group of Linux."""
    if isinstance(value, int) and not 0 <= value <= _MAX_ID:
        yield invalid(field, value, f"must be between 0 and {_MAX_ID}, inclusive")


def seccomp(security: Object, here: str) -> Errors:
    """The seccomp profile of a pod or a container."""
    profile = security.get("seccompProfile")
    if not isinstance(profile, dict):
        return
    kind = profile.get("type")
    path = f"{here}.seccompProfile"
    if kind == "Localhost":
        if not profile.get("localhostProfile"):
            yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    elif profile.get("localhostProfile") is not None:
        shown = {"Type": kind, "LocalhostProfile": profile["localhostProfile"]}
        yield invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")
    if kind not in ("Localhost", "RuntimeDefault", "Unconfined"):
        yield not_supported(f"{path}.type", kind or "", ["Localhost", "RuntimeDefault", "Unconfined"])


def _hooks(container: Object, here: str, minor: int) -> Errors:
    for name in ("postStart", "preStop"):
        handler = section(container, "lifecycle").get(name)
        if isinstance(handler, dict):
            yield from _handler(handler, f"{here}.lifecycle.{name}")
    for name in _PROBES:
        probe = container.get(name)
        if not isinstance(probe, dict):
            continue
        path = f"{here}.{name}"
        yield from _handler(probe, path)
        for number in (
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ):
            yield from nonnegative(probe.get(number), f"{path}.{number}")
        grace = probe.get("terminationGracePeriodSeconds")
        if isinstance(grace, int) and grace <= 0:
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
        if name == "readinessProbe":
            if grace is not None:
                yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
        elif probe.get("successThreshold", 1) != 1:
            yield invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(holder: Object, path: str) -> Errors:
    given = [name for name in _HANDLERS if isinstance(holder.get(name), dict)]
    if not given:
        yield required(path, "must specify a handler type")
    for extra in given[1:]:
        yield forbidden_field(f"{path}.{extra}", "may not specify more than 1 handler type")
    for name in given[:1]:
        handler, here = holder[name], f"{path}.{name}"
        if name == "exec" and not handler.get("command"):
            yield required(f"{here}.command")
        elif name == "httpGet":
            yield from port(handler.get("port"), f"{here}.port")
            if handler.get("scheme", "HTTP") not in ("HTTP", "HTTPS"):
                yield not_supported(f"{here}.scheme", handler.get("scheme"), ["HTTP", "HTTPS"])
        elif name == "tcpSocket":
            yield from port(handler.get("port"), f"{here}.port")
        elif name == "grpc":
            yield from at(f"{here}.port", handler.get("port") or 0, port_number(handler.get("port")))


def _init_hooks(container: Object, here: str, minor: int) -> Errors:
    if minor >= 29 and container.get("restartPolicy") == "Always":
        yield from _hooks(container, here, minor)
        return
    if minor >= 29 and container.get("restartPolicy") is not None and minor < 35:
        yield not_supported(f"{here}.restartPolicy", container["restartPolicy"], ["Always"])
    for name in ("lifecycle", *_PROBES):
        if container.get(name) is None:
            continue
        if minor >= 29:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield forbidden_field(f"{here}.{name}", detail)
        else:
            yield invalid(f"{here}.{name}", container[name], "must not be set for init containers")


def _ephemeral(spec: Object, known: set[str], names: set[str], path: str, minor: int) -> Errors:
    others = set(names)
    for i, container in enumerate(children(spec, "ephemeralContainers")):
        here = f"{path}.ephemeralContainers[{i}]"
        yield from _common(container, known, here, minor)
        yield from _unique(container, names, here)
        target = container.get("targetContainerName")
        if target and target not in others:
            yield not_found_value(f"{here}.targetContainerName", target)
        for name in _EPHEMERAL_REFUSES:
            if container.get(name):
                yield forbidden_field(f"{here}.{name}", "cannot be set for an Ephemeral Container")
