"""An OCI image layout whose bytes depend on nothing but what is in it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
Descriptor = dict[str, Any]


@dataclass
class Tree:
    """Files of an image by path, without a slash in front."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """Content and mode."""
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    """Those that matter by themselves; the others follow from what is in them."""

    def all_folders(self) -> dict[str, int]:
        """Every folder with its mode."""
        found: dict[str, int] = {}
        for path in (*self.files, *self.links, *self.folders):
            parts = path.split("/")[:-1]
            for length in range(1, len(parts) + 1):
                found["/".join(parts[:length])] = 0o755
        return found | self.folders


def layer(tree: Tree, epoch: int) -> tuple[bytes, str]:
    """A compressed layer, and the digest of what is in it; everything belongs to root and is as old as the release."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:

        def add(path: str, kind: bytes, mode: int, content: bytes = b"", link: str = "") -> None:
            member = tarfile.TarInfo(path)
            member.type, member.mode, member.mtime, member.linkname = kind, mode, epoch, link
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))

        folders = tree.all_folders()
        for path in sorted({*folders, *tree.files, *tree.links}):
            if path in folders:
                add(path, tarfile.DIRTYPE, folders[path])
            elif path in tree.links:
                add(path, tarfile.SYMTYPE, 0o777, link=tree.links[path])
            else:
                content, mode = tree.files[path]
                add(path, tarfile.REGTYPE, mode, content)
    data = raw.getvalue()
    return gzip.compress(data, compresslevel=6, mtime=0), f"sha256:{hashlib.sha256(data).hexdigest()}"


class Layout:
    """A layout on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)
        (folder / "oci-layout").write_bytes(encoded({"imageLayoutVersion": "1.0.0"}))

    def blob(self, data: bytes, kind: str) -> Descriptor:
        """Keep a blob."""
        value = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / "sha256" / value).write_bytes(data)
        return {"mediaType": kind, "digest": f"sha256:{value}", "size": len(data)}

    def image(
        self, layers: Sequence[tuple[bytes, str]], architecture: str, config: Mapping[str, Any], created: str
    ) -> Descriptor:
        """Keep an image for one architecture."""
        document = {
            "created": created,
            "architecture": architecture,
            "os": "linux",
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [diff for _, diff in layers]},
            "history": [{"created": created, "created_by": "tools/image.py"} for _ in layers],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.blob(encoded(document), CONFIG),
            "layers": [self.blob(data, LAYER) for data, _ in layers],
            "annotations": {"org.opencontainers.image.created": created, **config.get("Labels", {})},
        }
        return {**self.blob(encoded(manifest), MANIFEST), "platform": {"os": "linux", "architecture": architecture}}

    def finish(self, images: Iterable[Descriptor], name: str) -> str:
        """Tie the images of all architectures together under a name; returns their common digest."""
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": list(images)}
        top = self.blob(encoded(index), INDEX)
        named = {"org.opencontainers.image.ref.name": name.rpartition(":")[2], "io.containerd.image.name": name}
        entry = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [{**top, "annotations": named}]}
        (self.folder / "index.json").write_bytes(encoded(entry))
        return str(top["digest"])


def encoded(document: object) -> bytes:
    """JSON, the same for the same document."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def pack(folder: Path, target: Path, epoch: int) -> None:
    """A layout as one file, for those who hand images on as archives."""
    tree = Tree()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            tree.files[str(path.relative_to(folder))] = (path.read_bytes(), 0o644)
    with target.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, (content, mode) in tree.files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), mode, epoch
            archive.addfile(member, io.BytesIO(content))
