"""Rules about objects that are no workloads."""

from __future__ import annotations

from collections.abc import Iterator

from winready.lint.context import BUILD_LABEL, ENFORCING_PLUGINS, OS_LABELS
from winready.lint.objects import dig, items, mapping
from winready.lint.rules import Hit, View, object_check
from winready.lint.rules.security import is_object_name
from winready.lint.target import looks_windows
from winready.lint.versions import pinned_minor

_ENFORCE = "pod-security.kubernetes.io/enforce"
_MOST_BACKENDS = 64
_ENOUGH = 1000  # workloads behind one Service that need looking at; a generated file may have any number


@object_check("rc-os-selector")
def runtime_class_os_selector(view: View) -> Iterator[Hit]:
    selector = mapping(view.object.value, "scheduling", "nodeSelector")
    if looks_windows(view.object.value) and not any(label in selector for label in (*OS_LABELS, BUILD_LABEL)):
        yield Hit(("scheduling", "nodeSelector") if selector else ("handler",))


@object_check("psa-restricted-pinned-old")
def restricted_pinned_old(view: View) -> Iterator[Hit]:
    labels = mapping(view.object.value, "metadata", "labels")
    if labels.get(_ENFORCE) != "restricted" or view.object.name not in view.facts.declared_namespaces:
        return
    pinned = pinned_minor(str(labels.get(f"{_ENFORCE}-version", "latest")))
    if pinned is not None and pinned < 25:
        yield Hit(("metadata", "labels", f"{_ENFORCE}-version"))
    elif view.facts.profile.versions.low == 24 == view.facts.profile.versions.high:
        yield Hit(("metadata", "labels", _ENFORCE))


@object_check("svc-ipv6-only")
def ipv6_only(view: View) -> Iterator[Hit]:
    if dig(view.object.value, "spec", "ipFamilies") == ["IPv6"]:
        yield Hit(("spec", "ipFamilies"))


@object_check("svc-too-many-backends")
def too_many_backends(view: View) -> Iterator[Hit]:
    now, most = 0, 0
    for one in view.backends[:_ENOUGH]:
        now += one.replicas
        most += max(one.replicas, view.most.get((one.namespace, one.kind, one.name), 0))
    if most > _MOST_BACKENDS:
        names = ", ".join(f"{backend.kind} {backend.name}" for backend in view.backends[:3])
        names += f" and {len(view.backends) - 3} more" if len(view.backends) > 3 else ""
        many = f"{now} pods" if now > _MOST_BACKENDS else f"up to {most} pods, by their autoscaler,"
        yield Hit(("spec", "selector"), f"{names}: {many} behind one Service")


@object_check("svc-mixed-target-ports")
def mixed_target_ports(view: View) -> Iterator[Hit]:
    for index, port in enumerate(items(view.object.value, "spec", "ports")):
        name = dig(port, "targetPort")
        if isinstance(name, str):
            numbers = {
                str(number) for backend in view.backends[:_ENOUGH] for known, number in backend.ports if known == name
            }
            if len(numbers) > 1:
                detail = f"port {name} is {' here and '.join(sorted(numbers))} there among the backends"
                yield Hit(("spec", "ports", index, "targetPort"), detail)


@object_check("np-needs-plugin")
def needs_plugin(view: View) -> Iterator[Hit]:
    if view.facts.profile.cni not in ENFORCING_PLUGINS:
        yield Hit(("spec", "podSelector"))


@object_check("np-host-process")
def policy_for_host_process(view: View) -> Iterator[Hit]:
    for backend in view.backends:
        if backend.host_process:
            yield Hit(("spec", "podSelector"), f"it selects {backend.kind} {backend.name}, whose pods are HostProcess")
            return


@object_check("gmsa-field-limits")
def credential_spec_limits(view: View) -> Iterator[Hit]:
    if view.object.kind == "GMSACredentialSpec" and not is_object_name(view.object.name):
        yield Hit(("metadata", "name"), f"{view.object.name!r} is not a valid object name")
