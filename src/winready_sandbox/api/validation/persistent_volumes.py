"""PersistentVolumes: a size, a way to be used, and exactly one source."""

from __future__ import annotations

from winready_sandbox.api.errors import forbidden_field, invalid, not_supported, required
from winready_sandbox.api.validation.claims import MODES, access_modes, positive
from winready_sandbox.api.validation.formats import Errors, at, dns_subdomain
from winready_sandbox.api.validation.projections import no_backsteps
from winready_sandbox.api.validation.reading import Object, items, section
from winready_sandbox.api.validation.scheduling import node_selector
from winready_sandbox.api.validation.volumes import CHECKS, csi_driver, iscsi
from winready_sandbox.quantity import parse

_ORDER = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
]
"""In which order the API server looks for sources."""
_POLICIES = ["Delete", "Recycle", "Retain"]


def volume(obj: Object, old: Object | None, minor: int) -> Errors:
    """A PersistentVolume."""
    spec = section(obj, "spec")
    if not items(spec, "accessModes"):
        yield required("spec.accessModes")
    yield from access_modes(spec, "spec")
    yield from _capacity(section(spec, "capacity"))
    policy = spec.get("persistentVolumeReclaimPolicy", "Retain")
    if policy and policy not in _POLICIES:
        yield not_supported("spec.persistentVolumeReclaimPolicy", policy, _POLICIES)
    if isinstance(spec.get("nodeAffinity"), dict):
        needed = section(spec, "nodeAffinity").get("required")
        if not isinstance(needed, dict):
            yield required("spec.nodeAffinity.required", "must specify required node constraints")
        else:
            yield from node_selector(needed, "spec.nodeAffinity.required", strict=minor >= 33)
    yield from _sources(spec)
    name = spec.get("storageClassName")
    if name:
        yield from at("spec.storageClassName", name, dns_subdomain(str(name)))
    if spec.get("volumeMode") not in (None, *MODES):
        yield not_supported("spec.volumeMode", spec["volumeMode"], MODES)


def _capacity(capacity: Object) -> Errors:
    if not capacity:
        yield required("spec.capacity")
    if "storage" not in capacity or len(capacity) > 1:
        yield not_supported("spec.capacity", capacity or None, ["storage"])
    for name, size in capacity.items():
        here = f"spec.capacity[{name}]"
        try:
            if parse(size) < 0:
                yield invalid(here, int(parse(size)), "must be a valid resource quantity")
        except ValueError:
            continue
        yield from positive(size, here)


def _sources(spec: Object) -> Errors:
    given = [name for name in _ORDER if isinstance(spec.get(name), dict)]
    if not given:
        yield required("spec", "must specify a volume type")
        return
    first, *others = given
    yield from _source(spec, first)
    for extra in others:
        shown = "cephFS" if extra == "cephfs" else extra
        yield forbidden_field(f"spec.{shown}", "may not specify more than 1 volume type")


def _source(spec: Object, kind: str) -> Errors:
    source = section(spec, kind)
    path = "spec.persistentDisk" if kind == "gcePersistentDisk" else f"spec.{kind}"
    if kind == "local":
        where = str(source.get("path") or "")
        if not where:
            yield required(f"{path}.path")
        else:
            yield from no_backsteps(where, f"{path}.path")
        if not section(section(spec, "nodeAffinity"), "required").get("nodeSelectorTerms"):
            yield required("spec.nodeAffinity", "Local volume requires node affinity")
    elif kind == "csi":
        yield from csi_driver(str(source.get("driver") or ""), f"{path}.driver")
        if not source.get("volumeHandle"):
            yield required(f"{path}.volumeHandle")
    elif kind == "iscsi":
        yield from iscsi(source, path, persistent=True)
    elif kind in CHECKS:
        yield from CHECKS[kind](source, path)
        if kind == "azureFile" and source.get("secretNamespace") == "":
            yield invalid(f"{path}.secretNamespace", "", "if set, it must be a valid namespace name")
