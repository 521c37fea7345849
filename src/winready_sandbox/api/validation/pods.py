"""Pods and the templates they are made from."""

from __future__ import annotations

import json

from winready_sandbox.api.errors import forbidden_field, invalid, not_supported, required, too_long
from winready_sandbox.api.gates import on
from winready_sandbox.api.validation.containers import containers, file_keys, image_padding
from winready_sandbox.api.validation.formats import (
    Errors,
    at,
    dns_label,
    dns_search,
    dns_subdomain,
    ip,
    labels,
)
from winready_sandbox.api.validation.metadata import annotation_map
from winready_sandbox.api.validation.reading import Object, children, containers_of, items, section
from winready_sandbox.api.validation.resources import pod_claims, pod_resources, requirements
from winready_sandbox.api.validation.scheduling import affinity, gates, spread, tolerations
from winready_sandbox.api.validation.security import known_annotations, matching_annotations, pod_security
from winready_sandbox.api.validation.volumes import volumes
from winready_sandbox.api.validation.windows import host_process, operating_system

_RESTART = ["Always", "OnFailure", "Never"]
_DNS = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]
_MAX_NAMESERVERS, _MAX_SEARCHES, _MAX_SEARCH_CHARACTERS = 3, 32, 2048
_MAX_INT = 2**31 - 1
_LONGEST_HOSTNAME = 64
_UPDATABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def pod(obj: Object, old: Object | None, minor: int) -> Errors:
    """A pod, and what of it may change."""
    metadata, spec = section(obj, "metadata"), section(obj, "spec")
    yield from pod_and_images(obj, minor)
    if old is None:
        yield from _new(metadata, spec)
    else:
        yield from _update(spec, section(old, "spec"), minor)


def pod_and_images(obj: Object, minor: int) -> Errors:
    """A pod as it is, whatever it was before."""
    metadata, spec = section(obj, "metadata"), section(obj, "spec")
    yield from known_annotations(metadata, spec, "metadata.annotations")
    yield from pod_spec(spec, "spec", minor, str(metadata.get("name") or ""))
    for container, here in containers_of(spec, "spec"):
        if not here.startswith("spec.ephemeral"):  # those are looked at wherever they are
            yield from image_padding(container, here)


def _new(metadata: Object, spec: Object) -> Errors:
    if spec.get("ephemeralContainers"):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    yield from matching_annotations(metadata, spec, "spec")


def template(value: Object, path: str, minor: int) -> Errors:
    """A pod template of a workload."""
    meta, spec = section(value, "metadata"), section(value, "spec")
    yield from labels(meta.get("labels"), f"{path}.labels")
    yield from annotation_map(meta.get("annotations"), f"{path}.annotations")
    yield from known_annotations(meta, spec, f"{path}.annotations")
    yield from pod_spec(spec, f"{path}.spec", minor, None)
    yield from matching_annotations(meta, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        here = f"{path}.spec.ephemeralContainers"
        yield forbidden_field(here, "ephemeral containers not allowed in pod template")


def pod_spec(spec: Object, path: str, minor: int, pod: str | None) -> Errors:
    """The spec of a pod of that name, or of a template."""
    known, errors = volumes(spec, path, pod)
    yield from errors
    yield from pod_claims(spec, path)
    yield from containers(spec, known, path, minor)
    if on("PodLevelResources", minor):
        yield from pod_resources(spec, path)
    yield from _host_network(spec, path, pod is not None)
    if spec.get("restartPolicy", "Always") not in _RESTART:
        yield not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART)
    if spec.get("dnsPolicy", "ClusterFirst") not in _DNS:
        yield not_supported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    yield from labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from pod_security(spec, path, minor)
    yield from affinity(section(spec, "affinity"), f"{path}.affinity")
    yield from _dns_config(spec, path, minor)
    yield from gates(spec, path)
    yield from spread(spec, path)
    yield from host_process(spec, path)
    yield from _host_users(spec, path)
    yield from _host_name(spec, path)
    yield from _names(spec, path)
    yield from _numbers(spec, path)
    yield from tolerations(spec.get("tolerations"), f"{path}.tolerations")
    for i, alias in enumerate(children(spec, "hostAliases")):
        here = f"{path}.hostAliases[{i}]"
        yield from at(f"{here}.ip", alias.get("ip", ""), ip(alias.get("ip", "")))
        for j, name in enumerate(items(alias, "hostnames")):
            yield from at(f"{here}.hostnames[{j}]", name, dns_subdomain(str(name)))
    if spec.get("preemptionPolicy") not in (None, "PreemptLowerPriority", "Never"):
        allowed = ["PreemptLowerPriority", "Never"]
        yield not_supported(f"{path}.preemptionPolicy", spec["preemptionPolicy"], allowed)
    yield from requirements({"limits": section(spec, "overhead")}, f"{path}.overhead")
    yield from operating_system(spec, path, minor)
    yield from file_keys(spec, path)


def _host_network(spec: Object, path: str, is_pod: bool) -> Errors:
    if not spec.get("hostNetwork"):
        return
    for i, container in enumerate(children(spec, "containers")):
        for j, item in enumerate(children(container, "ports")):
            host, own = item.get("hostPort") or 0, item.get("containerPort")
            if (is_pod or host) and host != own:
                here = f"{path}.containers[{i}].ports[{j}].hostPort"
                yield invalid(here, host, "must match `containerPort` when `hostNetwork` is true")


def _host_users(spec: Object, path: str) -> Errors:
    if spec.get("hostUsers") is not False:
        return
    # The API server spells the last two like the Go fields.
    for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            yield forbidden_field(f"{path}.{shown}", "when `hostUsers` is false")
    for container, here in containers_of(spec, path):
        if container.get("volumeDevices"):
            yield forbidden_field(f"{here}.volumeDevices", "when `hostUsers` is false")


def _host_name(spec: Object, path: str) -> Errors:
    name = spec.get("hostnameOverride")
    if name is None:
        return
    here = f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        yield forbidden_field(here, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden_field(here, "may not be specified when hostNetwork is true")
    if len(str(name)) > _LONGEST_HOSTNAME:
        yield too_long(here, _LONGEST_HOSTNAME)
    yield from at(here, name, dns_subdomain(str(name)))


def _dns_config(spec: Object, path: str, minor: int) -> Errors:
    config = spec.get("dnsConfig")
    here = f"{path}.dnsConfig"
    if spec.get("dnsPolicy") == "None":
        if not isinstance(config, dict):
            yield required(here, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{here}.nameservers", detail)
            return
    if not isinstance(config, dict):
        return
    servers, searches = items(config, "nameservers"), items(config, "searches")
    if len(servers) > _MAX_NAMESERVERS:
        yield invalid(f"{here}.nameservers", servers, f"must not have more than {_MAX_NAMESERVERS} nameservers")
    for i, server in enumerate(servers):
        yield from at(f"{here}.nameservers[{i}]", server, ip(server))
    if len(searches) > _MAX_SEARCHES:
        yield invalid(f"{here}.searches", searches, f"must not have more than {_MAX_SEARCHES} search paths")
    if len(" ".join(str(search) for search in searches)) > _MAX_SEARCH_CHARACTERS:
        detail = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        yield invalid(f"{here}.searches", searches, detail)
    for i, search in enumerate(searches):
        plain = str(search).removesuffix(".")
        if not on("RelaxedDNSSearchValidation", minor):
            yield from at(f"{here}.searches[{i}]", plain, dns_subdomain(plain))
        elif search != ".":
            yield from at(f"{here}.searches[{i}]", plain, dns_search(plain))
    for i, option in enumerate(children(config, "options")):
        if not option.get("name"):
            yield required(f"{here}.options[{i}]", "must not be empty")


def _names(spec: Object, path: str) -> Errors:
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        value = spec.get(name)
        if value or (name == "runtimeClassName" and value is not None):
            yield from at(f"{path}.{name}", value, dns_subdomain(str(value)))
    for name in ("hostname", "subdomain"):
        value = spec.get(name)
        if value:
            yield from at(f"{path}.{name}", value, dns_label(str(value)))


def _numbers(spec: Object, path: str) -> Errors:
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= _MAX_INT:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MAX_INT}, inclusive")


def _update(new: Object, old: Object, minor: int) -> Errors:
    for kind in ("containers", "initContainers"):
        before, after = children(old, kind), children(new, kind)
        if len(before) != len(after):
            yield forbidden_field(f"spec.{kind}", "pod updates may not add or remove containers")
            return
    yield from _deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    yield from _kept_tolerations(new, old)
    known = {str(gate.get("name")) for gate in children(old, "schedulingGates")}
    for i, gate in enumerate(children(new, "schedulingGates")):
        if str(gate.get("name")) not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield forbidden_field(f"spec.schedulingGates[{i}].name", detail)
    changed = _other_changes(new, old)
    if changed:
        detail = f"pod updates may not change fields other than {','.join(_UPDATABLE)}\n"
        yield forbidden_field("spec", detail + "\n".join(changed))


def _deadline(new: object, old: object) -> Errors:
    here = "spec.activeDeadlineSeconds"
    if new is None and old is not None:
        yield invalid(here, None, "must not update from a positive integer to nil value")
    elif isinstance(new, int) and isinstance(old, int) and new > old:
        yield invalid(here, new, "must be less than or equal to previous value")


def _kept_tolerations(new: Object, old: Object) -> Errors:
    def plain(toleration: Object) -> Object:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    present = [plain(toleration) for toleration in children(new, "tolerations")]
    if any(plain(toleration) not in present for toleration in children(old, "tolerations")):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", detail)


def _other_changes(new: Object, old: Object) -> list[str]:
    """What changed beyond the few fields that may, one line each."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    grace = old.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0 and new.get("terminationGracePeriodSeconds") == 1:
        free.add("terminationGracePeriodSeconds")
    if old.get("schedulingGates"):  # a pod that waits may still be told where to go
        free |= {"nodeSelector", "affinity"}
    lines = []
    for field in sorted({*new, *old} - free):
        before, after = old.get(field), new.get(field)
        if field in ("containers", "initContainers"):
            before, after = ([{**c, "image": ""} for c in children(spec, field)] for spec in (old, new))
        if before != after and (before or after):
            lines.append(f"  spec.{field}: {json.dumps(before)} -> {json.dumps(after)}")
    return lines
