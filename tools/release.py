#!/usr/bin/env python3
"""Make a release of the last commit in ``dist/``: all that winready is installed from, with bill and checksums.

A release is a function of a commit: version and changelog are written and committed before, nothing is edited here.
Everything is built twice, from exports in different folders, and once more from the sdist; all must agree to the byte.
The wheel is then installed into a new environment with the locked dependencies, and tried; ``tests/installing``
installs whatever was made in the ways that users do.

    release.py --rehearse     does it for a version that is not released yet, without the image, and keeps nothing
    release.py --address URL  tells krew's manifest where the files will lie
"""

from __future__ import annotations

import argparse
import filecmp
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import krew
import onefile
import sbom
import wheels

ROOT = Path(__file__).resolve().parent.parent
SECTION = re.compile(r"^## (?P<version>\S+) \((?P<day>[^)]*)\)$\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
TRIALS = (("--version",), ("--help",), ("spec", "list"), ("sandbox", "faults"))


class Refused(Exception):
    """There is no release; the message says why and what to do."""


def call(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> bytes:
    """Run a program and return what it prints."""
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, check=False)
    if result.returncode != 0:
        raise Refused(f"{' '.join(map(str, command))} failed:\n{(result.stderr or result.stdout).decode()}")
    return result.stdout


def git(root: Path, *words: str) -> bytes:
    """Ask git about the work tree of this very program, whoever checked it out."""
    return call("git", "-c", f"safe.directory={root}", *words, cwd=root)


def version_of(root: Path) -> str:
    """The version in the sources, which must be the one the changelog begins with."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "src" / "winready" / "__init__.py").read_text(), re.MULTILINE)
    if not found:
        raise Refused("src/winready/__init__.py has no line __version__ = ...")
    return found[1]


def check_changelog(root: Path, version: str, *, rehearse: bool) -> None:
    """The newest section must be about this version, say something, and be dated."""
    section = SECTION.search((root / "CHANGELOG.md").read_text())
    if not section or section["version"] != version:
        begins = f"begins with {section['version']}" if section else "has no section"
        raise Refused(f"CHANGELOG.md {begins}, and src/winready/__init__.py says {version}; write ## {version} (DAY)")
    if not section["text"].strip():
        raise Refused(f"CHANGELOG.md says nothing about {version}")
    if not rehearse and not re.fullmatch(r"\d{4}-\d\d-\d\d", section["day"]):
        raise Refused(
            f"CHANGELOG.md calls {version} {section['day']}; write the day of the release there, such as 2026-01-31, "
            "and commit it, or rehearse with make release-check"
        )


def check_tree(root: Path) -> None:
    """What is not committed would not be in the release."""
    if changes := git(root, "status", "--porcelain").decode().splitlines():
        raise Refused(f"not committed: {', '.join(line[3:] for line in changes)}; a release is made of a commit")


def epoch_of(root: Path) -> int:
    """When the last commit was made: the time that everything in the release carries."""
    return int(git(root, "log", "-1", "--format=%ct"))


def export(root: Path, folder: Path) -> Path:
    """The last commit as files, without what only lies about in the work tree."""
    with tarfile.open(fileobj=io.BytesIO(git(root, "archive", "HEAD"))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def write_manual(sources: Path) -> Path:
    """Let the commands of these sources write their manual pages where the build looks for them."""
    environment = {**os.environ, "PYTHONPATH": str(sources / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    call(sys.executable, "-P", "-m", "winready", "man", "--write", sources / "man", cwd=sources, env=environment)
    return sources


def hatch(sources: Path, target: Path, epoch: int, *kinds: str) -> list[Path]:
    """Let the pinned hatchling of this environment build; it needs no network."""
    options = [word for kind in kinds for word in ("-t", kind)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    call(sys.executable, "-m", "hatchling", "build", "-d", target, *options, cwd=sources, env=environment)
    return sorted(target.iterdir())


def build(root: Path, scratch: Path, epoch: int) -> tuple[Path, Path]:
    """Sdist and wheel, after all ways to build them gave the same bytes."""
    sources = [write_manual(export(root, scratch / name)) for name in "ab"]
    first, second = (hatch(each, each / "dist", epoch, "sdist", "wheel") for each in sources)
    wheel, sdist = sorted(first, key=lambda path: path.suffix, reverse=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "c", filter="data")
    (unpacked,) = (scratch / "c").iterdir()
    third = hatch(unpacked, scratch / "c" / "dist", epoch, "wheel")
    for other in (*second, *third):
        if not filecmp.cmp(first[0].with_name(other.name), other, shallow=False):
            raise Refused(f"{other.name} is not reproducible: two builds of one commit differ")
    return sdist, wheel


def check_contents(root: Path, wheel: Path) -> None:
    """The wheel holds every committed file of the packages, data and templates too, and nothing else."""
    committed = git(root, "ls-tree", "-r", "--name-only", "HEAD", "src/").decode().splitlines()
    wanted = {name.removeprefix("src/") for name in committed}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    pages = {name for name in held if ".data/data/share/man/man1/" in name}
    if wanted != held - pages:
        raise Refused(f"{wheel.name} differs from src/ in {', '.join(sorted(wanted ^ (held - pages)))}")
    if not any(name.endswith("/winready.1") for name in pages):
        raise Refused(f"{wheel.name} has no manual pages")


def try_out(root: Path, wheel: Path, version: str, scratch: Path) -> None:
    """Install the wheel as users do, with the locked dependencies and nothing of this work tree, and call it."""
    uv, programs = Path(sys.executable).parent / "uv", scratch / "bin"
    install = (uv, "pip", "install", "--quiet", "--python", programs / "python")
    call(uv, "venv", "--quiet", "--python", sys.executable, scratch, cwd=root)
    call(*install, "--require-hashes", "-r", root / "locks" / "run.txt", cwd=root)
    call(*install, "--no-deps", wheel, cwd=root)
    said = [call(programs / "winready", *words, cwd=scratch).decode().strip() for words in TRIALS]
    if said[0] != f"winready {version}" or not all(said):
        raise Refused(f"the installed winready calls itself {said[0]}, and the release is {version}")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_programs(wheel: Path, version: str, epoch: int, address: str, scratch: Path) -> list[Path]:
    """One file for each platform, and what krew needs of them."""
    made = []
    for folder in (scratch / "programs-a", scratch / "programs-b"):
        folder.mkdir()
        files = [*onefile.make_all(wheel, version, epoch, folder), *krew.archives(version, folder, epoch)]
        (folder / krew.MANIFEST).write_text(krew.manifest(version, folder, address))
        made.append([*files, folder / krew.MANIFEST])
    for first, second in zip(*made, strict=True):
        if not filecmp.cmp(first, second, shallow=False):
            raise Refused(f"{first.name} is not reproducible: two builds of one commit differ")
    return made[0]


def pack_manual(pages: Path, version: str, epoch: int, target: Path) -> Path:
    """The manual pages for whoever installs them elsewhere, as one archive."""
    files = [(f"man1/{page.name}", page, 0o644) for page in sorted(pages.iterdir())]
    archive = target / f"winready-{version}-man.tar.gz"
    archive.write_bytes(krew.packed(files, epoch))
    return archive


def try_installing(root: Path, dist: Path) -> None:
    """Install what was made in each of the ways that users do; a way that cannot be tried here is named."""
    command = [sys.executable, "-m", "pytest", "--override-ini", "addopts=", "-q", "-rs", "--import-mode=importlib"]
    command += [
        "--strict-markers",
        "--timeout",
        "900",
        "--numprocesses",
        "2",
        "--dist",
        "loadfile",
        str(root / "tests" / "installing"),
    ]
    environment = {**os.environ, "WINREADY_DIST": str(dist)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"what was made cannot be installed:\n{done.stdout}{done.stderr}")
    print(done.stdout, end="")


def make_image(wheel: Path, version: str, epoch: int, scratch: Path) -> tuple[list[Path], list[dict[str, Any]]]:
    """The image of the wheel as one file with its digest beside it, and what it adds to the bill of materials."""
    import debian
    import image
    import oci

    try:
        digests = [image.build(wheel, version, epoch, scratch / name) for name in ("image-a", "image-b")]
    except (image.ImageError, debian.DebianError, wheels.WheelError) as error:
        raise Refused(str(error)) from None
    if digests[0] != digests[1]:
        raise Refused("the image is not reproducible: two builds of one commit differ")
    archive, told = scratch / f"winready-{version}-image.tar", scratch / f"winready-{version}-image.digest"
    oci.pack(scratch / "image-a", archive, epoch)
    told.write_text(digests[0] + "\n")
    packages = debian.read_lock(image.LOCK.read_text())
    return [archive, told], image.bill(packages, {f"winready:{version}": digests[0]})


def release(root: Path, target: Path, *, rehearse: bool, address: str = "") -> list[Path]:
    """Everything, in order; ``target`` is replaced only when all went well."""
    version = version_of(root)
    check_changelog(root, version, rehearse=rehearse)
    krew.check_address(address)
    if not rehearse:
        check_tree(root)
    epoch = epoch_of(root)
    with tempfile.TemporaryDirectory(prefix="winready-release-") as folder:
        scratch = Path(folder)
        sdist, wheel = build(root, scratch, epoch)
        check_contents(root, wheel)
        try_out(root, wheel, version, scratch / "trial")
        bill = scratch / f"winready-{version}.cdx.json"
        document = sbom.make(root, version, digest(wheel), epoch)
        manual = pack_manual(scratch / "a" / "man" / "man1", version, epoch, scratch)
        files = [sdist, wheel, *make_programs(wheel, version, epoch, address, scratch), manual, bill]
        if not rehearse:
            made, components = make_image(wheel, version, epoch, scratch)
            document["components"] += components
            files += made
        bill.write_text(json.dumps(document, indent=1) + "\n")
        sums = scratch / "SHA256SUMS"
        sums.write_text("".join(f"{digest(path)}  {path.name}\n" for path in files))
        dist = scratch / "dist"
        dist.mkdir()
        for path in (*files, sums):
            shutil.move(path, dist)
        try_installing(root, dist)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(dist, target)
        return [target / path.name for path in (*files, sums)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rehearse", action="store_true", help="for a version not yet released; nothing is kept")
    parser.add_argument("--address", default="", metavar="URL", help="where the files will lie, for krew's manifest")
    given = parser.parse_args()
    rehearse: bool = given.rehearse
    try:
        with tempfile.TemporaryDirectory() as nowhere:
            target = Path(nowhere) / "dist" if rehearse else ROOT / "dist"
            made = release(ROOT, target, rehearse=rehearse, address=given.address)
            print("\n".join(f"{digest(path)[:16]}  {path.name}" for path in made))
    except (Refused, sbom.SbomError, wheels.WheelError, krew.KrewError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    commit = git(ROOT, "log", "-1", "--format=%h").decode().strip()
    done = "rehearsed; nothing was kept" if rehearse else f"in dist/; now tag it v{version_of(ROOT)} and publish them"
    print(f"made of {commit}, {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
