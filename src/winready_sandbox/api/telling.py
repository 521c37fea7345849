"""What the writer of a sound object is told: what is deprecated, hides something or will not do what it seems to.

The words are those of the real server, which sends them as ``Warning`` headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from winready_sandbox.api.gates import on
from winready_sandbox.api.objects import Object
from winready_sandbox.api.pod_defaults import APPARMOR
from winready_sandbox.api.pod_fields import apparmor_profile
from winready_sandbox.api.pod_resources import children
from winready_sandbox.api.registry import Admission
from winready_sandbox.api.strategy import pod_in, template_path
from winready_sandbox.api.validation.formats import label_value
from winready_sandbox.api.validation.reading import containers_of, items, section
from winready_sandbox.quantity import parse

DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'v1.11+; use the "sysctls" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP = ("seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/")
_NO_SELECTOR = "a null labelSelector results in matching no pod"


class Telling:
    """Warnings about what is written, once it is known to be valid."""

    def __init__(self, minor: int) -> None:
        self._minor = minor

    def tell(self, admission: Admission) -> None:
        """Add what the writer should know; of changed pods nobody writes by hand."""
        if admission.operation not in ("CREATE", "UPDATE") or admission.subresource:
            return
        resource, obj = admission.resource, admission.obj
        pod = pod_in(resource, obj)
        is_pod = resource.storage == ("", "pods")
        if pod is not None and not (is_pod and admission.old is not None):
            changed = admission.old is None or obj.get("spec") != admission.old.get("spec")
            if changed:
                path = template_path(resource)
                admission.warnings.extend(self._pod(pod, f"{path}." if path else ""))
        elif resource.storage == ("", "persistentvolumes"):
            admission.warnings.extend(_persistent_volume(section(obj, "spec")))
        elif resource.storage == ("", "persistentvolumeclaims"):
            admission.warnings.extend(_claim(section(obj, "spec"), "spec"))
        elif resource.storage == ("node.k8s.io", "runtimeclasses"):
            for key in section(section(obj, "scheduling"), "nodeSelector"):
                if key in DEPRECATED_LABELS:  # the real server does not say which key
                    admission.warnings.append(f"scheduling.nodeSelector: {DEPRECATED_LABELS[key]}")
        elif resource.storage == ("storage.k8s.io", "storageclasses"):
            admission.warnings.extend(_storage_class(obj))
        elif resource.storage == ("", "services"):
            admission.warnings.extend(self._service(obj))

    def _pod(self, pod: Object, path: str) -> Iterator[str]:
        spec, metadata = section(pod, "spec"), section(pod, "metadata")
        given = section(metadata, "annotations")
        yield from _labels(section(spec, "nodeSelector"), f"{path}spec.nodeSelector")
        yield from _node_affinity(
            section(section(spec, "affinity"), "nodeAffinity"), f"{path}spec.affinity.nodeAffinity"
        )
        yield from _spread(spec, f"{path}spec.topologySpreadConstraints")
        for key, text in _ANNOTATIONS.items():
            if key in given:
                yield f"{path}metadata.annotations[{key}]: non-functional in {text}"
        yield from self._volumes(spec, f"{path}spec.volumes")
        yield from _overlaps(spec)
        yield from _twice(children(spec, "hostAliases"), "ip", f"{path}spec.hostAliases")
        yield from _twice(children(spec, "imagePullSecrets"), "name", f"{path}spec.imagePullSecrets")
        for i, secret in enumerate(children(spec, "imagePullSecrets")):
            if not secret.get("name"):
                yield f'{path}spec.imagePullSecrets[{i}].name: invalid empty name ""'
        yield from _fractions(section(spec, "overhead"), f"{path}spec.overhead")
        if _SECCOMP[0] in given and section(spec, "securityContext").get("seccompProfile") is None:
            yield _of_seccomp(path, _SECCOMP[0])
        for container, here in containers_of(spec, f"{path}spec"):
            yield from self._container(container, here, path, given, section(spec, "securityContext"))
        yield from _ports(list(containers_of(spec, f"{path}spec")))
        grace = spec.get("terminationGracePeriodSeconds")
        if isinstance(grace, int) and grace < 0:
            text = "must be >= 0; negative values are invalid and will be treated as 1"
            yield f"{path}spec.terminationGracePeriodSeconds: {text}"
        yield from _pod_affinity(section(spec, "affinity"), f"{path}spec.affinity")

    def _container(self, container: Object, here: str, path: str, given: Object, shared: Object) -> Iterator[str]:
        own, name = section(container, "securityContext"), container.get("name")
        if f"{_SECCOMP[1]}{name}" in given and own.get("seccompProfile") is None:
            yield _of_seccomp(path, f"{_SECCOMP[1]}{name}")
        key = f"{APPARMOR}{name}"
        # Pods are told when their annotations become fields.
        if path and key in given and own.get("appArmorProfile") is None:
            profile = shared.get("appArmorProfile")
            says_other = on("AppArmorWithoutAnnotations", self._minor) and profile != apparmor_profile(str(given[key]))
            if profile is None or says_other:
                text = 'deprecated since v1.30; use the "appArmorProfile" field instead'
                yield f"{path}metadata.annotations[{key}]: {text}"
        for kind in ("limits", "requests"):
            yield from _fractions(section(section(container, "resources"), kind), f"{here}.resources.{kind}")
        seen: set[object] = set()
        for i, variable in enumerate(children(container, "env")):
            variable_name, value = variable.get("name"), str(variable.get("value") or "")
            reference = f"$({variable_name})"
            hidden = variable.get("valueFrom") is not None or value == reference or reference not in value
            if variable_name in seen and hidden:
                text = "which may be dropped when using apply"
                yield f'{here}.env[{i}]: hides previous definition of "{variable_name}", {text}'
            seen.add(variable_name)

    def _service(self, obj: Object) -> Iterator[str]:
        spec, old = section(obj, "spec"), "service.kubernetes.io/topology-aware-hints"
        kind, external = spec.get("type"), spec.get("externalIPs")
        if old in section(section(obj, "metadata"), "annotations"):
            yield f"annotation {old} is deprecated, please use service.kubernetes.io/topology-mode instead"
        if spec.get("clusterIP") == "None":
            if spec.get("loadBalancerIP"):
                yield "spec.loadBalancerIP is ignored for headless services"
            if external:
                yield "spec.externalIPs is ignored for headless services"
            if spec.get("sessionAffinity") != "None":
                yield "spec.SessionAffinity is ignored for headless services"
        elif external and kind != "ExternalName" and self._minor >= 36:
            yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        if external and kind == "ExternalName":
            yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
        if kind != "ExternalName" and spec.get("externalName"):
            yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
        if spec.get("trafficDistribution") == "PreferClose" and self._minor >= 35:
            yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'

    def _volumes(self, spec: Object, path: str) -> Iterator[str]:
        for i, volume in enumerate(children(spec, "volumes")):
            for kind, text in _VOLUMES.items():
                if volume.get(kind) is None:
                    continue
                if kind == "gitRepo" and self._minor < 33:
                    text = "deprecated in v1.11"
                yield f"{path}[{i}].{'storageOS' if kind == 'storageos' else kind}: {text}"
            template = section(section(volume, "ephemeral"), "volumeClaimTemplate")
            yield from _claim(section(template, "spec"), f"{path}[{i}].ephemeral.volumeClaimTemplate.spec")


def _labels(selector: Object, path: str) -> Iterator[str]:
    for key in selector:
        if key in DEPRECATED_LABELS:
            yield f"{path}[{key}]: {DEPRECATED_LABELS[key]}"


def node_term(term: Object, path: str, values: bool) -> Iterator[str]:
    """What is told of a term that selects nodes; ``values`` also of those that no label can have."""
    for i, expression in enumerate(children(term, "matchExpressions")):
        key, here = expression.get("key"), f"{path}.matchExpressions[{i}]"
        if key in DEPRECATED_LABELS:
            yield f"{here}.key: {key} is {DEPRECATED_LABELS[key]}"
        if values:
            for j, value in enumerate(items(expression, "values")):
                yield from (f"{here}.values[{j}]: {value} is invalid, {text}" for text in label_value(str(value)))


def _node_affinity(affinity: Object, path: str) -> Iterator[str]:
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    for i, term in enumerate(children(section(affinity, field), "nodeSelectorTerms")):
        yield from node_term(term, f"{path}.{field}.nodeSelectorTerms[{i}]", values=False)
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    for i, term in enumerate(children(affinity, field)):
        yield from node_term(section(term, "preference"), f"{path}.{field}[{i}].preference", values=True)


def _pod_affinity(affinity: Object, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules, here = section(affinity, kind), f"{path}.{kind}"
        for i, term in enumerate(children(rules, "requiredDuringSchedulingIgnoredDuringExecution")):
            if term.get("labelSelector") is None:
                yield f"{here}.requiredDuringSchedulingIgnoredDuringExecution[{i}].labelSelector: {_NO_SELECTOR}"
        field = "preferredDuringSchedulingIgnoredDuringExecution"
        for i, term in enumerate(children(rules, field)):
            if section(term, "podAffinityTerm").get("labelSelector") is None:
                yield f"{here}.{field}[{i}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _spread(spec: Object, path: str) -> Iterator[str]:
    for i, constraint in enumerate(children(spec, "topologySpreadConstraints")):
        key = constraint.get("topologyKey")
        if key in DEPRECATED_LABELS:
            yield f"{path}[{i}].topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{path}[{i}].labelSelector: {_NO_SELECTOR}"


def _twice(some: list[Object], name: str, path: str) -> Iterator[str]:
    seen: set[object] = set()
    for i, item in enumerate(some):
        if item.get(name) in seen:
            yield f'{path}[{i}].{name}: duplicate {name} "{item.get(name)}"'
        seen.add(item.get(name))


def _fractions(amounts: Object, path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        if name in amounts and parse(amounts[name]).denominator != 1:
            yield f'{path}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer'


def _of_seccomp(path: str, key: str) -> str:
    return f'{path}metadata.annotations[{key}]: non-functional in v1.27+; use the "seccompProfile" field instead'


def _ports(containers: Iterable[tuple[Object, str]]) -> Iterator[str]:
    listed = [
        (port, f"{here}.ports[{i}]")
        for container, here in containers
        for i, port in enumerate(children(container, "ports"))
    ]
    known: dict[tuple[object, object], list[tuple[Object, str]]] = {}
    for port, here in listed:
        number, address = port.get("hostPort") or 0, port.get("hostIP") or ""
        others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for other, there in others:
            other_number, other_address = other.get("hostPort") or 0, other.get("hostIP") or ""
            if (number, address) == (other_number, other_address):
                yield f"{here}: duplicate port definition with {there}"
            elif not number or not other_number:
                yield f"{here}: overlapping port definition with {there}"
            elif number == other_number and bool(address) != bool(other_address):
                yield f"{here}: dangerously ambiguous port definition with {there}"
        others.append((port, here))
    names: dict[object, str] = {}
    for port, here in listed:
        name = port.get("name")
        if name and name in names:
            text = f"services and probes that select ports by name will use {names[name]}"
            yield f'{here}: duplicate port name "{name}" with {names[name]}, {text}'
        elif name:
            names[name] = here


def _overlaps(spec: Object) -> Iterator[str]:
    for volume in children(spec, "volumes"):
        for source in items(section(volume, "projected"), "sources"):
            if not source:
                yield f'volume "{volume.get("name")}" (Projected) has no sources provided'


def _claim(spec: Object, path: str) -> Iterator[str]:
    for kind in ("limits", "requests"):
        amounts = section(section(spec, "resources"), kind)
        if "storage" in amounts and parse(amounts["storage"]).denominator != 1:
            text = "fractional byte value"
            yield f'{path}.resources.{kind}[storage]: {text} "{amounts["storage"]}" is invalid, must be an integer'


def _persistent_volume(spec: Object) -> Iterator[str]:
    terms = children(section(section(spec, "nodeAffinity"), "required"), "nodeSelectorTerms")
    for i, term in enumerate(terms):
        yield from node_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]", values=False)
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "The Recycle reclaim policy is deprecated."
        instead = "Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: {text} {instead}"
    for kind in ("photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "cephfs", "rbd"):
        if spec.get(kind) is not None:
            yield f"spec.{'storageOS' if kind == 'storageos' else kind}: {_VOLUMES[kind]}"


def _storage_class(obj: Object) -> Iterator[str]:
    for i, term in enumerate(children(obj, "allowedTopologies")):
        for j, wanted in enumerate(children(term, "matchLabelExpressions")):
            if wanted.get("key") in DEPRECATED_LABELS:
                text = f"{wanted['key']} is {DEPRECATED_LABELS[wanted['key']]}"
                yield f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {text}"
