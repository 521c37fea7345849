"""Debian packages as an image is made of them: locked by digest, fetched, verified, read without dpkg.

A lock names no host. Packages come from wherever this machine's apt gets Debian from, or from ``WINREADY_DEBIAN``, the
address of a mirror; every one is held to its digest, so that nobody on the way needs to be trusted.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import re
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from real_programs import cache_root

RELEASE = "bookworm"
HEADER = (
    f"# Made by `make lock-image` from Debian {RELEASE}; do not edit.\n"
    "# architecture package version sha256 size path\n"
)
_AR = b"!<arch>\n"
_AR_ENTRY = 60
_FIELD = re.compile(r"^(\w[\w-]*): (.*)$", re.MULTILINE)


class DebianError(Exception):
    """A package cannot be had; the message says which and why."""


@dataclass(frozen=True)
class Package:
    """One package of the lock."""

    architecture: str
    name: str
    version: str
    sha256: str
    size: int
    path: str

    @property
    def purl(self) -> str:
        """Its name in the world."""
        return f"pkg:deb/debian/{self.name}@{self.version}?arch={self.architecture}"


def read_lock(text: str) -> list[Package]:
    """The packages of a lock."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#") or not line:
            continue
        fields = line.split()
        if len(fields) != 6 or not fields[4].isdigit() or not re.fullmatch("[0-9a-f]{64}", fields[3]):
            raise DebianError(f"locks/image.txt, line {number} is not a package; run make lock-image")
        architecture, name, version, sha256, size, path = fields
        found.append(Package(architecture, name, version, sha256, int(size), path))
    return found


def _run(*command: str, what: str) -> str:
    try:
        done = subprocess.run(command, text=True, capture_output=True, check=False)
    except OSError as error:
        raise DebianError(f"{what}: {command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise DebianError(f"{what}: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}")
    return done.stdout


def mirrors() -> list[str]:
    """Where packages may be, the address of each ending in a slash."""
    if given := os.environ.get("WINREADY_DEBIAN"):
        return [address.rstrip("/") + "/" for address in given.split()]
    command = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian")
    found = _run(*command, what="no mirror of Debian is known (WINREADY_DEBIAN can name one)")
    if not found.split():
        raise DebianError("apt knows no mirror of Debian on this machine; name one in WINREADY_DEBIAN")
    return sorted(set(found.split()))


def fetch(package: Package) -> Path:
    """The file of a package, from the cache or from a mirror; it has its digest."""
    place = cache_root() / "image" / "debian" / f"{package.sha256}.deb"
    if place.exists() and hashlib.sha256(place.read_bytes()).hexdigest() == package.sha256:
        return place
    what = f"{package.name} {package.version} ({package.architecture})"
    trouble = ""
    for mirror in mirrors():
        try:
            with urllib.request.urlopen(mirror + package.path, timeout=60) as answer:  # noqa: S310  a mirror of Debian
                data = answer.read()
        except (urllib.error.URLError, OSError) as error:
            trouble = trouble or str(getattr(error, "reason", error))
            continue
        if hashlib.sha256(data).hexdigest() != package.sha256:
            raise DebianError(f"{what} does not have the digest of locks/image.txt; it was changed on its way")
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            file.write(data)
        Path(file.name).replace(place)
        return place
    raise DebianError(
        f"{what} is not in Debian any more, or cannot be reached ({trouble}); "
        "make lock-image takes what has replaced it"
    )


def parts(package: Path) -> dict[str, bytes]:
    """The files that a package is an archive of, by name."""
    data = package.read_bytes()
    if not data.startswith(_AR):
        raise DebianError(f"{package.name} is no Debian package")
    found, position = {}, len(_AR)
    while position + _AR_ENTRY <= len(data):
        entry = data[position : position + _AR_ENTRY]
        name, size = entry[:16].decode().strip().rstrip("/"), int(entry[48:58])
        position += _AR_ENTRY
        found[name] = data[position : position + size]
        position += size + size % 2
    return found


def _archive(package: Path, stem: str) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for name, data in parts(package).items():
        if name.startswith(stem):
            raw = lzma.decompress(data) if name.endswith(".xz") else data
            with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
                for member in archive:
                    content = archive.extractfile(member) if member.isreg() else None
                    yield member, content.read() if content else b""


def contents(package: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """What it installs."""
    return _archive(package, "data.tar")


def control(package: Path) -> bytes:
    """What it says about itself."""
    return next(data for member, data in _archive(package, "control.tar") if member.name in ("./control", "control"))


def lock(names: Sequence[str], architectures: Sequence[str]) -> str:
    """The newest versions of these packages, as apt finds and verifies them, in the form of a lock."""
    command = ("apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages", "Origin: Debian")
    found = sorted({tuple(line.split()) for line in _run(*command, what="apt's sources cannot be read").splitlines()})
    suites = {"Debian": f"{RELEASE} {RELEASE}-updates", "Debian-Security": f"{RELEASE}-security"}
    with tempfile.TemporaryDirectory(prefix="winready-apt-") as folder:
        root = Path(folder)
        for name in ("lists/partial", "cache/partial", "parts"):
            (root / name).mkdir(parents=True)
        keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
        lines = [
            f"deb [arch={','.join(architectures)} signed-by={keys}] {uri} {suite} main"
            for uri, label in found
            for suite in suites[label].split()
        ]
        (root / "sources.list").write_text("\n".join(lines) + "\n")
        settings = {
            "Dir::Etc::SourceList": root / "sources.list",
            "Dir::Etc::SourceParts": root / "parts",
            "Dir::State::Lists": root / "lists",
            "Dir::Cache": root / "cache",
            "Dir::State::Status": "/dev/null",
        }
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        _run("apt-get", *options, "update", what="Debian's list of packages cannot be had")
        rows = []
        for architecture in architectures:
            for name in sorted(names):
                asked = ("apt-cache", *options, "-o", f"APT::Architecture={architecture}", "show", "--no-all-versions")
                told = _run(*asked, f"{name}:{architecture}", what=f"{name} is not in Debian {RELEASE}")
                fields = dict(_FIELD.findall(told))
                values = [fields[key] for key in ("Version", "SHA256", "Size", "Filename")]
                rows.append(" ".join((architecture, name, *values)))
    return HEADER + "\n".join(rows) + "\n"
