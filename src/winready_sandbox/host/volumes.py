"""Volumes of pods on the host node: real folders below the node's own one."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winready_sandbox.apiclient import ApiClient, ApiFailure, ApiUnreachable, NotFound
from winready_sandbox.clock import Clock, utc_now
from winready_sandbox.host import rooted
from winready_sandbox.host.confinement import Mount
from winready_sandbox.nodes.environment import expand
from winready_sandbox.nodes.volumes.content import Find, Payload, VolumeError, downward_entries
from winready_sandbox.nodes.volumes.sources import KEPT, payload
from winready_sandbox.nodes.volumes.tokens import TokenSource

Object = dict[str, Any]


@dataclass(frozen=True)
class Around:
    """What volumes of a pod are made from."""

    client: ApiClient
    clock: Clock
    find: Find
    """Config maps and secrets of the pod's namespace."""
    field: Callable[[str], str]
    resource: Callable[[str, Object], str]
    paths: Path
    """The only folder that hostPath volumes may be in."""
    claims: Path
    """The folders behind persistent volumes."""
    every_user: bool


class HostVolumes:
    """The volumes of one pod."""

    def __init__(self, pod: Object, folder: Path, around: Around) -> None:
        self._pod = pod
        self._folder = folder
        self._around = around
        self._tokens = TokenSource(around.client, around.clock, pod)
        self._made: dict[str, Path] = {}
        self._payloads: dict[str, Payload] = {}

    async def set_up(self) -> None:
        """Make every volume that is not there yet; raises `VolumeError` in the kubelet's words."""
        for volume in self._pod["spec"].get("volumes") or []:
            name = volume["name"]
            if name in self._made:
                continue
            try:
                self._made[name] = await self._make(volume)
            except VolumeError as error:
                raise VolumeError(f'MountVolume.SetUp failed for volume "{name}" : {error}') from None
            except OSError as error:
                raise VolumeError(f'MountVolume.SetUp failed for volume "{name}" : {error.strerror}') from None

    async def refresh(self, pod: Object) -> None:
        """Bring files that come from API objects up to date; trouble leaves the old ones in place."""
        self._pod = pod
        for volume in pod["spec"].get("volumes") or []:
            folder = self._made.get(volume["name"])
            if folder is None or not any(kind in volume for kind in KEPT):
                continue
            try:
                await self._fill(volume, folder)
            except (VolumeError, OSError):
                continue

    async def _make(self, volume: Object) -> Path:
        folder = self._folder / str(volume["name"])
        if any(kind in volume for kind in KEPT):
            folder.mkdir(parents=True, exist_ok=True)
            await self._fill(volume, folder)
            return folder
        if "emptyDir" in volume:
            folder.mkdir(parents=True, exist_ok=True)
            return self._opened(folder)
        if host := volume.get("hostPath"):
            return self._host_path(host["path"], host.get("type") or "")
        if claim := volume.get("persistentVolumeClaim"):
            return await self._claimed(claim["claimName"])
        kind = next((key for key in volume if key != "name"), "")
        raise VolumeError(f"no volume plugin matched: {kind} volumes are not available on this node")

    def _opened(self, folder: Path) -> Path:
        """A folder for the pod's users to write to; with an fsGroup, what they make belongs to that group."""
        if self._group is not None:
            os.chown(folder, -1, self._group)
            folder.chmod(0o2777)
        else:
            folder.chmod(0o777)
        return folder

    def _host_path(self, path: str, kind: str) -> Path:
        paths = self._around.paths
        found = Path(path)
        if not found.resolve().is_relative_to(paths.resolve()):
            raise VolumeError(f"hostPath {path} is refused: on this node hostPath volumes are below {paths} only")
        if not found.exists() and kind in ("", "DirectoryOrCreate"):
            found.mkdir(parents=True)
        elif not found.exists() and kind == "FileOrCreate":
            found.touch()
        right = found.is_file() if kind.startswith("File") else found.is_dir() if kind.startswith("Dir") else True
        if not found.exists() or not right:
            raise VolumeError(f"hostPath type check failed: {path} is not a {kind.removesuffix('OrCreate').lower()}")
        return found.resolve()

    async def _claimed(self, name: str) -> Path:
        namespace, client = self._pod["metadata"]["namespace"], self._around.client
        try:
            claim = await client.get("persistentvolumeclaims", name, namespace)
            if claim.get("status", {}).get("phase") != "Bound":
                raise VolumeError(f'PVC "{namespace}/{name}" is not bound')
            volume = await client.get("persistentvolumes", claim["spec"]["volumeName"])
        except NotFound:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found') from None
        except (ApiFailure, ApiUnreachable) as error:
            raise VolumeError(str(error)) from None
        source = volume["spec"].get("hostPath") or volume["spec"].get("local")
        if source:
            return self._host_path(source["path"], source.get("type") or "DirectoryOrCreate")
        if "csi" not in volume["spec"]:
            raise VolumeError(f'persistentvolume "{volume["metadata"]["name"]}" has no source that this node can mount')
        folder = self._around.claims / volume["metadata"]["uid"]
        folder.mkdir(parents=True, exist_ok=True)
        return self._opened(folder)

    async def _fill(self, volume: Object, folder: Path) -> None:
        around = self._around
        wanted = await payload(volume, around.find, self._downward, self._tokens.token)
        if wanted != self._payloads.get(volume["name"]):
            write(folder, wanted, self._group)
            self._payloads[volume["name"]] = wanted

    def _downward(self, items: list[Object], mode: int) -> Payload:
        def resource(reference: Object) -> str:
            return self._around.resource(reference["containerName"], reference)

        return downward_entries(items, mode, self._around.field, resource)

    @property
    def _group(self) -> int | None:
        """The group that the pod's files are for, where files can belong to others at all."""
        group = (self._pod["spec"].get("securityContext") or {}).get("fsGroup")
        return int(group) if group is not None and self._around.every_user else None

    def mounts(self, container: Object, env: dict[str, str]) -> list[Mount]:
        """What a container sees of them; raises `VolumeError` for a subPath that leads nowhere."""
        kinds = {volume["name"]: volume for volume in self._pod["spec"].get("volumes") or []}
        result = []
        for mount in container.get("volumeMounts") or []:
            source = self._made[mount["name"]]
            kept = any(kind in kinds[mount["name"]] for kind in KEPT)
            if sub_path := mount.get("subPath") or expand(mount.get("subPathExpr") or "", env):
                source = _below(source, sub_path, make=not kept)
            result.append(Mount(source, mount["mountPath"], bool(mount.get("readOnly")) or kept))
        return result

    def size(self, name: str) -> int:
        """Bytes in a volume; nobody measures them here."""
        return 0

    def tear_down(self) -> None:
        """The pod is gone: so are its folders."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _below(folder: Path, sub_path: str, *, make: bool) -> Path:
    try:
        found = rooted.outside(folder, rooted.resolve(folder, sub_path))
    except rooted.OutOfRoot as error:
        raise VolumeError(f"subPath {error}") from None
    if make and not found.exists():
        found.mkdir(parents=True)
        found.chmod(0o777)
    if not found.exists():
        raise VolumeError(f"failed to prepare subPath {sub_path}: no such file or directory")
    return found


def write(folder: Path, wanted: Payload, group: int | None = None) -> None:
    """Give a folder this content in one step: a new version beside the old one, and a link that turns to it."""
    version = utc_now().strftime("..%Y_%m_%d_%H_%M_%S.") + str(secrets.randbelow(10**9)).zfill(9)
    for path, entry in wanted.items():
        file = folder / version / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(entry.data)
        file.chmod(entry.mode if group is None else entry.mode | 0o440)
        if group is not None:
            os.chown(file, -1, group)
    (folder / version).mkdir(exist_ok=True)
    data, turning = folder / "..data", folder / "..data_tmp"
    old = data.resolve() if data.is_symlink() else None
    turning.unlink(missing_ok=True)
    turning.symlink_to(version)
    turning.replace(data)
    shown = {path.partition("/")[0] for path in wanted}
    for name in shown:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    for link in list(folder.iterdir()):
        if not link.name.startswith("..") and link.name not in shown:
            link.unlink()
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
