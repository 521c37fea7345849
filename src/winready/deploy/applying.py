"""Putting a deployment on a cluster: again and again with the same result, and without touching what others own."""

from __future__ import annotations

from winready.cluster.applying import Applier, Difference, title
from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError, Invalid
from winready.cluster.resources import NAMESPACES
from winready.deploy.manifests import KINDS, MANAGER, Deployment, objects

FOREIGN = "it was there before and is not winready's; it stays as it is"


async def put(client: Client, wanted: Deployment, *, force: bool = False) -> list[Difference]:
    """Make the cluster have these objects. All are tried out first: what is refused is refused before anything."""
    kept, ours = await _ours(client, wanted)
    applier = Applier(client, KINDS, MANAGER)
    try:
        await applier.differences(ours, force=force)
        return kept + await applier.apply(ours, force=force)
    except Invalid as error:
        raise _explained(error, wanted) from None


async def differences(client: Client, wanted: Deployment, *, force: bool = False) -> list[Difference]:
    """What `put` would change."""
    kept, ours = await _ours(client, wanted)
    try:
        return kept + await Applier(client, KINDS, MANAGER).differences(ours, force=force)
    except Invalid as error:
        raise _explained(error, wanted) from None


async def _ours(client: Client, wanted: Deployment) -> tuple[list[Difference], list[Object]]:
    """The namespace of somebody else is neither labelled nor, later, deleted by us."""
    everything = objects(wanted)
    space = await client.find(NAMESPACES, wanted.namespace)
    labels = (space["metadata"].get("labels") or {}) if space else wanted.labels
    if all(labels.get(key) == value for key, value in wanted.labels.items()):
        return [], everything
    kept = [Difference("kept", title(item), (FOREIGN,)) for item in everything if item["kind"] == "Namespace"]
    return kept, [item for item in everything if item["kind"] != "Namespace"]


def _explained(error: Invalid, wanted: Deployment) -> ClusterError:
    """Kubernetes changes neither the pods of a Job nor the volume of a claim."""
    name = error.message.partition(":")[0]
    if "immutable" not in error.message:
        return error
    kind = name.partition(" ")[0].lower()
    return ClusterError(
        f"{name} is there with other settings, and Kubernetes does not change them",
        f"delete it first: kubectl -n {wanted.namespace} delete {kind} {name.rpartition('/')[2]}"
        if kind in ("job", "persistentvolumeclaim")
        else "delete it first",
    )
