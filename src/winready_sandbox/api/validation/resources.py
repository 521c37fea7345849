"""Amounts that containers and pods ask for: known names, quantities, requests within limits, claims of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from winready_sandbox.api.errors import FieldError, duplicate, forbidden_field, invalid, not_supported, required
from winready_sandbox.api.pod_resources import (
    POD_LEVEL,
    amount,
    container_limits,
    container_requests,
    is_overcommitted,
    text_of,
)
from winready_sandbox.api.validation.formats import NEGATIVE, Errors, at, dns_label, dns_subdomain, qualified_name
from winready_sandbox.api.validation.reading import Object, children, section
from winready_sandbox.quantity import REFUSAL, canonical, parse

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
QUOTA_NAMES = frozenset(
    {"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage", "limits.cpu"}
    | {"requests.ephemeral-storage", "limits.memory", "limits.ephemeral-storage", "pods", "services", "secrets"}
    | {"resourcequotas", "replicationcontrollers", "persistentvolumeclaims", "configmaps", "services.nodeports"}
    | {"services.loadbalancers"}
)
_STANDARD = QUOTA_NAMES | {"storage"}
_HUGE = "hugepages-"
Names = Callable[[str, str], Errors]


def shown(quantity: object) -> str:
    """An amount as it is repeated to its writer."""
    try:
        return canonical(quantity)
    except ValueError:
        return str(quantity)


def requirements(value: Object, path: str, claims: Iterable[str] = (), names: Names | None = None) -> Errors:
    """Requests and limits of a container, or of a pod with rules of its own for names."""
    check = names or container_resource
    limits, requests = section(value, "limits"), section(value, "requests")
    for name, quantity in limits.items():
        yield from _one(str(name), quantity, f"{path}.limits[{name}]", check)
    for name, quantity in requests.items():
        here = f"{path}.requests[{name}]"
        yield from check(str(name), here)
        yield from quantity_value(str(name), quantity, here)
        yield from _within(str(name), quantity, limits, path)
        yield from _huge_pages(str(name), quantity, here)
    asked = {*limits, *requests}
    if any(str(name).startswith(_HUGE) for name in asked) and not asked & {"cpu", "memory"}:
        yield forbidden_field(path, "HugePages require cpu or memory")
    yield from _claims(value, path, sorted(claims))


def _one(name: str, quantity: object, here: str, check: Names) -> Errors:
    yield from check(name, here)
    yield from quantity_value(name, quantity, here)
    yield from _huge_pages(name, quantity, here)


def _within(name: str, quantity: object, limits: Object, path: str) -> Errors:
    overcommit = is_overcommitted(name)
    if name not in limits:
        if not overcommit:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    try:
        request, limit = parse(quantity), parse(limits[name])
    except ValueError:
        return
    if request != limit and not overcommit:
        yield invalid(f"{path}.requests", shown(quantity), f"must be equal to {name} limit of {limits[name]}")
    elif request > limit:
        detail = f"must be less than or equal to {name} limit of {limits[name]}"
        yield invalid(f"{path}.requests", shown(quantity), detail)


def container_resource(name: str, here: str) -> Errors:
    """A resource that a container can ask for."""
    wrong = list(resource_name(name, here))
    yield from wrong
    if "/" not in name:
        if name not in _CONTAINER and not name.startswith(_HUGE):
            yield invalid(here, name, "must be a standard resource for containers")
    elif "kubernetes.io/" not in name and (
        name.startswith("requests.") or any(True for _ in qualified_name(f"requests.{name}"))
    ):
        yield invalid(here, name, "doesn't follow extended resource name standard")


def resource_name(name: str, here: str) -> Errors:
    """A resource that is known or somebody's own."""
    wrong = list(at(here, name, qualified_name(name)))
    yield from wrong
    if wrong or "/" in name or name in _STANDARD or name.startswith((_HUGE, f"requests.{_HUGE}")):
        return
    yield invalid(here, name, "must be a standard resource type or fully qualified")


def _pod_resource(name: str, here: str) -> Errors:
    wrong = list(resource_name(name, here))
    yield from wrong
    if not wrong and name not in POD_LEVEL and not name.startswith(_HUGE):
        yield not_supported(here, name, ["cpu", _HUGE, "memory"])


def quantity_value(name: str, quantity: object, here: str) -> Errors:
    """An amount of a resource; amounts of extended ones are whole."""
    try:
        given = parse(quantity)
    except ValueError:
        yield invalid(here, quantity, REFUSAL)
        return
    if given < 0:
        yield invalid(here, shown(quantity), NEGATIVE)
    whole = ("/" in name and "kubernetes.io/" not in name) or name.startswith("count/")
    if whole and given.denominator != 1:
        yield invalid(here, shown(quantity), "must be an integer")


def _huge_pages(name: str, quantity: object, here: str) -> Errors:
    if not name.startswith(_HUGE):
        return
    try:
        size, given = parse(name.removeprefix(_HUGE)), parse(quantity)
        sound = size > 0 and given.denominator == 1 and given % size == 0 and size.denominator == 1
    except ValueError:
        sound = False
    if not sound:
        detail = f"{shown(quantity)} is not positive integer multiple of {name}"
        yield invalid(here, shown(quantity), detail)


def _claims(value: Object, path: str, known: list[str]) -> Errors:
    seen: set[str] = set()
    for i, claim in enumerate(children(value, "claims")):
        here, name, request = f"{path}.claims[{i}]", str(claim.get("name") or ""), str(claim.get("request") or "")
        if not name:
            yield required(here)
            continue
        key = f"{name}/{request}" if request else name
        if name in seen:
            yield duplicate(here, name)
        else:
            if request:
                yield from at(f"{here}.request", request, dns_label(request))
            if key in seen:
                yield duplicate(here, key)
            elif not request and any(each.partition("/")[0] == name for each in seen if "/" in each):
                yield duplicate(here, name)
            seen.add(key)
        if name not in known:
            names = f": {', '.join(known)}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{names}"
            yield FieldError(here, f'Not found: "{name}": {detail}', "FieldValueNotFound")


def pod_claims(spec: Object, path: str) -> Errors:
    """Claims of devices that a pod has."""
    seen: set[str] = set()
    for i, claim in enumerate(children(spec, "resourceClaims")):
        here, name = f"{path}.resourceClaims[{i}]", str(claim.get("name") or "")
        if not name:
            yield required(f"{here}.name")
        elif name in seen:
            yield duplicate(f"{here}.name", name)
        else:
            yield from at(f"{here}.name", name, dns_label(name))
            seen.add(name)
        ways = ("resourceClaimName", "resourceClaimTemplateName")
        given = [way for way in ways if claim.get(way) is not None]
        told = {"Name": name, "ResourceClaimName": claim.get(ways[0]), "ResourceClaimTemplateName": claim.get(ways[1])}
        if len(given) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(here, told, detail)
        if not given:
            yield invalid(here, told, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for way in given:
            yield from at(f"{here}.{way}", claim[way], dns_subdomain(str(claim[way])))


def pod_resources(spec: Object, path: str) -> Errors:
    """Amounts for all containers of a pod together, which no Windows pod can have."""
    if spec.get("resources") is None:
        return
    here, value = f"{path}.resources", section(spec, "resources")
    if section(spec, "os").get("name") == "windows":
        yield forbidden_field(here, "may not be set for a windows pod")
        return
    if value.get("claims") is not None:
        yield forbidden_field(f"{here}.claims", "claims may not be set for Resources at pod-level")
    names = [str(claim.get("name")) for claim in children(spec, "resourceClaims")]
    yield from requirements(value, here, names, _pod_resource)
    yield from _enough(value, container_requests(spec), "requests", here)
    huge = {name: total for name, total in container_limits(spec).items() if name.startswith(_HUGE)}
    yield from _enough(value, huge, "limits", here)
    for i, container in enumerate(children(spec, "containers")):
        for name, quantity in section(section(container, "resources"), "limits").items():
            limit = section(value, "limits").get(name)
            if limit is not None and amount(quantity) > amount(limit):
                field = f"{here}.containers[{i}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {limit}"
                yield invalid(field, shown(quantity), detail)


def _enough(value: Object, totals: dict[str, Fraction], kind: str, here: str) -> Errors:
    for name, total in totals.items():
        given = section(value, kind).get(name)
        if given is not None and total > amount(given):
            detail = f"must be greater than or equal to aggregate container {kind} of {text_of(name, total)}"
            yield invalid(f"{here}.{kind}[{name}]", shown(given), detail)
