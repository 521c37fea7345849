"""Which upstream tests verify which requirement, as data: loaded, checked, and asked per Kubernetes version."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources
from typing import Literal

import msgspec

from winready.spec import yamlfile
from winready.spec.versions import Version, VersionRange

Placement = Literal["pinned", "steered", "anywhere"]


class Test(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test of e2e.test and what must be known to use it."""

    __test__ = False  # not one of pytest's

    texts: dict[str, str]
    placement: Placement
    images: list[str]
    linux_pods: bool = False
    alone: bool = False
    expected_s: float = 40.0
    """Cluster seconds that it takes on a healthy cluster; balances shards and sets their deadlines."""
    excuse: str = ""
    """Why it can fail on a sound cluster."""
    skips: str = ""
    skipped_always: str = ""

    def text(self, version: Version) -> str | None:
        """Its full text in a version; None where it does not exist or is not used."""
        return next((text for span, text in self.texts.items() if version in VersionRange.parse(span)), None)

    def never_runs(self, version: Version) -> bool:
        """Whether it skips itself without condition in that version."""
        return bool(self.skipped_always) and version in VersionRange.parse(self.skipped_always)


class Support(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A test that shows a part of a requirement."""

    test: str
    unproven: str


class Coverage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What upstream has for one requirement."""

    proofs: list[list[str]] = []
    supports: list[Support] = []

    @property
    def tests(self) -> list[str]:
        """Every test that says something about it."""
        names = [name for proof in self.proofs for name in proof] + [item.test for item in self.supports]
        return list(dict.fromkeys(names))


class Mapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole table."""

    schema: Literal["winready-upstream/1"]
    kubernetes: str
    tests: dict[str, Test]
    requirements: dict[str, Coverage]
    linux_only: dict[str, str] = {}
    """Tests that say nothing about Windows though their text does not tell, and why."""

    @property
    def versions(self) -> VersionRange:
        """The Kubernetes versions that the table was made for."""
        return VersionRange.parse(self.kubernetes)

    @property
    def newest(self) -> str:
        """The newest version in it."""
        return str(self.versions.last)

    def nearest_version(self, version: Version) -> Version:
        """The version whose texts to expect: the same, or the end of the table that it lies beyond."""
        first, last = self.versions.first or version, self.versions.last or version
        return min(max(version, first), last)

    def choose(self, requirement: str, version: Version) -> Choice:
        """What to run for a requirement: the first proof that exists whole, else everything that shows a part."""
        coverage = self.requirements.get(requirement, Coverage())
        for proof in coverage.proofs:
            if all(self.usable(name, version, proving=True) for name in proof):
                return Choice(tuple(proof), True, ())
        parts = [item for item in coverage.supports if self.usable(item.test, version)]
        named = {item.test for item in parts}
        loose = [
            name
            for proof in coverage.proofs
            for name in proof
            if name not in named and self.usable(name, version, proving=True)
        ]
        missing = "the rest of it has no upstream test in this version"
        unproven = tuple(item.unproven for item in parts) + ((missing,) if loose else ())
        return Choice(tuple(dict.fromkeys([*loose, *(item.test for item in parts)])), False, unproven)

    def usable(self, name: str, version: Version, *, proving: bool = False) -> bool:
        """Whether a test exists, runs, and (to prove something) is meant for Windows at all."""
        test = self.tests[name]
        text = test.text(version)
        if text is None or test.never_runs(version):
            return False
        return not (proving and "[LinuxOnly]" in text)


@dataclass(frozen=True)
class Choice:
    """The tests for one requirement in one version, and whether they prove all of it."""

    tests: tuple[str, ...]
    full: bool
    unproven: tuple[str, ...]


@functools.cache
def load_mapping() -> Mapping:
    """The table in the package."""
    data = resources.files("winready.upstream").joinpath("mapping.yaml").read_bytes()
    documents = [item for item in yamlfile.read(yamlfile.decode(data)) if isinstance(item, yamlfile.Document)]
    mapping = msgspec.convert(documents[0].value, Mapping)
    for name, coverage in mapping.requirements.items():
        unknown = [test for test in coverage.tests if test not in mapping.tests]
        if unknown:
            raise ValueError(f"{name} names unknown upstream tests: {', '.join(unknown)}")
    return mapping
