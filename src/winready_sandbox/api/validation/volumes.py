"""Volumes of pods: a name of their own and exactly one source, which has what it needs."""

from __future__ import annotations

import re
from collections.abc import Callable

from winready_sandbox.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
)
from winready_sandbox.api.validation.claims import claim_spec
from winready_sandbox.api.validation.formats import Errors, at, dns_label, dns_subdomain
from winready_sandbox.api.validation.projections import (
    downward_api,
    files,
    mode,
    no_backsteps,
    projected,
    relative_path,
)
from winready_sandbox.api.validation.reading import Object, children, items, section
from winready_sandbox.quantity import parse

_HOST_PATH_TYPES = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]
_PULL_POLICIES = ["Always", "IfNotPresent", "Never"]
_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([a-z0-9][a-z0-9-]*\.?)+(:[^,;*&$|\s]+)$")
_EUI, _NAA = re.compile(r"^eui.[a-zA-Z0-9]{16}$"), re.compile(r"^naa.[a-zA-Z0-9]{32}$")
_PARTITION = "must be in the range 0-255, inclusive"
_BYTE = "must be between 0 and 255, inclusive"
_ORDER = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
]
"""In which order the API server looks for sources."""
_MISSPELLED = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""How it calls some of them when they are one too many."""


def volumes(spec: Object, path: str, pod: str | None) -> tuple[dict[str, Object], list[FieldError]]:
    """The sound volumes by name, and what is wrong with the others; ``pod`` is the name of a pod that has one."""
    known: dict[str, Object] = {}
    errors: list[FieldError] = []
    claims = {f"{pod}-{each.get('name')}" for each in children(spec, "volumes") if pod and each.get("ephemeral")}
    for i, volume in enumerate(children(spec, "volumes")):
        here = f"{path}.volumes[{i}]"
        found = list(_source(volume, here, pod))
        name = str(volume.get("name") or "")
        found += at(f"{here}.name", name, dns_label(name)) if name else [required(f"{here}.name")]
        if name in known:
            found.append(duplicate(f"{here}.name", name))
        if not found:
            known[name] = volume
        errors += found
        claim = str(section(volume, "persistentVolumeClaim").get("claimName"))
        if claim in claims:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, detail))
    return known, errors


def _source(volume: Object, here: str, pod: str | None) -> Errors:
    given = [field for field in _ORDER if volume.get(field) is not None]
    if not given:
        yield required(here, "must specify a volume type")
        return
    first, *others = given
    source = section(volume, first)
    if first == "ephemeral":
        yield from _ephemeral(volume, source, here, pod)
    elif first == "image":
        yield from _image(source, f"{here}.image", pod is not None)
    else:
        # The API server has another name for one of them.
        path = f"{here}.persistentDisk" if first == "gcePersistentDisk" else f"{here}.{first}"
        yield from CHECKS.get(first, _sound)(source, path)
    for extra in others:
        yield forbidden_field(f"{here}.{_MISSPELLED.get(extra, extra)}", "may not specify more than 1 volume type")


def _sound(source: Object, path: str) -> Errors:
    yield from ()


def _needs(*names: str) -> Callable[[Object, str], Errors]:
    """A source that only lacks what it has not got."""

    def check(source: Object, path: str) -> Errors:
        for name in names:
            if not source.get(name):
                yield required(f"{path}.{name}")

    return check


def _empty_dir(source: Object, path: str) -> Errors:
    try:
        negative = source.get("sizeLimit") is not None and parse(source["sizeLimit"]) < 0
    except ValueError:
        negative = True
    if negative:
        yield forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: Object, path: str) -> Errors:
    target = str(source.get("path") or "")
    if not target:
        yield required(f"{path}.path")
        return
    yield from no_backsteps(target, f"{path}.path")
    if source.get("type", "") not in _HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", source.get("type"), _HOST_PATH_TYPES)


def _git(source: Object, path: str) -> Errors:
    yield from _needs("repository")(source, path)
    yield from relative_path(str(source.get("directory") or ""), f"{path}.directory")


def _disk(name: str) -> Callable[[Object, str], Errors]:
    def check(source: Object, path: str) -> Errors:
        yield from _needs(name)(source, path)
        partition = source.get("partition") or 0
        if isinstance(partition, int) and not 0 <= partition <= 255:
            yield invalid(f"{path}.partition", partition, _PARTITION)

    return check


def _named_files(name: str) -> Callable[[Object, str], Errors]:
    def check(source: Object, path: str) -> Errors:
        yield from _needs(name)(source, path)
        yield from mode(source.get("defaultMode"), f"{path}.defaultMode")
        yield from files(source, path)

    return check


def _nfs(source: Object, path: str) -> Errors:
    yield from _needs("server", "path")(source, path)
    if not str(source.get("path") or "").startswith("/"):
        yield invalid(f"{path}.path", source.get("path") or "", "must be an absolute path")


def iscsi(source: Object, path: str, persistent: bool = False) -> Errors:
    """A disk that is reached by iSCSI."""
    yield from _needs("targetPortal")(source, path)
    name = str(source.get("iqn") or "")
    if not name:
        yield required(f"{path}.iqn")
    else:
        yield from _initiator(name, f"{path}.iqn", persistent)
    lun = source.get("lun") or 0
    if isinstance(lun, int) and not 0 <= lun <= 255:
        yield invalid(f"{path}.lun", lun, _BYTE)
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield required(f"{path}.secretRef")
    if source.get("initiatorName") is not None:
        yield from _initiator(str(source["initiatorName"]), f"{path}.initiatorname", persistent)


def _initiator(name: str, field: str, persistent: bool) -> Errors:
    known = {"iqn": _IQN, "eui": _EUI, "naa": _NAA}.get(name[:3])
    if known is None:
        detail = "must be valid format" if persistent else "must be valid format starting with iqn, eui, or naa"
        yield invalid(field, name, detail)
    elif not known.search(name):
        yield invalid(field, name, "must be valid format")


def fibre_channel(source: Object, path: str) -> Errors:
    """A disk that is reached by Fibre Channel."""
    ports, identifiers = items(source, "targetWWNs"), items(source, "wwids")
    if not ports and not identifiers:
        yield required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if ports and identifiers:
        yield invalid(f"{path}.targetWWNs", ports, "targetWWNs and wwids can not be specified simultaneously")
    lun = source.get("lun")
    if ports and lun is None:
        yield required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif ports and isinstance(lun, int) and not 0 <= lun <= 255:
        yield invalid(f"{path}.lun", lun, _BYTE)


def _cinder(source: Object, path: str) -> Errors:
    yield from _needs("volumeID")(source, path)
    yield from _secret_reference(source, path)


def _secret_reference(source: Object, path: str) -> Errors:
    if source.get("secretRef") is not None and not section(source, "secretRef").get("name"):
        yield required(f"{path}.secretRef.name")


def _flex(source: Object, path: str) -> Errors:
    yield from _needs("driver")(source, path)
    for key in section(source, "options"):
        owner = "." + str(key).partition("/")[0].lower()
        if owner.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(f"{path}.options[{key}]", key, detail)


def azure_disk(source: Object, path: str) -> Errors:
    """A disk of Azure."""
    yield from _needs("diskName", "diskURI")(source, path)
    caching, kind, address = source.get("cachingMode"), source.get("kind"), str(source.get("diskURI") or "")
    if caching not in (None, "None", "ReadOnly", "ReadWrite"):
        yield not_supported(f"{path}.cachingMode", caching, ["None", "ReadOnly", "ReadWrite"])
    if kind not in (None, "Dedicated", "Managed", "Shared"):
        yield not_supported(f"{path}.kind", kind, ["Dedicated", "Managed", "Shared"])
    managed = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
    blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
    if kind == "Managed" and not address.startswith("/subscriptions/"):
        yield not_supported(f"{path}.diskURI", address, [managed])
    if kind not in (None, "Managed") and not address.startswith("https://"):
        yield not_supported(f"{path}.diskURI", address, [blob])


def _flocker(source: Object, path: str) -> Errors:
    name, uuid = str(source.get("datasetName") or ""), source.get("datasetUUID")
    if not name and not uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid(f"{path}.datasetName", name, "must not contain '/'")


def _storageos(source: Object, path: str) -> Errors:
    name = str(source.get("volumeName") or "")
    if not name:
        yield required(f"{path}.volumeName")
    else:
        yield from at(f"{path}.volumeName", name, dns_label(name))
    yield from _secret_reference(source, path)


def csi_driver(name: str, field: str) -> Errors:
    """The name of a CSI driver."""
    if not name:
        yield required(field)
        return
    if len(name) > 63:
        yield too_long(field, 63)
    yield from at(field, name, dns_subdomain(name.lower()))


def _csi(source: Object, path: str) -> Errors:
    yield from csi_driver(str(source.get("driver") or ""), f"{path}.driver")
    if source.get("nodePublishSecretRef") is not None:
        name = str(section(source, "nodePublishSecretRef").get("name") or "")
        if not name:
            yield required(f"{path}.nodePublishSecretRef.name")
        else:
            yield from at(f"{path}.name", name, dns_subdomain(name))


def _ephemeral(volume: Object, source: Object, here: str, pod: str | None) -> Errors:
    if source.get("volumeClaimTemplate") is None:
        yield required(f"{here}.ephemeral.volumeClaimTemplate")
    else:
        template = section(source, "volumeClaimTemplate")
        yield from claim_spec(section(template, "spec"), f"{here}.ephemeral.volumeClaimTemplate.spec")
    name = str(volume.get("name") or "")
    if pod and name:
        claim = f"{pod}-{name}"
        for text in dns_subdomain(claim):
            yield invalid(f"{here}.name", name, f'PVC name "{claim}": {text}')


def _image(source: Object, path: str, is_pod: bool) -> Errors:
    if is_pod and not source.get("reference"):
        yield required(f"{path}.reference")
    policy = source.get("pullPolicy")
    if not policy:
        yield required(f"{path}.pullPolicy")
    elif policy not in _PULL_POLICIES:
        yield not_supported(f"{path}.pullPolicy", policy, _PULL_POLICIES)


CHECKS: dict[str, Callable[[Object, str], Errors]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _named_files("secretName"),
    "configMap": _named_files("name"),
    "nfs": _nfs,
    "iscsi": iscsi,
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _cinder,
    "cephfs": _needs("monitors"),
    "downwardAPI": downward_api,
    "fc": fibre_channel,
    "flexVolume": _flex,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": azure_disk,
    "storageos": _storageos,
    "projected": projected,
    "csi": _csi,
}
