"""PersistentVolumeClaims, alone or in the templates of others."""

from __future__ import annotations

from winready_sandbox.api.errors import forbidden_field, invalid, not_supported, required
from winready_sandbox.api.validation.formats import Errors, at, dns_subdomain, selector
from winready_sandbox.api.validation.reading import Object, items, section
from winready_sandbox.api.validation.resources import quantity_value
from winready_sandbox.quantity import canonical, parse

_ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]
MODES = ["Block", "Filesystem"]


def claim(obj: Object, old: Object | None, minor: int) -> Errors:
    """A PersistentVolumeClaim."""
    spec = section(obj, "spec")
    yield from claim_spec(spec, "spec")
    if old is not None:
        free = ("resources", "volumeName", "volumeAttributesClassName")
        before = {key: value for key, value in section(old, "spec").items() if key not in free}
        if {key: value for key, value in spec.items() if key not in free} != before:
            detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
            yield forbidden_field("spec", f"{detail} for bound claims\n")


def claim_spec(spec: Object, path: str) -> Errors:
    """What is claimed."""
    if not items(spec, "accessModes"):
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector(spec.get("selector"), f"{path}.selector")
    yield from access_modes(spec, path)
    wanted = section(section(spec, "resources"), "requests").get("storage")
    here = f"{path}.resources[storage]"
    if wanted is None:
        yield required(here)
    else:
        wrong = list(positive(wanted, here))
        yield from wrong or quantity_value("storage", wanted, here)
    name = spec.get("storageClassName")
    if name:
        yield from at(f"{path}.storageClassName", name, dns_subdomain(str(name)))
    if spec.get("volumeMode") not in (None, *MODES):
        yield not_supported(f"{path}.volumeMode", spec["volumeMode"], MODES)
    yield from _source(spec, path)


def _source(spec: Object, path: str) -> Errors:
    source = spec.get("dataSource")
    if not isinstance(source, dict):
        return
    here = f"{path}.dataSource"
    for name in ("name", "kind"):
        if not source.get(name):
            yield required(f"{here}.{name}")
    if not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(here, source.get("kind") or "", detail)


def positive(quantity: object, here: str) -> Errors:
    """An amount that is not nothing."""
    try:
        amount = parse(quantity)
    except ValueError:
        return
    if amount <= 0:
        yield invalid(here, canonical(quantity), "must be greater than zero")


def access_modes(spec: Object, path: str) -> Errors:
    """How many may use a volume at once."""
    modes = items(spec, "accessModes")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(f"{path}.accessModes", mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        yield forbidden_field(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
