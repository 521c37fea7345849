"""How much there may be: autoscalers and limit ranges."""

from __future__ import annotations

from winready_sandbox.api.errors import duplicate, forbidden_field, invalid, not_supported, required
from winready_sandbox.api.pod_resources import amount, is_overcommitted
from winready_sandbox.api.validation.formats import Errors, at, path_segment
from winready_sandbox.api.validation.reading import Object, children, section
from winready_sandbox.api.validation.resources import resource_name

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def autoscaler(obj: Object, old: Object | None, minor: int) -> Errors:
    """A HorizontalPodAutoscaler."""
    spec = section(obj, "spec")
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    most = most if isinstance(most, int) else 1
    if isinstance(least, int) and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1 and minor < 36:
        yield invalid("spec.maxReplicas", most, "must be greater than 0")
    elif most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if isinstance(least, int) and most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = section(spec, "scaleTargetRef")
    for name in ("kind", "name"):
        value = str(target.get(name) or "")
        if not value:
            yield required(f"spec.scaleTargetRef.{name}")
        else:
            yield from at(f"spec.scaleTargetRef.{name}", value, path_segment(value))
    version = str(target.get("apiVersion") or "")
    if minor >= 36 and "/" not in version:
        yield invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")
    for i, metric in enumerate(children(spec, "metrics")):
        here, kind = f"spec.metrics[{i}]", str(metric.get("type") or "")
        if not kind:
            yield required(f"{here}.type", "must specify a metric source type")
        if kind not in _SOURCES:
            yield not_supported(f"{here}.type", kind, list(_SOURCES))
        elif metric.get(_SOURCES[kind]) is None:
            yield required(f"{here}.{_SOURCES[kind]}", "must populate information for the given metric source")


def limit_range(obj: Object, old: Object | None, minor: int) -> Errors:
    """A LimitRange."""
    kinds: set[str] = set()
    for i, item in enumerate(children(section(obj, "spec"), "limits")):
        here, kind = f"spec.limits[{i}]", str(item.get("type"))
        if kind in kinds:
            yield duplicate(f"{here}.type", kind)
        kinds.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if item.get(name):
                    yield forbidden_field(f"{here}.{name}", "may not be specified when `type` is 'Pod'")
        for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            for resource in section(item, name):
                yield from resource_name(str(resource), f"{here}.{name}[{resource}]")
        if kind == "PersistentVolumeClaim" and not any("storage" in section(item, name) for name in ("min", "max")):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            yield required(f"{here}.limits", detail)
        yield from _bounds(item, here)


_ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""What may not be more than what, which of them is to blame, and whose value is told."""


def _bounds(item: Object, here: str) -> Errors:
    names = {name for kind in ("max", "min", "default", "defaultRequest") for name in section(item, kind)}
    for name in sorted(names):
        for low, high, blamed, told, text in _ORDER:
            less, more = section(item, low).get(name), section(item, high).get(name)
            if less is not None and more is not None and amount(less) > amount(more):
                yield invalid(f"{here}.{blamed}[{name}]", section(item, told)[name], text.format(less, more))
        default, request = section(item, "default").get(name), section(item, "defaultRequest").get(name)
        if not is_overcommitted(str(name)) and None not in (default, request) and amount(default) != amount(request):
            detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
            yield invalid(f"{here}.defaultRequest[{name}]", request, detail)
