"""One folder or ZIP for a Windows machine: scripts, parameters, manifests, their digests; same input, same bytes."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from winready.node.addons import render
from winready.node.downloads import CHUNK, sha256_of
from winready.node.parameters import Parameters, ParametersError, encode
from winready.node.runtime import runtime_settings

SUMS, ENTRY, PARAMETERS = "SHA256SUMS", "node.ps1", "node.json"
PARTS, FILES, MANIFESTS, RUNTIME = "parts", "files", "manifests", "config/containerd.toml"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a ZIP file can tell: bundles do not depend on when they were made."""
Content = bytes | Path


@dataclass(frozen=True)
class Written:
    """What became of a bundle."""

    path: Path
    digest: str
    entry_digest: str
    """SHA-256 of the script that the Windows machine runs first."""
    files: int
    changed: bool


def scripts() -> dict[str, bytes]:
    """The scripts by their path in a bundle."""
    root = resources.files("winready.node") / "scripts"
    found = {ENTRY: (root / ENTRY).read_bytes()}
    for part in (root / PARTS).iterdir():
        if part.name.endswith(".ps1"):
            found[f"{PARTS}/{part.name}"] = part.read_bytes()
    return found


def manifests(parameters: Parameters) -> dict[str, bytes]:
    """The add-ons of the cluster that go with these parameters, by their path in a bundle."""
    return {f"{MANIFESTS}/{name}": text.encode() for name, text in render(parameters).items()}


def contents(parameters: Parameters, fetched: Path | None = None) -> dict[str, Content]:
    """Everything in a bundle except its list; ``fetched`` holds the files of one that needs no way out."""
    found: dict[str, Content] = {**scripts(), **manifests(parameters), PARAMETERS: encode(parameters)}
    if parameters.containerd.version:
        found[RUNTIME] = runtime_settings(parameters).encode()
    if fetched is not None:
        for file in parameters.files:
            path = fetched / file.file_name
            if sha256_of(path) != file.sha256:
                raise ParametersError(f"{file.file_name} changed after it was fetched", "try again")
            found[f"{FILES}/{file.file_name}"] = path
    return dict(sorted(found.items()))


def sums(found: dict[str, Content]) -> bytes:
    """``SHA256SUMS`` as sha256sum writes and reads it."""
    lines = [f"{_digest(content)}  {name}\n" for name, content in sorted(found.items())]
    return "".join(lines).encode()


def write(found: dict[str, Content], target: Path) -> Written:
    """Write a bundle, whole or not at all; one that is there and says the same is left alone."""
    listing = sums(found)
    everything: dict[str, Content] = {**found, SUMS: listing}
    digest, entry = hashlib.sha256(listing).hexdigest(), _digest(found[ENTRY])
    zipped = target.suffix.lower() == ".zip"
    _check_target(target, zipped)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as work:
            new = Path(work) / "new"
            (_write_zip if zipped else _write_folder)(everything, new)
            if _same(new, target, everything, zipped):
                return Written(target, digest, entry, len(everything), changed=False)
            if target.is_dir():
                # A folder cannot be replaced in one move; the old one goes when the new one is in its place.
                os.rename(target, Path(work) / "old")
            os.replace(new, target)
    except OSError as error:
        raise ParametersError(f"{target} cannot be written: {error.strerror}", "name another place with --to") from None
    return Written(target, digest, entry, len(everything), changed=True)


def _check_target(target: Path, zipped: bool) -> None:
    """Only nothing, an empty folder or an earlier bundle is ever replaced."""
    if not target.exists():
        return
    if zipped:
        if not target.is_file() or not zipfile.is_zipfile(target):
            raise ParametersError(f"{target} is there and no ZIP file", "name another place with --to")
        return
    if not target.is_dir():
        raise ParametersError(f"{target} is there and no folder", "name a folder, or a file that ends in .zip")
    present = {path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir()}
    listed = set()
    if SUMS in present:
        lines = (target / SUMS).read_text(errors="replace").splitlines()
        listed = {SUMS, *(line.partition("  ")[2] for line in lines)}
    if foreign := sorted(present - listed):
        raise ParametersError(
            f"{target} holds what is no part of a bundle ({foreign[0]})",
            "name an empty folder or another place with --to",
        )


def _same(new: Path, target: Path, everything: dict[str, Content], zipped: bool) -> bool:
    if not target.exists():
        return False
    if zipped:
        return sha256_of(new) == sha256_of(target)
    present = {path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir()}
    return present == set(everything) and all(sha256_of(new / name) == sha256_of(target / name) for name in present)


def _write_folder(everything: dict[str, Content], folder: Path) -> None:
    folder.mkdir()
    for name, content in everything.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, path)
        else:
            path.write_bytes(content)


def _write_zip(everything: dict[str, Content], path: Path) -> None:
    # Stored, not deflated: what a compressor makes of the same input changes from version to version.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(everything.items()):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o644 << 16
            info.create_system = 3
            if isinstance(content, bytes):
                archive.writestr(info, content)
                continue
            info.file_size = content.stat().st_size
            with content.open("rb") as source, archive.open(info, "w") as output:
                shutil.copyfileobj(source, output, CHUNK)


def _digest(content: Content) -> str:
    return sha256_of(content) if isinstance(content, Path) else hashlib.sha256(content).hexdigest()
