"""Images of the host node: folders with a root file system, or OCI image layouts, under the names that pods use."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from winready_sandbox.host import rooted
from winready_sandbox.state import StateError

Object = dict[str, Any]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_REF = "org.opencontainers.image.ref.name"
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"


def architecture() -> str:
    """This machine's, in the words of images."""
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


@dataclass(frozen=True)
class HostImage:
    """What a container is made from."""

    name: str
    root: Path
    id: str
    """A digest for a layout, else where the folder is."""
    size: int = 0
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    user: str = ""
    folder: str = ""


def split(text: str) -> tuple[str, Path]:
    """``NAME=FOLDER`` of a command line; raises ValueError with what to write."""
    name, equals, folder = text.partition("=")
    if not name or not equals or not folder:
        raise ValueError(f"--host-image {text}: write NAME=FOLDER, as in winready:1.0=build/image")
    return tagged(name), Path(folder)


def tagged(name: str) -> str:
    """A name with its tag; without one it is ``latest``."""
    last = name.rpartition("/")[2]
    return name if ":" in last or "@" in last else f"{name}:latest"


def load(text: str, unpacked: Path) -> HostImage:
    """An image of the command line; a layout is unpacked below ``unpacked``."""
    name, folder = split(text)
    if not folder.is_dir():
        raise StateError(f"--host-image {text}: {folder} is no folder; give a root file system or an OCI image layout")
    if not (folder / "oci-layout").is_file():
        return HostImage(name, folder.resolve(), f"folder://{folder.resolve()}")
    try:
        return _Layout(folder).image(name, unpacked)
    except (OSError, KeyError, TypeError, ValueError, msgspec.DecodeError, tarfile.TarError, rooted.OutOfRoot) as error:
        raise StateError(f"--host-image {text}: not a usable image layout: {error}") from None


class _Layout:
    """An OCI image layout; every blob is held to its digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _blob(self, digest: str) -> Path:
        kind, _, value = digest.partition(":")
        if kind != "sha256" or not value.isalnum():
            raise ValueError(f"{digest} is not a SHA-256 digest")
        path = self._folder / "blobs" / kind / value
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != value:
                raise ValueError(f"{path} does not have its digest")
        return path

    def _document(self, digest: str) -> Object:
        document: Object = msgspec.json.decode(self._blob(digest).read_bytes())
        return document

    def image(self, name: str, unpacked: Path) -> HostImage:
        index = msgspec.json.decode((self._folder / "index.json").read_bytes())
        chosen = self._chosen(index["manifests"], name)
        manifest = self._document(chosen["digest"])
        if chosen.get("mediaType") in _INDEXES or "manifests" in manifest:
            chosen = _for_this_machine(manifest["manifests"])
            manifest = self._document(chosen["digest"])
        config = self._document(manifest["config"]["digest"]).get("config") or {}
        root = unpacked / chosen["digest"].partition(":")[2]
        if not root.exists():
            root.mkdir(parents=True)
            for layer in manifest["layers"]:
                unpack(self._blob(layer["digest"]), root)
        return HostImage(
            name,
            root,
            chosen["digest"],
            sum(layer["size"] for layer in manifest["layers"]),
            tuple(config.get("Entrypoint") or ()),
            tuple(config.get("Cmd") or ()),
            dict(pair.partition("=")[::2] for pair in config.get("Env") or ()),
            config.get("User") or "",
            config.get("WorkingDir") or "",
        )

    def _chosen(self, manifests: list[Object], name: str) -> Object:
        tag = name.rpartition(":")[2]
        named = [one for one in manifests if (one.get("annotations") or {}).get(_REF) in (name, tag)]
        fitting = named or manifests
        if len(fitting) > 1 and all("platform" in one for one in fitting):
            return _for_this_machine(fitting)
        if len(fitting) != 1:
            there = ", ".join(str((one.get("annotations") or {}).get(_REF)) for one in manifests)
            raise ValueError(f"it holds {len(manifests)} images ({there}), none or several of them named {name}")
        return fitting[0]


def _for_this_machine(manifests: Iterable[Object]) -> Object:
    wanted = {"os": "linux", "architecture": architecture()}
    for one in manifests:
        if wanted.items() <= (one.get("platform") or {}).items():
            return one
    raise ValueError(f"it has no image for linux/{wanted['architecture']}")


def unpack(layer: Path, root: Path) -> None:
    """Lay a layer over what is there; nothing leaves the root, and what is marked as removed goes."""
    owned = os.geteuid() == 0
    with tarfile.open(layer, "r:*") as archive:
        folders: list[tuple[Path, int]] = []
        for member in archive:
            parent, _, base = member.name.strip("/").rpartition("/")
            if base in ("", "."):
                continue
            if base == ".." or ".." in parent.split("/"):
                raise ValueError(f"{member.name} leaves the image")
            above = rooted.outside(root, rooted.resolve(root, parent))
            above.mkdir(parents=True, exist_ok=True)
            if base.startswith(_WHITEOUT):
                for gone in list(above.iterdir()) if base == _OPAQUE else [above / base.removeprefix(_WHITEOUT)]:
                    _remove(gone)
                continue
            target = above / base
            kind = _write(archive, member, target, root)
            if kind and owned:
                os.chown(target, member.uid, member.gid, follow_symlinks=False)
            if kind == "file":
                target.chmod(member.mode & 0o777)
            elif kind == "folder":
                folders.append((target, member.mode & 0o1777))
        # Last: a folder that may not be written to has its files by now.
        for folder, mode in folders:
            if folder.is_dir() and not folder.is_symlink():
                folder.chmod(mode)


def _write(
    archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, root: Path
) -> Literal["", "file", "folder", "link"]:
    if member.isdir():
        if target.is_symlink() or not target.is_dir():
            _remove(target)
            target.mkdir()
        return "folder"
    _remove(target)
    if member.issym():
        target.symlink_to(member.linkname)
        return "link"
    if member.islnk():
        os.link(rooted.outside(root, rooted.resolve(root, member.linkname)), target)
        return ""
    content = archive.extractfile(member)
    if content is None:
        # Devices and pipes: a container gets its own.
        return ""
    with content, target.open("xb") as file:
        shutil.copyfileobj(content, file)
    return "file"


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def copy(source: Path, target: Path) -> None:
    """A copy of a root file system that somebody may change, with the owners that the original has."""
    owned = os.geteuid() == 0
    shutil.copytree(source, target, symlinks=True)
    if owned:
        for folder, names, files in os.walk(source):
            there = target / Path(folder).relative_to(source)
            for path, copied in [(Path(folder), there), *((Path(folder, n), there / n) for n in [*names, *files])]:
                found = path.lstat()
                if found.st_uid or found.st_gid:
                    os.chown(copied, found.st_uid, found.st_gid, follow_symlinks=False)
                    if not stat.S_ISLNK(found.st_mode):
                        copied.chmod(stat.S_IMODE(found.st_mode))
