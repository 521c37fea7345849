"""A bill of materials (CycloneDX JSON) of what a release needs, from the lock and what packages say about themselves.

Every locked package is in it with the hashes of all its files, because which file is installed depends on the machine.
What only building needs has the scope ``excluded``. The same commit gives the same bytes.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import re
import tomllib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGE = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[^\s;]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class SbomError(Exception):
    """The environment is not what the lock says."""


@dataclass(frozen=True)
class Locked:
    """A package of the lock."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its name in the world."""
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(text: str) -> dict[str, Locked]:
    """The packages of a lock by name."""
    found: dict[str, Locked] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if match := PACKAGE.match(line):
            name = canonicalize_name(match["name"])
            found[name] = Locked(name, match["version"], tuple(sorted(HASH.findall(line))))
    return found


def names(requirements: Iterable[str]) -> set[str]:
    """What is required on some machine, extras aside."""
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(each.name) for each in parsed if "extra" not in str(each.marker)}


def installed(package: Locked) -> importlib.metadata.Distribution | None:
    """The package here, unless it is for other machines."""
    try:
        found = importlib.metadata.distribution(package.name)
    except importlib.metadata.PackageNotFoundError:
        return None
    if found.version != package.version:
        raise SbomError(
            f"{package.name} is locked as {package.version} and installed as {found.version}; see make lock"
        )
    return found


def licences(package: importlib.metadata.Distribution | None) -> list[dict[str, Any]]:
    """What a package says about its licence, in one of the three ways of packages of different age."""
    if package is None:
        return []
    for expression in package.metadata.get_all("License-Expression") or []:
        return [{"expression": expression}]
    named = [text for text in package.metadata.get_all("License") or [] if text and "\n" not in text]
    classifiers = package.metadata.get_all("Classifier") or []
    approved = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: OSI Approved :: ")]
    return [{"license": {"name": name}} for name in named or approved]


def _reached(direct: set[str], required: dict[str, set[str]]) -> set[str]:
    """What runs need, directly and through others."""
    if strange := direct - set(required):
        raise SbomError(f"locks/run.txt does not have {', '.join(sorted(strange))}; run make lock")
    reached, waiting = set[str](), set(direct)
    while waiting:
        reached |= waiting
        waiting = set().union(*(required[name] for name in waiting)) - reached
    return reached


def _required(locked: dict[str, Locked]) -> dict[str, set[str]]:
    here = {name: installed(package) for name, package in locked.items()}
    return {name: names((found.requires if found else None) or []) & set(locked) for name, found in here.items()}


def needed(root: Path) -> set[str]:
    """The locked packages that a run needs, by name; building needs more."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return _reached(names(project["dependencies"]), _required(read_lock((root / "locks" / "run.txt").read_text())))


def make(root: Path, version: str, wheel_hash: str, epoch: int) -> dict[str, Any]:
    """The document for a release of the sources in ``root``."""
    locked = read_lock((root / "locks" / "run.txt").read_text())
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    here = {name: installed(package) for name, package in locked.items()}
    required = _required(locked)
    direct = names(project["dependencies"])
    reached = _reached(direct, required)
    own = Locked(project["name"], version, (wheel_hash,))
    links = {own.purl: direct, **{locked[name].purl: needs for name, needs in required.items()}}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own.purl}#{wheel_hash}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {**component(own), "type": "application", "licenses": [{"expression": project["license"]}]},
        },
        "components": [
            {
                **component(package),
                "scope": "required" if name in reached else "excluded",
                "licenses": licences(here[name]),
            }
            for name, package in sorted(locked.items())
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(locked[name].purl for name in needs)} for ref, needs in links.items()
        ],
    }


def component(package: Locked) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "hashes": [{"alg": "SHA-256", "content": content} for content in package.hashes],
    }
