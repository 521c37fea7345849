#!/usr/bin/env python3
"""What krew needs to install `kubectl winready`: an archive for each platform, and the manifest that names them.

    krew.py VERSION DIR                      of the one-file programs in DIR (tools/onefile.py), for an installation
                                             with --manifest and --archive
    krew.py VERSION DIR --address URL        for one that downloads: URL is where the archives will lie

krew links a plug-in on Windows as a program (.exe), which a file for Python is not; pipx makes one.
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import onefile
import wheels

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "kubectl-winready"
PLUGINS = {"linux-x86_64": ("linux", "amd64"), "linux-aarch64": ("linux", "arm64"), "macos-arm64": ("darwin", "arm64")}
MANIFEST = "winready.yaml"
HEAD = """apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: winready
spec:
  version: v{version}
  shortDescription: Tell with proof whether Windows workloads will run
  description: |
    Verifies a cluster against the Windows operational readiness standard
    (KEP-2578) and says Pass or Fail, with evidence for each requirement:
      kubectl winready run
    Tries the same on a simulated hybrid cluster that needs nothing installed:
      kubectl winready run --sandbox
    Checks manifests against what Windows nodes support:
      kubectl winready lint deploy/
  caveats: |
    Needs Python {pythons} on the PATH, or its path in WINREADY_PYTHON.
    It unpacks itself to ~/.cache/winready/one-file at the first start.
  platforms:
"""
PLATFORM = """  - selector:
      matchLabels:
        os: {system}
        arch: {machine}
    uri: {uri}
    sha256: {digest}
    bin: {program}
"""


class KrewError(Exception):
    """There is no manifest; the message says why."""


def archives(version: str, folder: Path, epoch: int) -> list[Path]:
    """An archive of each one-file program that krew can link; the same programs give the same bytes."""
    made = []
    for platform in onefile.PLATFORMS:
        if platform.name not in PLUGINS:
            continue
        program = folder / onefile.name_of(version, platform)
        if not program.is_file():
            raise KrewError(f"{program} is not there; tools/onefile.py makes it")
        files = [(PROGRAM, program, 0o755), ("LICENSE", ROOT / "LICENSE", 0o644)]
        made.append(folder / archive_name(version, platform.name))
        made[-1].write_bytes(packed(files, epoch))
    return made


def packed(files: Sequence[tuple[str, Path, int]], epoch: int) -> bytes:
    """An archive of files by name, path and mode, with nothing of this machine in it."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=epoch) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, path, mode in files:
            member = tarfile.TarInfo(name)
            content = path.read_bytes()
            member.size, member.mtime, member.mode = len(content), epoch, mode
            tar.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def archive_name(version: str, platform: str) -> str:
    return f"{PROGRAM}-{version}-{'-'.join(PLUGINS[platform])}.tar.gz"


def check_address(address: str) -> str:
    """Where archives can be downloaded from, without a secret and with nothing that YAML or krew would misread."""
    if address and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d+)?(/[A-Za-z0-9._~/-]*)?", address):
        raise KrewError(f"{address!r} is no address for downloads; write it like https://example.com/winready/v1")
    return address.rstrip("/")


def manifest(version: str, folder: Path, address: str = "") -> str:
    """The manifest of the archives in a folder."""
    base, text = check_address(address), HEAD.format(version=version, pythons=onefile.told(onefile.PYTHONS))
    for platform, (system, machine) in PLUGINS.items():
        name = archive_name(version, platform)
        text += PLATFORM.format(
            system=system,
            machine=machine,
            uri=f"{base}/{name}" if base else name,
            digest=wheels.digest(folder / name),
            program=PROGRAM,
        )
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--address", default="", metavar="URL", help="where the archives will lie")
    parser.add_argument("--epoch", type=int, default=315532800, help="seconds since 1970 that its parts are dated with")
    given = parser.parse_args()
    try:
        check_address(given.address)
        if not all((given.folder / archive_name(given.version, platform)).is_file() for platform in PLUGINS):
            archives(given.version, given.folder, given.epoch)
        (given.folder / MANIFEST).write_text(manifest(given.version, given.folder, given.address))
    except KrewError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(given.folder / MANIFEST)
    return 0


if __name__ == "__main__":
    sys.exit(main())
