"""Pods and the templates they are made from."""

from __future__ import annotations

import json

from winready_sandbox.api.errors import FieldError, duplicate, forbidden_field, invalid, not_supported, required
from winready_sandbox.api.validation.containers import containers, quantity_value, seccomp, user_id
from winready_sandbox.api.validation.formats import (
    Errors,
    at,
    dns_label,
    dns_search,
    dns_subdomain,
    ip,
    label_value,
    labels,
    qualified_name,
    selector,
)
from winready_sandbox.api.validation.metadata import annotation_map
from winready_sandbox.api.validation.reading import Object, children, items, section
from winready_sandbox.api.validation.volumes import volumes
from winready_sandbox.api.validation.windows import host_process, operating_system, windows_options

_RESTART = ["Always", "OnFailure", "Never"]
_DNS = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]
_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
_MAX_NAMESERVERS, _MAX_SEARCHES, _MAX_SEARCH_CHARACTERS = 3, 32, 2048
_MAX_INT = 2**31 - 1
_UPDATABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def pod(obj: Object, old: Object | None, minor: int) -> Errors:
    """A pod, and what of it may change."""
    yield from pod_spec(section(obj, "spec"), "spec", minor, is_pod=True)
    if old is not None:
        yield from _update(section(obj, "spec"), section(old, "spec"), minor)


def template(value: Object, path: str, minor: int) -> Errors:
    """A pod template of a workload."""
    meta = section(value, "metadata")
    yield from labels(meta.get("labels"), f"{path}.labels")
    yield from annotation_map(meta.get("annotations"), f"{path}.annotations")
    yield from pod_spec(section(value, "spec"), f"{path}.spec", minor, is_pod=False)
    for i, _ in enumerate(children(section(value, "spec"), "ephemeralContainers")):
        here = f"{path}.spec.ephemeralContainers"
        yield forbidden_field(here, "ephemeral containers not allowed in pod template")
        if i == 0:
            break


def pod_spec(spec: Object, path: str, minor: int, is_pod: bool) -> Errors:
    """The spec of a pod or a template."""
    yield from volumes(spec, path)
    yield from containers(spec, path, minor)
    yield from _host_network(spec, path, is_pod)
    if spec.get("restartPolicy", "Always") not in _RESTART:
        yield not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART)
    if spec.get("dnsPolicy", "ClusterFirst") not in _DNS:
        yield not_supported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    yield from labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from _security(spec, path)
    yield from _affinity(section(spec, "affinity"), f"{path}.affinity")
    yield from _dns_config(spec, path, minor)
    yield from _gates(spec, path)
    yield from _spread(spec, path)
    yield from host_process(spec, path)
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
    for name, quantity in section(spec, "overhead").items():
        yield from quantity_value(str(name), quantity, f"{path}.overhead.limits[{name}]")
    yield from operating_system(spec, path, minor)


def _host_network(spec: Object, path: str, is_pod: bool) -> Errors:
    if not spec.get("hostNetwork"):
        return
    for i, container in enumerate(children(spec, "containers")):
        for j, item in enumerate(children(container, "ports")):
            host, own = item.get("hostPort") or 0, item.get("containerPort")
            if (is_pod or host) and host != own:
                here = f"{path}.containers[{i}].ports[{j}].hostPort"
                yield invalid(here, host, "must match `containerPort` when `hostNetwork` is true")


def _security(spec: Object, path: str) -> Errors:
    security = section(spec, "securityContext")
    here = f"{path}.securityContext"
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from user_id(security.get(name), f"{here}.{name}")
    for i, group in enumerate(items(security, "supplementalGroups")):
        yield from user_id(group, f"{here}.supplementalGroups[{i}]")
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{here}.shareProcessNamespace", True, detail)
    names: set[str] = set()
    for i, sysctl in enumerate(children(security, "sysctls")):
        name = str(sysctl.get("name") or "")
        if not name:
            yield required(f"{here}.sysctls[{i}].name")
        if name in names:
            yield duplicate(f"{here}.sysctls[{i}].name", name)
        names.add(name)
    policy = security.get("fsGroupChangePolicy")
    if policy not in (None, "OnRootMismatch", "Always"):
        yield not_supported(f"{here}.fsGroupChangePolicy", policy, ["Always", "OnRootMismatch"])
    yield from seccomp(security, here)
    yield from windows_options(security, here)
    if spec.get("hostUsers") is False:
        # The API server spells the last two like the Go fields.
        for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(name):
                yield forbidden_field(f"{path}.{shown}", "when `hostUsers` is false")


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
        if minor < 32:
            yield from at(f"{here}.searches[{i}]", plain, dns_subdomain(plain))
        elif search != ".":
            yield from at(f"{here}.searches[{i}]", plain, dns_search(plain))
    for i, option in enumerate(children(config, "options")):
        if not option.get("name"):
            yield required(f"{here}.options[{i}]", "must not be empty")


def _names(spec: Object, path: str) -> Errors:
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        value = spec.get(name)
        if value:
            yield from at(f"{path}.{name}", value, dns_subdomain(str(value)))
    for name in ("hostname", "subdomain"):
        value = spec.get(name)
        if value:
            yield from at(f"{path}.{name}", value, dns_label(str(value)))


def _numbers(spec: Object, path: str) -> Errors:
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= _MAX_INT:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MAX_INT}, inclusive")


def _gates(spec: Object, path: str) -> Errors:
    for i, gate in enumerate(children(spec, "readinessGates")):
        kind = str(gate.get("conditionType") or "")
        yield from at(f"{path}.readinessGates[{i}].conditionType", kind, qualified_name(kind))
    names: set[str] = set()
    for i, gate in enumerate(children(spec, "schedulingGates")):
        name = str(gate.get("name") or "")
        here = f"{path}.schedulingGates[{i}]"
        yield from at(here, name, qualified_name(name))
        if name in names:
            yield duplicate(here, name)
        names.add(name)


def _spread(spec: Object, path: str) -> Errors:
    actions = ["DoNotSchedule", "ScheduleAnyway"]
    for i, constraint in enumerate(children(spec, "topologySpreadConstraints")):
        here = f"{path}.topologySpreadConstraints[{i}]"
        skew = constraint.get("maxSkew") or 0
        if isinstance(skew, int) and skew <= 0:
            yield invalid(f"{here}.maxSkew", skew, "must be greater than zero")
        if not constraint.get("topologyKey"):
            yield required(f"{here}.topologyKey", "can not be empty")
        if constraint.get("whenUnsatisfiable") not in actions:
            yield not_supported(f"{here}.whenUnsatisfiable", constraint.get("whenUnsatisfiable") or "", actions)
        yield from selector(constraint.get("labelSelector"), f"{here}.labelSelector")


def _affinity(affinity: Object, path: str) -> Errors:
    node = section(affinity, "nodeAffinity")
    needed = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if isinstance(needed, dict):
        here = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        terms = children(needed, "nodeSelectorTerms")
        if not terms:
            yield required(here, "must have at least one node selector term")
        for i, term in enumerate(terms):
            for j, expression in enumerate(children(term, "matchExpressions")):
                yield from _node_expression(expression, f"{here}[{i}].matchExpressions[{j}]")
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = section(affinity, kind)
        here = f"{path}.{kind}.requiredDuringSchedulingIgnoredDuringExecution"
        for i, term in enumerate(children(rules, "requiredDuringSchedulingIgnoredDuringExecution")):
            yield from _pod_term(term, f"{here}[{i}]")
        here = f"{path}.{kind}.preferredDuringSchedulingIgnoredDuringExecution"
        for i, weighted in enumerate(children(rules, "preferredDuringSchedulingIgnoredDuringExecution")):
            weight = weighted.get("weight") or 0
            if not isinstance(weight, int) or not 1 <= weight <= 100:
                yield invalid(f"{here}[{i}].weight", weight, "must be in the range 1-100")
            yield from _pod_term(section(weighted, "podAffinityTerm"), f"{here}[{i}].podAffinityTerm")


def _node_expression(expression: Object, here: str) -> Errors:
    operator, values = expression.get("operator"), items(expression, "values")
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(f"{here}.values", detail)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{here}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{here}.operator", operator or "", "not a valid selector operator")
    yield from at(f"{here}.key", expression.get("key", ""), qualified_name(str(expression.get("key", ""))))


def _pod_term(term: Object, here: str) -> Errors:
    yield from selector(term.get("labelSelector"), f"{here}.labelSelector")
    key = str(term.get("topologyKey") or "")
    if not key:
        yield required(f"{here}.topologyKey", "can not be empty")
    yield from at(f"{here}.topologyKey", key, qualified_name(key))


def taint_effect(effect: object, field: str) -> Errors:
    """What a taint does."""
    if effect not in _EFFECTS:
        yield not_supported(field, effect, _EFFECTS)


def tolerations(value: object, path: str) -> Errors:
    """Tolerations of a pod."""
    for i, item in enumerate(children({"items": value}, "items")):
        here = f"{path}[{i}]"
        key, operator, own = item.get("key") or "", item.get("operator") or "", str(item.get("value") or "")
        if key:
            yield from at(f"{here}.key", key, qualified_name(str(key)))
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{here}.operator", operator, detail)
        if item.get("tolerationSeconds") is not None and item.get("effect") != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{here}.effect", item.get("effect") or "", detail)
        if operator in ("", "Equal"):
            wrong = ";".join(label_value(own))
            if wrong:
                yield invalid(f"{here}.operator", own, wrong)
        elif operator == "Exists":
            if own:
                yield invalid(f"{here}.operator", own, "value must be empty when `operator` is 'Exists'")
        else:
            yield not_supported(f"{here}.operator", operator, ["Equal", "Exists"])
        if item.get("effect"):
            yield from taint_effect(item["effect"], f"{here}.effect")


def _update(new: Object, old: Object, minor: int) -> Errors:
    for kind in ("containers", "initContainers"):
        before, after = children(old, kind), children(new, kind)
        if len(before) != len(after):
            yield forbidden_field(f"spec.{kind}", "pod updates may not add or remove containers")
            return
        for i, container in enumerate(after):
            image = str(container.get("image") or "")
            if image.strip() != image:
                yield invalid(f"spec.{kind}[{i}].image", image, "must not have leading or trailing whitespace")
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


def ephemeral_containers(new: Object, old: Object) -> list[FieldError]:
    """Ephemeral containers can be added, never changed or taken away."""
    before = {str(c.get("name")): c for c in children(section(old, "spec"), "ephemeralContainers")}
    after = {str(c.get("name")): c for c in children(section(new, "spec"), "ephemeralContainers")}
    errors = []
    for name, container in before.items():
        if name not in after:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(forbidden_field("spec.ephemeralContainers", detail))
        elif after[name] != container:
            detail = f'existing ephemeral containers "{name}" may not be changed\n'
            errors.append(forbidden_field("spec.ephemeralContainers", detail))
    return errors
