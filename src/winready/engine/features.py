"""Features of the matrix beside a run: shown by its requirements, by small checks of their own or by upstream tests.

What the data says comes in from outside, since the engine knows the standard and not the matrix. What the cluster
shows is held against it here; none of it reaches the verdict.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from winready.checks.context import Context
from winready.checks.registry import FeatureCheck
from winready.checks.world import World
from winready.cluster.evidence import Evidence
from winready.cluster.timing import now
from winready.engine.checking import REPORT_IT, Ending, ended, shown
from winready.engine.outcomes import (
    NO_CHECK,
    NO_TESTS,
    FeatureResult,
    Outcome,
    RequirementResult,
    Support,
    Way,
    unproven,
)
from winready.engine.plan import Lacking
from winready.spec.versions import Version

OFFERED: frozenset[Support] = frozenset({"yes", "limited"})
ABSENT: frozenset[Support] = frozenset({"no", "never"})
_BEGINNING = "beginning"
_WORST: tuple[Outcome, ...] = ("failed", "error", "blocked", "not-applicable", "passed")


@dataclass(frozen=True)
class Statement:
    """What the data says of a feature from a minor version on."""

    since: int
    support: Support
    text: str
    """As it follows "documented as", such as "supported since 1.22"."""


UNKNOWN = Statement(0, "unknown", "unknown in this version")


@dataclass(frozen=True)
class Wanted:
    """A feature that is to be shown, what the data says of it, and how it can be shown."""

    id: str
    name: str
    area: str
    statements: tuple[Statement, ...]
    until: int
    """The last minor version that the data knows."""
    requirements: tuple[str, ...] = ()
    """All of these show it together."""
    check: bool = False
    """And so does a check of its own."""
    tests: tuple[str, ...] = ()
    """Upstream tests that show it, by their names in the mapping; run only where e2e.test takes part."""
    data_only: str = ""
    """Why nothing on a cluster can show it; empty when something can."""

    def says(self, version: Version | None) -> Statement:
        """What the data says for a version."""
        if version is None or version.major != 1 or version.minor > self.until:
            return UNKNOWN
        known = [each for each in self.statements if each.since <= version.minor]
        return known[-1] if known else UNKNOWN


class Part(NamedTuple):
    """What one of the ways to show a feature came to."""

    way: Way
    ending: Ending
    works: bool | None
    evidence: Evidence
    started_s: float = 0.0
    duration_s: float = 0.0


@dataclass
class _Open:
    """A feature that has no outcome yet."""

    wanted: Wanted
    requirements: dict[str, RequirementResult] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    waits_for: set[str] = field(default_factory=set)
    """What has not ended: requirements by their ids, ``check``, ``upstream``, and the look at the cluster."""


class Showing:
    """The features of one run: told what happens, it tells each feature once everything that shows it has ended."""

    def __init__(self, wanted: Sequence[Wanted], tell: Callable[[FeatureResult], object]) -> None:
        self._tell = tell
        self._version: Version | None = None
        self._open = {each.id: _Open(each, waits_for={_BEGINNING, *each.requirements}) for each in wanted}

    def begin(
        self,
        version: str,
        selected: Collection[str],
        carried: Sequence[FeatureResult],
        checks: Mapping[str, FeatureCheck],
        tests: Callable[[Wanted], Sequence[str]],
        lacking: Mapping[str, Lacking],
    ) -> None:
        """The cluster is known: tell what needs no waiting, and wait for the rest.

        ``selected`` are the requirements of the run, ``checks`` is empty where our own take no part, ``tests`` gives
        those that this e2e.test has for a feature, and ``lacking`` the rights that its check would need.
        """
        self._version = _parsed(version)
        kept = {each.id: each for each in carried if each.outcome in ("passed", "failed", "not-applicable")}
        for item in list(self._open.values()):
            wanted = item.wanted
            if wanted.id in kept:
                self._finish(item, kept[wanted.id])
            elif left_out := [name for name in wanted.requirements if name not in selected]:
                ending = Ending("blocked", f"{left_out[0]} shows it, and was left out", "select it as well")
                self._finish(item, self._judged(item, [Part("requirement", ending, None, Evidence())]))
            elif wanted.check and checks and wanted.id in lacking:
                lack = lacking[wanted.id]
                ending = Ending("blocked", f"rights are missing: {lack.rights}", lack.next_step)
                self._finish(item, self._judged(item, [Part("check", ending, None, Evidence())]))
            else:
                item.waits_for |= {"check"} if wanted.check and checks else set()
                item.waits_for |= {"upstream"} if tests(wanted) else set()
                if item.waits_for == {_BEGINNING} and not item.requirements:
                    self._finish(item, self._unshown(wanted))
                else:
                    self._ended(item, _BEGINNING)

    def waiting(self, way: Way) -> list[Wanted]:
        """The features that still wait for a way to show them."""
        return [item.wanted for item in self._open.values() if way in item.waits_for]

    def heard(self, result: RequirementResult) -> None:
        """A requirement of the run has its outcome."""
        for item in list(self._open.values()):
            if result.id in item.waits_for:
                item.requirements[result.id] = result
                self._ended(item, result.id)

    def tested(self, feature: str, result: RequirementResult) -> None:
        """The upstream tests of a feature have ended."""
        item = self._open[feature]
        ending = Ending(result.outcome, result.reason, result.next_step, result.expected, result.observed)
        item.parts.append(Part("upstream", ending, _seen(result.outcome), result.evidence, 0.0, result.duration_s))
        self._ended(item, "upstream")

    async def check(self, world: World, checks: Mapping[str, FeatureCheck], gate: asyncio.Semaphore) -> None:
        """Run the checks of all features that wait for theirs, beside whatever else runs."""

        async def one(wanted: Wanted) -> None:
            async with gate:
                part = await _checked(checks[wanted.id], world)
            item = self._open[wanted.id]
            item.parts.append(part)
            self._ended(item, "check")

        async with asyncio.TaskGroup() as group:
            for wanted in self.waiting("check"):
                group.create_task(one(wanted))

    def give_up(self, outcome: Outcome, reason: str, next_step: str) -> None:
        """Every feature that has no outcome by now says why."""
        for item in list(self._open.values()):
            lost = Part(_way(item.wanted), Ending(outcome, reason, next_step), None, Evidence())
            self._finish(item, self._judged(item, [*item.parts, *_by_requirements(item), lost]))

    def _ended(self, item: _Open, what: str) -> None:
        item.waits_for.discard(what)
        if not item.waits_for:
            self._finish(item, self._judged(item, [*_by_requirements(item), *item.parts]))

    def _finish(self, item: _Open, result: FeatureResult) -> None:
        self._open.pop(item.wanted.id, None)
        self._tell(result)

    def _unshown(self, wanted: Wanted) -> FeatureResult:
        """Nothing of this run can show it."""
        way = _way(wanted)
        ending = Ending("not-applicable", f"by data only: {wanted.data_only}")
        if way == "upstream":
            ending = Ending("not-applicable", NO_TESTS, "--engine both")
        elif way == "check":
            ending = Ending("not-applicable", NO_CHECK, "--engine native, or both")
        return self._judged(_Open(wanted), [Part(way, ending, None, Evidence())])

    def _judged(self, item: _Open, parts: Sequence[Part]) -> FeatureResult:
        """One result of all that was seen, held against what the data says."""
        wanted, statement = item.wanted, item.wanted.says(self._version)
        worst = min(parts, key=lambda part: _WORST.index(part.ending.outcome))
        works = False if any(p.works is False for p in parts) else all(p.works for p in parts) or None
        ending, contradiction = compare(worst.ending, works, statement)
        if worst.ending.outcome == "passed" and len(parts) > 1:
            ending = ending._replace(reason="; ".join(dict.fromkeys(part.ending.reason for part in parts)))
        evidence = Evidence()
        for part in parts:
            evidence = _together(evidence, part.evidence)
        result = FeatureResult(
            id=wanted.id,
            name=wanted.name,
            area=wanted.area,
            outcome=ending.outcome,
            reason=ending.reason,
            next_step=ending.next_step,
            expected=ending.expected,
            observed=ending.observed,
            way=worst.way,
            support=statement.support,
            documented=statement.text,
            works=works,
            contradiction=contradiction,
            requirements=[name for name in wanted.requirements if name in item.requirements],
            tests=list(wanted.tests) if any(part.way == "upstream" for part in parts) else [],
            started_s=min(part.started_s for part in parts),
            duration_s=round(sum(part.duration_s for part in parts), 3),
            evidence=evidence.fold(),
        )
        if lack := unproven(result):
            reason = f"it ended with {lack}"
            return msgspec.structs.replace(
                result, outcome="error", reason=reason, works=None, contradiction="", next_step=REPORT_IT
            )
        return result


def compare(ending: Ending, works: bool | None, says: Statement) -> tuple[Ending, str]:
    """What was seen held against what is documented: the outcome, and how both contradict each other, if they do."""
    if ending.outcome not in ("passed", "failed"):
        return ending, ""
    if works and says.support in ABSENT:
        words = f"documented as {says.text}, yet it works here"
        return ending._replace(outcome="failed", reason=f"{words}: {ending.reason}"), words
    if works:
        return ending, ""
    if says.support in OFFERED:
        words = f"documented as {says.text}, not shown here"
        return ending._replace(outcome="failed", reason=f"{words}: {ending.reason}"), words
    if ending.outcome == "passed" and says.support in ABSENT:
        return ending, ""
    if says.support in ("no", "off", "unknown"):
        reason = f"documented as {says.text}, and not there: {ending.reason}"
        return Ending("not-applicable", reason, ending.next_step), ""
    return ending, ""


async def _checked(check: FeatureCheck, world: World) -> Part:
    context, start = Context(world), now()
    ending, sight = await ended(check.run, context)
    works: bool | None = False if ending.outcome == "failed" else None
    if sight is not None:
        works = sight.works
        ending = ending._replace(reason=f"{shown(context)}: {sight.words}")
    return Part("check", ending, works, context.evidence, round(start - world.began, 3), round(now() - start, 3))


def _by_requirements(item: _Open) -> list[Part]:
    """What the requirements of a feature say of it: all of them together show it."""
    if not item.requirements:
        return []
    results = list(item.requirements.values())
    worst = min(results, key=lambda each: _WORST.index(each.outcome))
    evidence = Evidence()
    for each in results:
        evidence = _together(evidence, msgspec.structs.replace(each.evidence, facts={}, dropped_probes=0, counted={}))
        evidence.fact(each.id, {"outcome": each.outcome, "reason": each.reason})
    # Every probe stands with its requirement already; one that went well says that there are some.
    evidence.probes = [probe for probe in evidence.probes if probe.ok][:1]
    reason = worst.reason
    if worst.outcome != "passed":
        reason = f"{worst.id} {worst.outcome}: {worst.reason}"
    ending = Ending(worst.outcome, reason, worst.next_step, worst.expected, worst.observed)
    began = min(each.started_s for each in results)
    ends = max(each.started_s + each.duration_s for each in results)
    return [Part("requirement", ending, _seen(worst.outcome), evidence, began, round(ends - began, 3))]


def _seen(outcome: Outcome) -> bool | None:
    return {"passed": True, "failed": False}.get(outcome)


def _way(wanted: Wanted) -> Way:
    if wanted.check:
        return "check"
    return "requirement" if wanted.requirements else "upstream" if wanted.tests else "data"


def _together(some: Evidence, more: Evidence) -> Evidence:
    pods = list(more.everybody)
    uids = {pod.uid for pod in pods}
    return Evidence(
        pods=[*(pod for pod in some.everybody if pod.uid not in uids), *pods],
        probes=[*some.probes, *more.probes],
        facts={**some.facts, **more.facts},
        dropped_probes=some.dropped_probes + more.dropped_probes,
        counted=dict(Counter(some.counted) + Counter(more.counted)),
    )


def _parsed(version: str) -> Version | None:
    try:
        return Version.parse(version)
    except ValueError:
        return None
