"""Putting a deployment on a cluster: again and again with the same result, and without touching what others own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from winready.cluster.applying import Applier, Difference, title
from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError, Invalid, NotFound
from winready.cluster.resources import NAMESPACES, Resource
from winready.deploy.manifests import MANAGER

FOREIGN = "it was there before and is not winready's; it stays as it is"


@dataclass(frozen=True)
class Wanted:
    """Objects of a deployment, in the order in which they can be created."""

    objects: list[Object]
    namespace: str
    labels: Mapping[str, str]
    """What a namespace of ours carries."""
    kinds: Mapping[str, Resource]


async def put(client: Client, wanted: Wanted, *, force: bool = False) -> list[Difference]:
    """Make the cluster have these objects. All are tried out first: what is refused is refused before anything."""
    kept, ours = await _ours(client, wanted)
    applier = Applier(client, wanted.kinds, MANAGER)
    try:
        await applier.differences(ours, force=force)
        return kept + await applier.apply(ours, force=force)
    except (Invalid, NotFound) as error:
        raise _explained(error, wanted) from None


async def differences(client: Client, wanted: Wanted, *, force: bool = False) -> list[Difference]:
    """What `put` would change."""
    kept, ours = await _ours(client, wanted)
    try:
        return kept + await Applier(client, wanted.kinds, MANAGER).differences(ours, force=force)
    except (Invalid, NotFound) as error:
        raise _explained(error, wanted) from None


async def _ours(client: Client, wanted: Wanted) -> tuple[list[Difference], list[Object]]:
    """The namespace of somebody else is neither labelled nor, later, deleted by us."""
    everything = wanted.objects
    space = await client.find(NAMESPACES, wanted.namespace)
    labels = (space["metadata"].get("labels") or {}) if space else wanted.labels
    if all(labels.get(key) == value for key, value in wanted.labels.items()):
        return [], everything
    kept = [Difference("kept", title(item), (FOREIGN,)) for item in everything if item["kind"] == "Namespace"]
    return kept, [item for item in everything if item["kind"] != "Namespace"]


def _explained(error: Invalid | NotFound, wanted: Wanted) -> ClusterError:
    """Kubernetes changes neither the pods of a Job nor the volume of a claim, and knows only kinds that are there."""
    name = error.message.partition(":")[0]
    if isinstance(error, NotFound) and name.startswith("ExtensionConfig "):
        return ClusterError(
            f"this cluster has no kind ExtensionConfig ({wanted.kinds['ExtensionConfig'].api_version}); nothing was "
            "changed",
            "name the management cluster, by --context or --kubeconfig; it needs Cluster API 1.11 or newer with the "
            "feature gate RuntimeSDK",
        )
    if "immutable" not in error.message:
        return error
    kind = name.partition(" ")[0].lower()
    return ClusterError(
        f"{name} is there with other settings, and Kubernetes does not change them",
        f"delete it first: kubectl -n {wanted.namespace} delete {kind} {name.rpartition('/')[2]}"
        if kind in ("job", "persistentvolumeclaim")
        else "delete it first",
    )
