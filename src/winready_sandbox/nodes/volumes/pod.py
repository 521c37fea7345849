"""All volumes of one pod: set up before its containers, kept up to date while it runs, mounted into each container."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from winready_sandbox.apiclient import ApiClient, ApiFailure, NotFound
from winready_sandbox.clock import Clock
from winready_sandbox.machine import paths
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.files import FileSystem
from winready_sandbox.machine.paths import Parts
from winready_sandbox.machine.tree import Directory, File, Node
from winready_sandbox.nodes.defects import VolumeDefects
from winready_sandbox.nodes.environment import expand
from winready_sandbox.nodes.volumes import content
from winready_sandbox.nodes.volumes.content import Entry, Payload, VolumeError
from winready_sandbox.nodes.volumes.host import host_node
from winready_sandbox.nodes.volumes.shared import DRIVER, SharedFolders
from winready_sandbox.nodes.volumes.tokens import TokenSource

Object = dict[str, Any]
_KEPT_BY_KUBELET = ("secret", "configMap", "downwardAPI", "projected")


@dataclass(frozen=True)
class Surroundings:
    """What volumes of a pod are made from."""

    client: ApiClient
    clock: Clock
    host: FileSystem
    defects: VolumeDefects
    find: content.Find
    """Config maps and secrets of the pod's namespace."""
    field: Callable[[str], str]
    resource: Callable[[str, Object], str]
    """The value of a resourceFieldRef for the container of that name."""
    folders: SharedFolders


class PodVolumes:
    """The volumes of one pod."""

    def __init__(self, pod: Object, surroundings: Surroundings) -> None:
        self._pod = pod
        self._around = surroundings
        self._windows = surroundings.host.os == "windows"
        self._tokens = TokenSource(surroundings.client, surroundings.clock, pod)
        self._nodes: dict[str, Node] = {}
        self._payloads: dict[str, Payload] = {}

    async def set_up(self) -> None:
        """Make every volume that is not there yet; raises `VolumeError` in the kubelet's words."""
        for volume in self._pod["spec"].get("volumes") or []:
            name = volume["name"]
            if name in self._nodes:
                continue
            try:
                self._nodes[name] = await self._make(volume)
            except VolumeError as error:
                raise VolumeError(f'MountVolume.SetUp failed for volume "{name}" : {error}') from None

    async def refresh(self, pod: Object) -> None:
        """Bring files that come from API objects up to date; trouble leaves the old ones in place."""
        self._pod = pod
        for volume in pod["spec"].get("volumes") or []:
            node = self._nodes.get(volume["name"])
            if not isinstance(node, Directory) or not any(kind in volume for kind in _KEPT_BY_KUBELET):
                continue
            try:
                await self._fill(volume, node, first=False)
            except VolumeError:
                continue

    async def _make(self, volume: Object) -> Node:
        if any(kind in volume for kind in _KEPT_BY_KUBELET):
            directory = Directory(0o777, fold=self._windows)
            await self._fill(volume, directory, first=True)
            return directory
        if "emptyDir" in volume:
            return Directory(0o777, fold=self._windows)
        if host := volume.get("hostPath"):
            return self._host_path(host["path"], host.get("type") or "")
        if claim := volume.get("persistentVolumeClaim"):
            return await self._claimed(claim["claimName"])
        kind = next((key for key in volume if key != "name"), "")
        raise VolumeError(f"no volume plugin matched: {kind} volumes are not available on this node")

    def _host_path(self, path: str, kind: str) -> Node:
        if self._around.defects.host_path_not_persistent:
            return Directory(0o777, fold=self._windows)
        return host_node(self._around.host, path, kind)

    async def _claimed(self, name: str) -> Node:
        namespace = self._pod["metadata"]["namespace"]
        try:
            claim = await self._around.client.get("persistentvolumeclaims", name, namespace)
            if claim.get("status", {}).get("phase") != "Bound":
                raise VolumeError(f'PVC "{namespace}/{name}" is not bound')
            volume = await self._around.client.get("persistentvolumes", claim["spec"]["volumeName"])
        except NotFound:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found') from None
        except ApiFailure as error:
            raise VolumeError(str(error)) from None
        shared = volume["spec"].get("csi") or {}
        if shared.get("driver") == DRIVER:
            return self._around.folders.open(shared["volumeHandle"])
        source = volume["spec"].get("hostPath") or volume["spec"].get("local")
        if not source:
            raise VolumeError(f'persistentvolume "{volume["metadata"]["name"]}" has no source that this node can mount')
        return self._host_path(source["path"], source.get("type") or "DirectoryOrCreate")

    async def _fill(self, volume: Object, directory: Directory, *, first: bool) -> None:
        name, defects = volume["name"], self._around.defects
        payload = await self._payload(volume, renew=not defects.token_not_rotated)
        if defects.empty:
            payload = {path: Entry(b"", entry.mode) for path, entry in payload.items()}
        if first or (payload != self._payloads.get(name) and not defects.updates_never_arrive):
            content.write(directory, payload, windows=self._windows)
            self._payloads[name] = payload

    async def _payload(self, volume: Object, *, renew: bool) -> Payload:
        around = self._around
        if source := volume.get("secret"):
            mode = source.get("defaultMode", 0o644)
            return content.object_entries("secrets", source, source["secretName"], mode, around.find)
        if source := volume.get("configMap"):
            mode = source.get("defaultMode", 0o644)
            return content.object_entries("configmaps", source, source["name"], mode, around.find)
        if source := volume.get("downwardAPI"):
            return self._downward(source.get("items") or [], source.get("defaultMode", 0o644))
        projected = volume["projected"]
        mode = projected.get("defaultMode", 0o644)
        payload: Payload = {}
        for source in projected.get("sources") or []:
            if part := source.get("secret"):
                payload |= content.object_entries("secrets", part, part["name"], mode, around.find)
            if part := source.get("configMap"):
                payload |= content.object_entries("configmaps", part, part["name"], mode, around.find)
            if part := source.get("downwardAPI"):
                payload |= self._downward(part.get("items") or [], mode)
            if part := source.get("serviceAccountToken"):
                lifetime = int(part.get("expirationSeconds") or 3600)
                token = await self._tokens.token(part.get("audience", ""), lifetime, renew=renew)
                payload[part["path"]] = Entry(token.encode(), mode)
            if "clusterTrustBundle" in source:
                raise VolumeError("clusterTrustBundle projection is not supported in this cluster")
        return payload

    def _downward(self, items: list[Object], mode: int) -> Payload:
        def resource(reference: Object) -> str:
            return self._around.resource(reference["containerName"], reference)

        return content.downward_entries(items, mode, self._around.field, resource)

    def mount(self, container: Container, spec: Object, env: dict[str, str]) -> None:
        """Let the volumes appear in a container."""
        kinds = {volume["name"]: volume for volume in self._pod["spec"].get("volumes") or []}
        defects = self._around.defects
        for mount in spec.get("volumeMounts") or []:
            node = self._nodes[mount["name"]]
            sub_path = mount.get("subPath") or expand(mount.get("subPathExpr") or "", env)
            if sub_path:
                node = _inside(node, sub_path, windows=self._windows)
            elif defects.not_shared and isinstance(node, Directory):
                copy = Directory(node.mode, fold=node.fold)
                copy.replace(node)
                node = copy
            kept = any(kind in kinds[mount["name"]] for kind in _KEPT_BY_KUBELET)
            read_only = bool(mount.get("readOnly")) or kept
            if defects.read_only or (read_only and defects.writable_read_only):
                read_only = defects.read_only
            container.mount_volume(mount["mountPath"], node, read_only=read_only)
        container.files.spoil = lambda parts, data: self._torn(container.files, parts, data)

    def _torn(self, files: FileSystem, parts: Parts, data: bytes) -> bytes:
        """What arrives of a write: all of it, unless the volumes of this node tear writes."""
        if not self._around.defects.torn_writes:
            return data
        here = paths.fold(files.os, parts)
        below = any(here[: len(each.parts)] == paths.fold(files.os, each.parts) for each in files.mounts)
        return data[: len(data) // 2] if below else data

    def size(self, name: str) -> int:
        """Bytes in a volume, for the statistics."""
        return _size(self._nodes[name]) if name in self._nodes else 0


def _size(node: Node) -> int:
    if isinstance(node, File):
        return len(node.data)
    return sum(_size(child) for _, child in node.items()) if isinstance(node, Directory) else 0


def _inside(node: Node, sub_path: str, *, windows: bool) -> Node:
    """What a subPath leads to, resolved once as a bind mount is; missing directories are made."""
    root = node if isinstance(node, Directory) else Directory()
    if windows:
        drives = Directory(fold=True)
        drives.put("C:", root)
        root = drives
    view = FileSystem("windows" if windows else "linux", root)
    path = view.top + sub_path
    if not view.exists(path):
        view.mkdir(path, parents=True)
    return view.node(path)
