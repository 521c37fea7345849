"""The support matrix: what Windows nodes offer in a Kubernetes version, and what an upgrade changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from winready.lint import catalog
from winready.lint.catalog import Outcome, Rule
from winready.lint.versions import Range

Support = Literal["yes", "limited", "off", "no", "never"]
SUPPORT: Mapping[Support, str] = {
    "yes": "supported",
    "limited": "with limits",
    "off": "off by default",
    "no": "not in this version",
    "never": "never",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage of a feature from a version on."""

    since: int
    name: str  # alpha, beta, ga or none
    on: bool


@dataclass(frozen=True, slots=True)
class Status:
    """What a feature is in one version."""

    support: Support
    stage: str
    since: int | None


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of the matrix."""

    id: str
    name: str
    area: str
    stages: tuple[Stage, ...]
    gate: str
    limits: str
    note: str
    rules: tuple[str, ...]
    words: tuple[str, ...]

    def status(self, minor: int) -> Status:
        """Supported or not, at which stage and since when."""
        current = [stage for stage in self.stages if stage.since <= minor]
        if not current or current[-1].name == "none":
            ever = any(stage.name != "none" for stage in self.stages)
            return Status("no" if ever else "never", "", current[-1].since if current else None)
        stage = current[-1]
        support: Support = "off" if not stage.on else "limited" if self.limits else "yes"
        return Status(support, stage.name, stage.since)

    def history(self, versions: Range) -> list[tuple[Range, Status]]:
        """The statuses within a range of versions, equal neighbours joined."""
        high = versions.high or versions.low
        result: list[tuple[Range, Status]] = []
        for minor in range(versions.low, high + 1):
            status = self.status(minor)
            if result and result[-1][1] == status:
                result[-1] = (Range(result[-1][0].low, minor), status)
            else:
                result.append((Range(minor, minor), status))
        return result

    def matches(self, query: str) -> bool:
        """Whether a search means this feature: its id, its words, or every word of the query in its name."""
        wanted = query.lower().strip()
        if wanted in (self.id, self.gate.lower()) or wanted in self.words:
            return True
        text = f"{self.id} {self.name} {' '.join(self.words)} {self.gate}".lower()
        return all(re.search(rf"(?<![a-z0-9]){re.escape(word)}", text) for word in wanted.split())


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """A feature that is something else after an upgrade."""

    feature: Feature
    before: Status
    after: Status

    @property
    def better(self) -> bool:
        """Whether the upgrade brings something."""
        order = ("never", "no", "off", "limited", "yes")
        return (order.index(self.after.support), self.after.stage) >= (
            order.index(self.before.support),
            self.before.stage,
        )


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A manifest rule whose outcome changes with an upgrade."""

    rule: Rule
    before: Outcome | None
    after: Outcome | None


@cache
def load() -> tuple[Feature, ...]:
    """Every feature in the order of the data."""
    return tuple(_feature(row) for row in catalog.read_data("matrix.yaml"))


def find(query: str) -> list[Feature]:
    """The features that a search means; an exact id or word wins over parts of names."""
    wanted = query.lower().strip()
    exact = [feature for feature in load() if wanted == feature.id or wanted in feature.words]
    return exact or [feature for feature in load() if feature.matches(query)]


def areas(features: Sequence[Feature]) -> Iterator[tuple[str, list[Feature]]]:
    """The features by area, in the order in which areas first appear."""
    for area in dict.fromkeys(feature.area for feature in load()):
        if chosen := [feature for feature in features if feature.area == area]:
            yield area, chosen


def changes(before: int, after: int, features: Sequence[Feature]) -> list[FeatureChange]:
    """The features that an upgrade changes."""
    pairs = [(feature, feature.status(before), feature.status(after)) for feature in features]
    return [
        FeatureChange(feature, old, new)
        for feature, old, new in pairs
        if (old.support, old.stage) != (new.support, new.stage)
    ]


def rule_changes(before: int, after: int) -> list[RuleChange]:
    """The rules that judge a manifest differently after an upgrade, for pods that declare Windows."""
    result = []
    for rule in catalog.load().values():
        old, new = (_outcome(rule, minor) for minor in (before, after))
        if (old and (old.effect, old.severity)) != (new and (new.effect, new.severity)):
            result.append(RuleChange(rule, old, new))
    return result


def _outcome(rule: Rule, minor: int) -> Outcome | None:
    return next((one for one in rule.declared if minor in one.versions), None)


def _feature(row: Mapping[str, Any]) -> Feature:
    return Feature(
        id=row["id"],
        name=row["name"],
        area=row["area"],
        stages=tuple(_stages(str(row["stages"]))),
        gate=row.get("gate", ""),
        limits=row.get("limits", ""),
        note=row.get("note", ""),
        rules=tuple(row.get("rules", ())),
        words=tuple(str(word) for word in row.get("words", ())),
    )


def _stages(text: str) -> Iterator[Stage]:
    if text == "none":
        return
    for part in text.split(", "):
        version, name, *rest = part.split()
        yield Stage(int(version.removeprefix("1.")), name, on=not rest)
