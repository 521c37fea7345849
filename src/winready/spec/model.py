"""The standard as typed data: what a cluster must show, grouped by category, and the rules of a run."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from winready.spec.versions import VersionRange

Level = Literal["core", "extension", "advisory"]
Feature = Literal["hostprocess", "gmsa", "network-policy", "dual-stack"]


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One text of the standard."""

    title: str
    kubernetes: str


class Category(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A group of requirements that is selected as a whole."""

    name: str
    level: Level
    title: str
    aliases: list[str] = []


class Needs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must be there before a requirement can be judged at all."""

    linux: Annotated[int, msgspec.Meta(ge=0)] = 0
    windows: Annotated[int, msgspec.Meta(ge=0)] = 0
    features: list[Feature] = []


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One ability that a cluster must show."""

    id: str
    key: str
    category: str
    statement: str
    sources: list[str]
    kubernetes: str
    needs: Needs
    also: str | None = None
    images: list[str] = []
    disruptive: bool = False
    verifiers: list[Literal["native", "upstream"]] = []
    """Who can show all of it: a check of ours, upstream tests of at least one Kubernetes version."""

    @property
    def versions(self) -> VersionRange:
        """The Kubernetes versions it applies to."""
        return VersionRange.parse(self.kubernetes)


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A condition on the whole run."""

    id: str
    statement: str
    gates: Literal["run", "certificate"]
    waived_by: str | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A specification file as it is written."""

    schema: Literal["winready-spec/1"]
    version: str
    sources: dict[str, Source]
    categories: list[Category]
    requirements: list[Requirement]
    rules: list[Rule] = []


class Specification(msgspec.Struct, frozen=True):
    """A loaded specification and the digest of the text it came from."""

    document: Document
    digest: str

    @property
    def requirements(self) -> list[Requirement]:
        """Every requirement, in the order of the text."""
        return self.document.requirements

    @property
    def rules(self) -> list[Rule]:
        """Every rule, in the order of the text."""
        return self.document.rules

    def requirement(self, requirement_id: str) -> Requirement:
        """The requirement with that id."""
        return next(item for item in self.requirements if item.id == requirement_id)

    def category(self, name: str) -> Category:
        """The category with that exact name."""
        return next(item for item in self.document.categories if item.name == name)

    def level(self, requirement: Requirement) -> Level:
        """How much a requirement weighs: that of its category."""
        return self.category(requirement.category).level
