"""Tarballs as ``sonobuoy retrieve`` brings them, sound and hostile."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

PLACE = "plugins/winready/results/global"


def member(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(data), kind, link
    return info, data


def tarball(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """An archive with these members, among what Sonobuoy puts in besides."""
    besides = [member("meta/config.json", b"{}"), member("podlogs/sonobuoy/sonobuoy/logs/kube-sonobuoy.txt", b"log")]
    with tarfile.open(path, "w:gz") as tar:
        for info, data in (*besides, *members):
            tar.addfile(info, io.BytesIO(data))
    return path


def of_run(path: Path, folder: Path, plugin: str = "winready") -> Path:
    """The tarball of a plugin that left this run."""
    place = f"plugins/{plugin}/results/global"
    files = [member(f"{place}/{file.name}", file.read_bytes()) for file in sorted(folder.iterdir())]
    return tarball(path, member(f"plugins/{plugin}/definition.json", b"{}"), *files)
