"""Containers of pods: names, images, ports, environment, restarts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from winready_sandbox.api.errors import (
    duplicate,
    forbidden_field,
    invalid,
    not_found_value,
    not_supported,
    required,
    too_many,
)
from winready_sandbox.api.gates import on
from winready_sandbox.api.validation.formats import (
    Errors,
    at,
    config_key,
    dns_label,
    dns_subdomain,
    env_name,
    port_name,
    port_number,
)
from winready_sandbox.api.validation.handlers import PROBES, hooks
from winready_sandbox.api.validation.mounts import devices, mounts
from winready_sandbox.api.validation.projections import field_reference, no_backsteps, resource_reference
from winready_sandbox.api.validation.reading import Object, children, items, section
from winready_sandbox.api.validation.resources import requirements
from winready_sandbox.api.validation.security import container_security

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
_RESTARTS = ["Always", "Never", "OnFailure"]
_EPHEMERAL_REFUSES = ("lifecycle", *PROBES, "ports", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules")


@dataclass(frozen=True)
class Surroundings:
    """What the containers of one pod share."""

    spec: Object
    volumes: Mapping[str, Object]
    path: str
    minor: int

    @property
    def claims(self) -> list[str]:
        """Names of the pod's claims of devices."""
        return [str(claim.get("name")) for claim in children(self.spec, "resourceClaims") if claim.get("name")]

    @property
    def restart(self) -> object:
        """The restart policy of the pod."""
        return self.spec.get("restartPolicy", "Always")

    @property
    def grace(self) -> object:
        """How long the pod may take to end."""
        return self.spec.get("terminationGracePeriodSeconds", 30)

    @property
    def host_users(self) -> bool:
        """Whether users in the pod are those of the host; servers that drop the field think so."""
        return self.spec.get("hostUsers") is not False


def containers(spec: Object, volumes: Mapping[str, Object], path: str, minor: int) -> Errors:
    """All containers of a pod."""
    around = Surroundings(spec, volumes, path, minor)
    regular, initial = children(spec, "containers"), children(spec, "initContainers")
    if not regular:
        yield required(f"{path}.containers")
    names: set[str] = set()
    for i, container in enumerate(regular):
        here = f"{path}.containers[{i}]"
        yield from _common(container, around, here)
        yield from _unique(container, names, here)
        yield from hooks(container, around.grace, here, minor)
        if on("ContainerRestartRules", minor):
            yield from _restarts(container, here, minor)
        elif container.get("restartPolicy") is not None:
            yield forbidden_field(f"{here}.restartPolicy", "may not be set for non-init containers")
    yield from _host_ports(regular, f"{path}.containers")
    for i, container in enumerate(initial):
        here = f"{path}.initContainers[{i}]"
        yield from _common(container, around, here)
        yield from _init_restarts(container, here, minor)
        yield from _unique(container, names, here)
        yield from _host_ports([container], f"{path}.initContainers")
        yield from _init_hooks(container, around, here)
    yield from _ephemeral(around, names)


def _unique(container: Object, names: set[str], here: str) -> Errors:
    name = str(container.get("name") or "")
    if name in names:
        yield duplicate(f"{here}.name", name)
    names.add(name)


def _common(container: Object, around: Surroundings, here: str) -> Errors:
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
    yield from _environment(container, here, around.minor)
    yield from mounts(container, around.volumes, here)
    yield from devices(container, around.volumes, here)
    pull = container.get("imagePullPolicy", "Always")
    if pull not in ("Always", "IfNotPresent", "Never"):
        yield not_supported(f"{here}.imagePullPolicy", pull, ["Always", "IfNotPresent", "Never"])
    yield from requirements(section(container, "resources"), f"{here}.resources", around.claims)
    yield from _resize_policy(container, around.restart, f"{here}.resizePolicy")
    yield from container_security(section(container, "securityContext"), f"{here}.securityContext", around.host_users)


def _resize_policy(container: Object, restart: object, path: str) -> Errors:
    seen: set[str] = set()
    for i, policy in enumerate(children(container, "resizePolicy")):
        # Except for what is there twice, the API server names the list here, not the item.
        name, how = str(policy.get("resourceName") or ""), policy.get("restartPolicy")
        if name in seen:
            yield duplicate(f"{path}[{i}]", name)
        seen.add(name)
        if not name:
            yield required(path)
        elif name not in ("cpu", "memory"):
            yield not_supported(path, name, ["cpu", "memory"])
        if not how:
            yield required(path)
        elif how not in ("NotRequired", "RestartContainer"):
            yield not_supported(path, how, ["NotRequired", "RestartContainer"])
        if restart == "Never" and how != "NotRequired":
            yield invalid(path, how or "", "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _restarts(container: Object, here: str, minor: int) -> Errors:
    policy, rules = container.get("restartPolicy"), children(container, "restartPolicyRules")
    if policy is None and rules:
        yield required(f"{here}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy is not None and policy not in _RESTARTS:
        yield not_supported(f"{here}.restartPolicy", policy, _RESTARTS)
    if len(rules) > 20:
        yield too_many(f"{here}.restartPolicyRules", len(rules), 20)
    actions = ["Restart"]
    actions += ["RestartAllContainers"] if on("RestartAllContainersOnContainerExits", minor) else []
    for i, rule in enumerate(rules):
        field = f"{here}.restartPolicyRules[{i}]"
        if rule.get("action") not in actions:
            yield not_supported(f"{field}.action", rule.get("action") or "", actions)
        codes = rule.get("exitCodes")
        if not isinstance(codes, dict):
            yield required(f"{field}.exitCodes", "must be specified")
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            yield not_supported(f"{field}.exitCodes.operator", codes.get("operator") or "", ["In", "NotIn"])
        if len(items(codes, "values")) > 255:
            yield too_many(f"{field}.exitCodes.values", len(codes["values"]), 255)


def _init_restarts(container: Object, here: str, minor: int) -> Errors:
    policy = container.get("restartPolicy")
    if not on("SidecarContainers", minor):
        return
    if not on("ContainerRestartRules", minor):
        if policy not in (None, "Always"):
            yield not_supported(f"{here}.restartPolicy", policy, ["Always"])
    elif policy == "Always" and not on("RestartAllContainersOnContainerExits", minor):
        if container.get("restartPolicyRules"):
            detail = "restartPolicyRules are not allowed for init containers with restart policy Always"
            yield forbidden_field(f"{here}.restartPolicyRules", detail)
    elif policy is None:
        if container.get("restartPolicyRules"):
            yield required(f"{here}.restartPolicy", "must specify restartPolicy when restart rules are used")
    else:
        yield from _restarts(container, here, minor)


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


def _host_ports(some: list[Object], path: str) -> Errors:
    taken: set[str] = set()
    for i, container in enumerate(some):
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
            yield from field_reference(reference, f"{path}.fieldRef", _FIELD_PATHS, _OTHER_FIELD_PATHS)
        elif kind == "resourceFieldRef":
            yield from resource_reference(reference, f"{path}.resourceFieldRef")
        elif kind == "fileKeyRef":
            yield from _file_key(reference, f"{path}.fileKeyRef", minor)
        else:
            yield from _key(reference, f"{path}.{kind}")
    if not given:
        known = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`"
        known += ", `secretKeyRef` or `fileKeyRef`" if on("EnvFiles", minor) else " or `secretKeyRef`"
        yield invalid(path, "", f"must specify one of: {known}")
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _key(reference: Object, path: str) -> Errors:
    name, key = str(reference.get("name") or ""), str(reference.get("key") or "")
    yield from at(f"{path}.name", name, dns_subdomain(name))
    if not key:
        yield required(f"{path}.key")
    else:
        yield from at(f"{path}.key", key, config_key(key))


def _file_key(reference: Object, path: str, minor: int) -> Errors:
    for field in ("key", "volumeName", "path"):
        value = str(reference.get(field) or "")
        if not value:
            yield required(f"{path}.{field}")
        elif field == "key":
            yield from at(f"{path}.key", value, env_name(value, minor))
        elif field == "volumeName":
            yield from at(f"{path}.volumeName", value, dns_label(value))
        else:
            yield from no_backsteps(value, f"{path}.path")


def file_keys(spec: Object, path: str) -> Errors:
    """Variables out of files: those are in an emptyDir of the pod."""
    volumes = {str(volume.get("name")): volume for volume in children(spec, "volumes")}
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(children(spec, kind)):
            for j, variable in enumerate(children(container, "env")):
                reference = section(section(variable, "valueFrom"), "fileKeyRef")
                if not reference:
                    continue
                name, field = (
                    str(reference.get("volumeName") or ""),
                    f"{path}.{kind}[{i}].env[{j}].valueFrom.fileKeyRef",
                )
                if name not in volumes:
                    yield not_found_value(f"{field}.volumeName", name)
                elif volumes[name].get("emptyDir") is None:
                    yield invalid(f"{field}.volumeName", name, "referenced volume must be of type emptyDir")


def _init_hooks(container: Object, around: Surroundings, here: str) -> Errors:
    minor, sidecar = around.minor, container.get("restartPolicy") == "Always"
    if on("SidecarContainers", minor) and sidecar:
        yield from hooks(container, around.grace, here, minor)
    else:
        for name in ("lifecycle", *PROBES):
            if container.get(name) is None:
                continue
            if on("SidecarContainers", minor):
                detail = "may not be set for init containers without restartPolicy=Always"
                yield forbidden_field(f"{here}.{name}", detail)
            else:
                yield invalid(f"{here}.{name}", container[name], "must not be set for init containers")
    resize = children(container, "resizePolicy")
    if resize and not on("InPlacePodVerticalScaling", minor):
        yield invalid(f"{here}.resizePolicy", resize, "must not be set for init containers")
    if not sidecar:
        for j, policy in enumerate(resize):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                yield invalid(f"{here}.resizePolicy[{j}].restartPolicy", "RestartContainer", detail)


def _ephemeral(around: Surroundings, names: set[str]) -> Errors:
    others = set(names)
    refused = "cannot be set for an Ephemeral Container"
    for i, container in enumerate(children(around.spec, "ephemeralContainers")):
        here = f"{around.path}.ephemeralContainers[{i}]"
        yield from _common(container, around, here)
        yield from image_padding(container, here)
        yield from _unique(container, names, here)
        target = container.get("targetContainerName")
        if isinstance(target, str) and target and target not in others:
            yield not_found_value(f"{here}.targetContainerName", target)
        for name in _EPHEMERAL_REFUSES:
            if container.get(name) or (name in ("lifecycle", *PROBES) and container.get(name) is not None):
                yield forbidden_field(f"{here}.{name}", refused)
        for j, mount in enumerate(children(container, "volumeMounts")):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    yield forbidden_field(f"{here}.volumeMounts[{j}].{name}", refused)


def image_padding(container: Object, here: str) -> Errors:
    """Spaces around the name of an image, which templates may have."""
    image = str(container.get("image") or "")
    if image.strip() != image:
        yield invalid(f"{here}.image", image, "must not have leading or trailing whitespace")
