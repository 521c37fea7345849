"""A cluster as the source of facts, and of the objects to lint.

The rules then use what the cluster is (version, nodes, classes, namespaces, policy plugin) instead of what flags say
about it. Live objects carry fields that nobody wrote: those that the API server adds by itself are
taken off again, or every Secret volume would be blamed for a file mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from winready.cluster.client import Client
from winready.cluster.errors import Forbidden, NotFound
from winready.cluster.inventory import CREDENTIAL_SPECS, Inventory, take_inventory
from winready.cluster.kubeconfig import Target
from winready.cluster.resources import NODES, Resource
from winready.lint.context import Has, Profile, StorageClass, Taint, WindowsNode
from winready.lint.files import Input
from winready.lint.objects import dig, items, mapping, template_path
from winready.lint.versions import FIRST, LAST, Range
from winready.spec.versions import Version
from winready.spec.windows import build_number

NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
RUNTIME_CLASSES = Resource("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
VOLUMES = Resource("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
PRIORITY_CLASSES = Resource("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)
CSI_NODES = Resource("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False)
CLUSTER_SCOPED = (NAMESPACES, RUNTIME_CLASSES, STORAGE_CLASSES, VOLUMES)
NAMESPACED = (
    Resource("v1", "Pod", "pods"),
    Resource("v1", "ReplicationController", "replicationcontrollers"),
    Resource("apps/v1", "Deployment", "deployments"),
    Resource("apps/v1", "ReplicaSet", "replicasets"),
    Resource("apps/v1", "StatefulSet", "statefulsets"),
    Resource("apps/v1", "DaemonSet", "daemonsets"),
    Resource("batch/v1", "Job", "jobs"),
    Resource("batch/v1", "CronJob", "cronjobs"),
    Resource("v1", "Service", "services"),
    Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Resource("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Resource("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    Resource("v1", "ResourceQuota", "resourcequotas"),
    Resource("v1", "LimitRange", "limitranges"),
)
_DEFAULT_MODE = 0o644
_PLUGINS = {"calico": "calico", "antrea": "antrea", "azure npm": "azure-npm"}


@dataclass(frozen=True, slots=True)
class Live:
    """What a cluster told."""

    profile: Profile
    inputs: tuple[Input, ...]
    notices: tuple[str, ...]


async def ask(target: Target, profile: Profile, with_objects: bool, namespace: str) -> Live:
    """Take the profile from a cluster, and its objects if they are wanted."""
    notices: list[str] = []
    async with Client.connect(target) as client:
        inventory = await take_inventory(client)
        classes = await _list(client, RUNTIME_CLASSES, "", notices)
        namespaces = await _list(client, NAMESPACES, "", notices) or []
        known = replace(
            profile_of(inventory, profile, notices),
            runtime_classes={_name(one): one for one in classes or []},
            namespaces={_name(one): dict(mapping(one, "metadata", "labels")) for one in namespaces},
            has=await _has(client, inventory, classes is not None, notices),
        )
        inputs: list[Input] = []
        if with_objects:
            for resource in (*NAMESPACED, *CLUSTER_SCOPED):
                found = await _list(client, resource, namespace if resource.namespaced else "", notices) or []
                inputs += [_input(resource, one) for one in found if not items(one, "metadata", "ownerReferences")]
        return Live(known, tuple(inputs), tuple(notices))


def profile_of(inventory: Inventory, profile: Profile, notices: list[str]) -> Profile:
    """The flags' profile with everything that the cluster knows better."""
    minor = Version.parse(inventory.version).minor
    known = min(max(minor, FIRST), LAST)
    if known != minor:
        notices.append(f"the cluster is {inventory.version}; the nearest version with facts is 1.{known}")
    nodes = [node for node in inventory.nodes if node.windows]
    builds = sorted({build for node in nodes if (build := build_number(node.build)) is not None})
    everywhere = set.intersection(*(_taints(node.taints) for node in nodes)) if nodes else set()
    plugin = inventory.features.get("network-policy", "").lower()
    cni = next((name for words, name in _PLUGINS.items() if plugin.startswith(words)), profile.cni)
    return replace(
        profile,
        versions=Range(known, known),
        windows_nodes=bool(nodes),
        builds=tuple(builds),
        taints=tuple(sorted(everywhere, key=str)),
        cni=cni,
    )


def _taints(taints: Iterable[Any]) -> set[Taint]:
    return {Taint(one.key, one.value, one.effect) for one in taints if one.ours_to_tolerate}


async def _has(client: Client, inventory: Inventory, runtime_classes: bool, notices: list[str]) -> Has:
    """What pods may refer to, and where they may go; what may not be read stays unknown."""
    told = {_name(one): mapping(one, "status", "allocatable") for one in await _list(client, NODES, "", notices) or []}
    windows = {node.name for node in inventory.nodes if node.windows}
    nodes = [
        WindowsNode(
            node.name,
            node.labels,
            tuple(sorted(_taints(node.taints), key=str)),
            {name: str(value) for name, value in told.get(node.name, {}).items()},
        )
        for node in inventory.nodes
        if node.name in windows
    ]
    priorities = await _list(client, PRIORITY_CLASSES, "", notices)
    storage = await _list(client, STORAGE_CLASSES, "", notices)
    volumes = await _list(client, VOLUMES, "", notices)
    drivers: dict[bool, set[str]] = {True: set(), False: set()}
    for one in await _list(client, CSI_NODES, "", notices) or []:
        drivers[_name(one) in windows] |= {str(dig(each, "name")) for each in items(one, "spec", "drivers")}
    return Has(
        nodes=tuple(nodes),
        runtime_classes=runtime_classes,
        priority_classes=None if priorities is None else frozenset(map(_name, priorities)),
        storage_classes=None if storage is None else {_name(one): StorageClass.of(one) for one in storage},
        volume_classes=None
        if volumes is None
        else frozenset(str(dig(one, "spec", "storageClassName") or "") for one in volumes),
        credential_specs=await _credential_specs(client),
        drivers_elsewhere=frozenset(drivers[False] - drivers[True]) if windows else frozenset(),
    )


async def _credential_specs(client: Client) -> frozenset[str] | None:
    """Their names; None where nobody may read them, or the cluster does not know the kind."""
    try:
        return frozenset(map(_name, await client.list(CREDENTIAL_SPECS)))
    except (Forbidden, NotFound):
        return None


async def _list(client: Client, resource: Resource, namespace: str, notices: list[str]) -> list[dict[str, Any]] | None:
    """The objects of a kind; None where they may not be read."""
    try:
        return await client.list(resource, namespace or None)
    except (Forbidden, NotFound) as error:
        notices.append(f"{resource.plural} were left out: {error.message}")
        return None


def _name(value: Mapping[str, Any]) -> str:
    return str(dig(value, "metadata", "name"))


def _input(resource: Resource, value: Mapping[str, Any]) -> Input:
    cleaned = without_defaults({**value, "apiVersion": resource.api_version, "kind": resource.kind})
    place = "/".join(
        part for part in (dig(value, "metadata", "namespace"), resource.kind.lower(), _name(value)) if part
    )
    return Input(f"live/{place}", content=json.dumps(cleaned, indent=2).encode())


def without_defaults(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object without its status and without what the API server writes into every pod."""
    result: dict[str, Any] = deepcopy({key: one for key, one in value.items() if key != "status"})
    if isinstance(metadata := result.get("metadata"), dict):
        metadata.pop("managedFields", None)
    template = template_path(result)
    spec = dig(result, *template, "spec") if template is not None else None
    if not isinstance(spec, dict):
        return result
    tokens = {_token(volume) for volume in items(spec, "volumes")} - {""}
    if tokens:
        spec["volumes"] = [one for one in spec["volumes"] if dig(one, "name") not in tokens]
    for volume in items(spec, "volumes"):
        for source in ("secret", "configMap", "projected", "downwardAPI"):
            if dig(volume, source, "defaultMode") == _DEFAULT_MODE:
                del volume[source]["defaultMode"]
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        if tokens and isinstance(container, dict) and "volumeMounts" in container:
            container["volumeMounts"] = [one for one in container["volumeMounts"] if dig(one, "name") not in tokens]
    return result


def _token(volume: Any) -> str:
    """The name of a volume that the ServiceAccount admission plugin added."""
    name = str(dig(volume, "name") or "")
    return name if name.startswith("kube-api-access-") and dig(volume, "projected") is not None else ""
