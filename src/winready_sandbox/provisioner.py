"""Volumes on demand: whoever claims storage of the sandbox's class gets a folder on its file server.

It does what the external provisioner of an SMB driver does, over the API alone, so it serves both control planes: it
makes a volume for a claim that waits for one, and deletes it when the claim is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from winready_sandbox.apiclient import ApiClient, ApiFailure, ApiUnreachable, Conflict, NotFound
from winready_sandbox.nodes.volumes.shared import DRIVER, SharedFolders

Object = dict[str, Any]
CLASS = "smb"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_PAUSE = 1.0


class Provisioner:
    """Keeps claims and volumes of one cluster together."""

    def __init__(self, client: ApiClient, folders: SharedFolders) -> None:
        self._client = client
        self._folders = folders

    async def keep(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_claims(), name="provisioner follows claims")
            tasks.create_task(self._follow_volumes(), name="provisioner follows volumes")

    async def _follow_claims(self) -> None:
        async for change in self._client.watch("persistentvolumeclaims"):
            if change.type in ("ADDED", "MODIFIED") and _wanting(change.object):
                await self._surely(self._provide, change.object)

    async def _follow_volumes(self) -> None:
        async for change in self._client.watch("persistentvolumes"):
            if change.type in ("ADDED", "MODIFIED") and _abandoned(change.object):
                await self._surely(self._remove, change.object)

    async def _surely(self, act: Callable[[Object], Awaitable[None]], obj: Object) -> None:
        while True:
            try:
                await act(obj)
                return
            except (Conflict, NotFound):
                return
            except ApiUnreachable:
                await asyncio.sleep(_PAUSE)
            except ApiFailure as error:
                if error.code < 500:
                    return
                await asyncio.sleep(_PAUSE)

    async def _provide(self, claim: Object) -> None:
        spec, metadata = claim["spec"], claim["metadata"]
        storage = await self._client.get("storageclasses", spec["storageClassName"])
        if storage.get("provisioner") != DRIVER:
            return
        name = f"pvc-{metadata['uid']}"
        source = {"source": "//fileserver/claims", "subDir": name}
        volume: Object = {
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: DRIVER}},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "volumeMode": spec.get("volumeMode") or "Filesystem",
                "persistentVolumeReclaimPolicy": storage.get("reclaimPolicy") or "Delete",
                "storageClassName": storage["metadata"]["name"],
                "csi": {"driver": DRIVER, "volumeHandle": f"fileserver/claims#{name}", "volumeAttributes": source},
                "claimRef": {
                    "kind": "PersistentVolumeClaim",
                    "apiVersion": "v1",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
            },
        }
        await self._client.create("persistentvolumes", volume)

    async def _remove(self, volume: Object) -> None:
        self._folders.drop(volume["spec"]["csi"]["volumeHandle"])
        await self._client.delete("persistentvolumes", volume["metadata"]["name"], uid=volume["metadata"]["uid"])


def _wanting(claim: Object) -> bool:
    """Whether a claim waits for a volume of some class; those of other classes are told apart later."""
    waits = (claim.get("status") or {}).get("phase") in (None, "Pending")
    spec = claim["spec"]
    plain = (spec.get("volumeMode") or "Filesystem") == "Filesystem" and not spec.get("selector")
    return waits and plain and bool(spec.get("storageClassName")) and not spec.get("volumeName")


def _abandoned(volume: Object) -> bool:
    """Whether one of our volumes has lost its claim for good."""
    ours = (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == DRIVER
    released = (volume.get("status") or {}).get("phase") == "Released"
    going = bool(volume["metadata"].get("deletionTimestamp"))
    return ours and released and not going and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"


async def install(client: ApiClient) -> None:
    """Offer the class, as the default one; its driver needs nobody to attach volumes to nodes."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    for resource, obj in (
        ("csidrivers", {"metadata": {"name": DRIVER}, "spec": {"attachRequired": False, "podInfoOnMount": True}}),
        (
            "storageclasses",
            {
                "metadata": {"name": CLASS, "annotations": default},
                "provisioner": DRIVER,
                "parameters": {"source": "//fileserver/claims"},
                "reclaimPolicy": "Delete",
                "volumeBindingMode": "Immediate",
            },
        ),
    ):
        with contextlib.suppress(Conflict):
            await client.create(resource, obj)
