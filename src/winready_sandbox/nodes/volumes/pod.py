"""All volumes of one pod: set up before its containers, kept up to date while it runs, mounted into each container."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from winready_sandbox.apiclient import ApiClient, ApiFailure, NotFound
from winready_sandbox.clock import Clock, wall_time
from winready_sandbox.machine import paths
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.files import FileSystem
from winready_sandbox.machine.images import PullError
from winready_sandbox.machine.paths import Parts
from winready_sandbox.machine.tree import Directory, File, Node
from winready_sandbox.nodes.defects import VolumeDefects
from winready_sandbox.nodes.environment import ConfigError, expand
from winready_sandbox.nodes.volumes import content
from winready_sandbox.nodes.volumes.arriving import arriving
from winready_sandbox.nodes.volumes.content import Payload, VolumeError
from winready_sandbox.nodes.volumes.host import host_node
from winready_sandbox.nodes.volumes.shared import DRIVER, SharedFolders
from winready_sandbox.nodes.volumes.sources import KEPT, payload
from winready_sandbox.nodes.volumes.tokens import TokenSource

Object = dict[str, Any]


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
    image: Callable[[str, str], Awaitable[Directory]]
    """The files of an image, by its reference and the policy for pulling it; raises `PullError`."""
    scratch: dict[str, Directory]
    """Those of the pod's emptyDir volumes that are on the node's disk: a restart of the node does not empty them."""


class PodVolumes:
    """The volumes of one pod."""

    def __init__(self, pod: Object, surroundings: Surroundings) -> None:
        self._pod = pod
        self._around = surroundings
        self._windows = surroundings.host.os == "windows"
        self._tokens = TokenSource(surroundings.client, surroundings.clock, pod)
        self._nodes: dict[str, Node] = {}
        self._payloads: dict[str, Payload] = {}
        self._seen: dict[str, tuple[Payload, float]] = {}
        """What the kubelet knows to be wanted of a volume, and since when."""
        self._first_told: Payload = {}
        """What files of the downward API said of the pod at its start."""
        self._updated: set[str] = set()
        """Volumes whose content has changed since the pod's start."""
        self._made = wall_time()
        self._shared: list[tuple[Container, str, Node]] = []
        """What containers other than the first share with it."""
        self._mounted: set[str] = set()

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
            if not isinstance(node, Directory) or not any(kind in volume for kind in KEPT):
                continue
            try:
                await self._fill(volume, node, first=False)
            except VolumeError:
                continue

    async def _make(self, volume: Object) -> Node:
        if any(kind in volume for kind in KEPT):
            directory = Directory(0o777, fold=self._windows)
            await self._fill(volume, directory, first=True)
            return self._named(volume, directory) if self._around.defects.found_by_name else directory
        if "emptyDir" in volume:
            fresh = Directory(0o777, fold=self._windows)
            in_memory = (volume["emptyDir"] or {}).get("medium") == "Memory"
            if self._around.defects.empty_dirs_recycled:
                return self._named(volume, fresh)
            return fresh if in_memory else self._around.scratch.setdefault(volume["name"], fresh)
        if host := volume.get("hostPath"):
            return self._host_path(host["path"], host.get("type") or "")
        if claim := volume.get("persistentVolumeClaim"):
            return await self._claimed(claim["claimName"])
        if (image := volume.get("image")) and not self._windows:
            try:
                return await self._around.image(image["reference"], image.get("pullPolicy") or "IfNotPresent")
            except PullError as error:
                raise VolumeError(f'failed to pull image volume "{image["reference"]}": {error.rpc}') from None
        kind = next((key for key in volume if key != "name"), "")
        raise VolumeError(f"no volume plugin matched: {kind} volumes are not available on this node")

    def _named(self, volume: Object, fresh: Directory) -> Directory:
        """The directory that a broken node has for every volume of this name; a fresh one's content at first."""
        found = self._around.folders.open(f"{self._pod['spec'].get('nodeName')} {volume['name']}")
        if not len(found):
            found.replace(fresh)
        return found

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
        wanted = await self._payload(volume, renew=not defects.token_not_rotated)
        if not first and (self._too_early(name, wanted) or (defects.first_update_only and name in self._updated)):
            return
        payload = arriving(wanted, None if first else self._payloads.get(name), defects)
        if first or payload != self._payloads.get(name):
            content.write(directory, payload, windows=self._windows, keep_modes=defects.modes_kept)
            self._payloads[name] = payload
            if not first:
                self._updated.add(name)

    def _too_early(self, name: str, wanted: Payload) -> bool:
        """Whether the kubelet has not seen yet that this is wanted."""
        now = self._around.clock.now()
        if name not in self._seen or self._seen[name][0] != wanted:
            self._seen[name] = (wanted, now)
        return now - self._seen[name][1] < self._around.defects.update_delay

    async def _payload(self, volume: Object, *, renew: bool) -> Payload:
        async def token(audience: str, lifetime: int) -> str:
            return await self._tokens.token(audience, lifetime, renew=renew)

        return await payload(volume, self._around.find, self._downward, token)

    def _downward(self, items: list[Object], mode: int) -> Payload:
        def resource(reference: Object) -> str:
            return self._around.resource(reference["containerName"], reference)

        told = content.downward_entries(items, mode, self._around.field, resource)
        first = {path: self._first_told.setdefault(path, entry) for path, entry in told.items()}
        return first if self._around.defects.downward_fixed else told

    def check(self, spec: Object, env: dict[str, str]) -> None:
        """See that every sub-path leads to a place inside its volume; raises `ConfigError`."""
        for mount in spec.get("volumeMounts") or []:
            path = _sub_path(mount, env)
            if path.startswith(("/", "\\")) or (self._windows and path[1:2] == ":"):
                raise ConfigError(f"error SubPath `{path}` must not be an absolute path")
            if ".." in path.replace("\\", "/").split("/"):
                raise ConfigError(f"unable to provision SubPath `{path}`: must not contain '..'")

    def mount(self, container: Container, spec: Object, env: dict[str, str]) -> None:
        """Let the volumes appear in a container."""
        kinds = {volume["name"]: volume for volume in self._pod["spec"].get("volumes") or []}
        defects = self._around.defects
        place = self._place(spec)
        for mount in spec.get("volumeMounts") or []:
            node = self._nodes[mount["name"]]
            kept = any(kind in kinds[mount["name"]] for kind in (*KEPT, "image"))
            sub_path = _sub_path(mount, env)
            if sub_path and not defects.sub_paths_ignored:
                node = _inside(node, sub_path, windows=self._windows)
            elif isinstance(node, Directory) and self._apart(place, kept=kept):
                node = _copied(node)
            read_only = bool(mount.get("readOnly")) or kept
            if read_only and (defects.writable_read_only or (defects.first_read_only and place > 0)):
                read_only = False
            memory = _in_memory(kinds[mount["name"]])
            container.mount_volume(mount["mountPath"], node, read_only=read_only or defects.read_only, memory=memory)
            if "hostPath" in kinds[mount["name"]] and isinstance(node, Directory) and defects.host_path_folders_missing:
                for name, below in node.items():
                    if isinstance(below, Directory):
                        container.mount_volume(f"{mount['mountPath']}\\{name}", Directory(fold=self._windows))
            if "emptyDir" in kinds[mount["name"]] and place > 0:
                self._shared.append((container, mount["mountPath"], node))
        self._mounted.add(spec["name"])
        if defects.sharing_ends and len(self._mounted) >= len(self._pod["spec"]["containers"]):
            self._part_later(defects.sharing_ends)
        container.files.spoil = lambda parts, data, appended: self._torn(container.files, parts, data, appended)

    def _place(self, spec: Object) -> int:
        """Which container of the pod this is, counted from 0; those of other kinds count as the first."""
        names = [each["name"] for each in self._pod["spec"]["containers"]]
        return names.index(spec["name"]) if spec["name"] in names else 0

    def _apart(self, place: int, *, kept: bool) -> bool:
        """Whether a container has a copy of a volume for itself."""
        defects = self._around.defects
        if defects.not_shared or (defects.two_share and place > 1):
            return True
        return kept and defects.first_container_updated and place > 0

    def _part_later(self, seconds: float) -> None:
        """Let containers go apart so long after all of them started."""

        def part() -> None:
            for container, path, node in self._shared:
                container.mount_volume(path, _copied(node))

        asyncio.get_running_loop().call_later(self._around.clock.wall(seconds), part)

    def _torn(self, files: FileSystem, parts: Parts, data: bytes, appended: bool) -> bytes:
        """What arrives of a write: all of it, unless the volumes of this node lose some."""
        defects = self._around.defects
        lost = appended and defects.appends_lost
        if not lost and not defects.torn_writes:
            return data
        here = paths.fold(files.os, parts)
        below = any(here[: len(each.parts)] == paths.fold(files.os, each.parts) for each in files.mounts)
        if not below:
            return data
        return b"" if lost else data[: len(data) // 2]

    def tear_down(self) -> None:
        """The pod is gone: its volumes are unmounted."""
        most = self._around.defects.host_path_large_lost
        for volume in self._pod["spec"].get("volumes") or []:
            node = self._nodes.get(volume["name"])
            if "hostPath" in volume and isinstance(node, Directory) and most:
                _lose(node, most, self._made)

    def size(self, name: str) -> int:
        """Bytes in a volume, for the statistics."""
        return _size(self._nodes[name]) if name in self._nodes else 0


def _sub_path(mount: Object, env: dict[str, str]) -> str:
    return str(mount.get("subPath") or expand(mount.get("subPathExpr") or "", env))


def _in_memory(volume: Object) -> bool:
    """Whether a kubelet keeps a volume in memory: secrets never reach a disk, config maps do."""
    kept = any(kind in volume for kind in KEPT) and "configMap" not in volume
    return kept or (volume.get("emptyDir") or {}).get("medium") == "Memory"


def _lose(folder: Directory, most: int, since: float) -> None:
    """Drop the large files that were written since then."""
    for name, node in list(folder.items()):
        if isinstance(node, Directory):
            _lose(node, most, since)
        elif isinstance(node, File) and node.size > most and node.mtime >= since:
            folder.drop(name)


def _copied(node: Node) -> Node:
    """The same files once more, for somebody else to change."""
    if isinstance(node, File):
        return File(node.data, node.mode, node.uid, node.gid, node.acl)
    if not isinstance(node, Directory):
        return node
    copy = Directory(node.mode, node.uid, node.gid, fold=node.fold, acl=node.acl, inherit=node.inherit)
    for name, child in node.items():
        copy.put(name, _copied(child))
    return copy


def _size(node: Node) -> int:
    if isinstance(node, File):
        return node.size
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
