"""The upstream part of a run: what e2e.test is to verify, and what its results mean for the requirements.

A test that passed is a pass only if it was seen to run Windows containers; a part of a requirement is never the whole;
and where winready's own check and upstream disagree, nothing passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from winready.cluster.client import Client
from winready.cluster.evidence import Evidence, Probe, bounded
from winready.cluster.inventory import Inventory
from winready.cluster.steering import served_version
from winready.engine.outcomes import Outcome, RequirementResult
from winready.engine.plan import Assignment, Planned
from winready.spec.versions import Version
from winready.upstream.binary import Binary, list_specs, misfit
from winready.upstream.drift import Finding, compare
from winready.upstream.foreign import Case, resolve
from winready.upstream.listing import Listing
from winready.upstream.mapping import Mapping as Table
from winready.upstream.mapping import load_mapping
from winready.upstream.shards import Selected
from winready.upstream.suite import Result

Engine = Literal["native", "upstream", "both"]
Steering = Literal["policy", "taint", ""]


@dataclass(frozen=True)
class UpstreamOptions:
    """What the operator decided about e2e.test."""

    binary: Binary
    folder: Path
    """Where its output and reports go."""
    provider: str = "skeleton"
    steer_by_taint: bool = False
    parallel: int | None = None
    """Processes at the same time; None for as many as the cluster's Windows nodes allow."""
    listing: Listing | None = None
    """The specs of the binary, where they are known already."""
    cases: dict[str, Case] = field(default_factory=dict)
    """Test cases of a foreign specification by requirement, instead of our own mapping."""
    notes: list[str] = field(default_factory=list)
    """What is wrong with that specification beyond single cases."""
    echo: Callable[[bytes], object] | None = None
    """Gets whatever e2e.test says, as it says it."""


@dataclass(frozen=True)
class Prepared:
    """An e2e.test compared with a cluster and with the mapping: ready to plan with."""

    options: UpstreamOptions
    binary: Binary
    table: Table
    findings: dict[str, Finding]
    version: Version
    steering: Steering
    policy_version: str
    refusal: str
    """Why this e2e.test must not judge this cluster at all; empty when it may."""
    complaints: dict[str, str]
    """What is wrong with cases of a foreign specification."""

    def assignments(self, requirements: Iterable[str]) -> dict[str, Assignment]:
        """What upstream does for each requirement."""
        return {requirement: self._assign(requirement) for requirement in requirements}

    def selected(self, names: Iterable[str]) -> list[Selected]:
        """The specs to run, with the texts that this very binary has."""
        chosen = []
        for name in dict.fromkeys(names):
            test = self.table.tests[name]
            chosen.append(Selected(name, self.findings[name].found, test.expected_s, test.alone))
        return chosen

    def needs_steering(self, names: Iterable[str]) -> bool:
        """Whether any of these tests leaves the place of its pods to the scheduler."""
        return any(self.table.tests[name].placement == "steered" for name in names)

    def _assign(self, requirement: str) -> Assignment:
        if self.refusal:
            remedy = "'winready upstream fetch' gets the one that fits"
            return Assignment(refused=self.refusal, next_step=remedy)
        if requirement in self.complaints:
            return Assignment(refused=self.complaints[requirement], next_step="correct the test case")
        choice = self.table.choose(requirement, self.version)
        drifted = [self.findings[name] for name in choice.tests if self.findings[name].drifted]
        if drifted:
            first = drifted[0]
            near = f"; nearest: {first.nearest[0]!r}" if first.nearest else ""
            reason = f"the mapped upstream test {first.expected!r} drifted: {first.detail}{near}"
            return Assignment(refused=reason, next_step="'winready upstream drift' shows everything that changed")
        tests = list(choice.tests)
        steered = [name for name in tests if self.table.tests[name].placement == "steered"]
        if steered and not self.steering:
            if choice.full or len(steered) == len(tests):
                reason = (
                    f"the upstream test {self.findings[steered[0]].found!r} lets the scheduler choose, and this API "
                    "server has no MutatingAdmissionPolicy to send its pods to Windows"
                )
                return Assignment(refused=reason, next_step="allow a taint on the Linux nodes with --steer-by-taint")
            tests = [name for name in tests if name not in steered]
        expected = max((self.table.tests[name].expected_s for name in tests), default=0.0)
        return Assignment(
            tests=tests,
            full=choice.full,
            unproven=list(choice.unproven),
            expected_s=expected,
            disruptive=any(spec.disruptive for spec in self.selected(tests)),
        )


async def prepare(client: Client, options: UpstreamOptions, inventory: Inventory) -> Prepared:
    """Ask e2e.test what it has, and the cluster how pods can be steered."""
    binary = options.binary
    listing = options.listing or await list_specs(binary)
    cluster = Version.parse(inventory.version)
    complaints: dict[str, str] = {}
    if options.cases:
        table, complaints = resolve(options.cases, listing, binary.version)
    else:
        table = load_mapping()
    version = table.nearest_version(binary.version)
    served = await served_version(client)
    return Prepared(
        options=options,
        binary=binary,
        table=table,
        findings={finding.test: finding for finding in compare(table, listing, version)},
        version=version,
        steering="policy" if served else "taint" if options.steer_by_taint else "",
        policy_version=served or "",
        refusal=misfit(binary, cluster),
        complaints=complaints,
    )


def judge_upstream(planned: Planned, prepared: Prepared, results: Mapping[str, Result]) -> RequirementResult:
    """What the results of its tests mean for a requirement."""
    mine = [results[name] for name in planned.upstream]
    meaning = _meaning(planned, prepared, mine)
    evidence = _evidence(mine, prepared, meaning.shown)
    return RequirementResult(
        id=planned.id,
        category=planned.category,
        level=planned.level,
        outcome=meaning.outcome,
        reason=meaning.reason,
        next_step=meaning.next_step,
        expected="the upstream tests pass, in Windows containers" if meaning.outcome == "failed" else "",
        observed=meaning.observed,
        duration_s=round(sum(result.seconds for result in mine), 3),
        verifier="upstream",
        evidence=evidence,
    )


class Meaning(NamedTuple):
    """What test results say about a requirement."""

    outcome: Outcome
    reason: str
    next_step: str = ""
    observed: str = ""
    shown: str = "nothing"
    """How much of the requirement the tests have shown."""


def _meaning(planned: Planned, prepared: Prepared, mine: list[Result]) -> Meaning:
    excused = ""
    for result in mine:
        if result.status != "failed":
            continue
        words = f"the upstream test {result.text!r} failed: {_headline(result.message)}"
        if not (excuse := prepared.table.tests[result.name].excuse):
            return Meaning("failed", words, f"its output is in {result.log}", bounded(result.message))
        excused = f"{words} That need not be the cluster's fault: {excuse}"
    impostors = [pod.impostor for result in mine for pod in result.pods if pod.impostor]
    if impostors:
        step = "look at the container runtime and at webhooks that set a runtimeClass on that node"
        return Meaning("failed", impostors[0], step)
    if excused:
        return Meaning("blocked", excused, "--engine native, or both, judges it by winready's own check")
    skipped = [_skip(result, prepared) for result in mine if result.status == "skipped"]
    if skipped and (planned.upstream_full or len(skipped) == len(mine)):
        return Meaning("blocked", skipped[0], "meet what it asks for, or use --engine native")
    mine = [result for result in mine if result.status != "skipped"]
    for result in mine:
        match result.status:
            case "unfinished":
                reason = f"the upstream test {result.text!r} did not finish: {result.message}"
                return Meaning("blocked", reason, f"its output is in {result.log}" if result.log else "run again")
            case "crashed":
                step = f"all it said is in {result.log}"
                return Meaning("error", f"the upstream test {result.text!r} gave no result: {result.message}", step)
        if objection := _objection(result, prepared):
            step = "look at the pods in the evidence; --engine native places its own"
            return Meaning("blocked", objection, step)
    if planned.upstream_full:
        nodes = sorted({pod.fact.node for result in mine for pod in result.pods if pod.fact.build})
        return Meaning("passed", f"shown by upstream tests on {', '.join(nodes)}", shown="all")
    open_points = "; ".join([*planned.unproven, *skipped])
    reason = f"upstream tests show a part of it only ({len(mine)} passed). Unproven: {open_points}"
    return Meaning("blocked", reason, "--engine both lets winready's own check complete it", shown="a part")


def _skip(result: Result, prepared: Prepared) -> str:
    why = result.message.partition("\n")[0] or prepared.table.tests[result.name].skips or "no reason given"
    return f"the upstream test {result.text!r} skipped itself: {bounded(why, 300)}"


def _objection(result: Result, prepared: Prepared) -> str:
    """Why a test that passed proves nothing about Windows; empty when it does."""
    test = prepared.table.tests[result.name]
    if test.placement == "anywhere":
        return ""
    astray = [pod for pod in result.pods if pod.fact.os != "windows" and not pod.host_network]
    if test.placement == "steered" and not test.linux_pods and astray:
        where = ", ".join(sorted({f"{pod.fact.name} on {pod.fact.node}" for pod in astray})[:3])
        return f"the upstream test {result.text!r} passed with pods on Linux nodes ({where})"
    windows = [pod for pod in result.pods if pod.fact.os == "windows"]
    if not windows:
        seen = "none of its pods was seen" if not result.pods else "none of its pods ran on a Windows node"
        return f"the upstream test {result.text!r} passed, but {seen}"
    if not any(pod.fact.build for pod in windows):
        return f"the upstream test {result.text!r} passed, but none of its containers could be shown to be Windows"
    return ""


def _evidence(results: Iterable[Result], prepared: Prepared, shown: str) -> Evidence:
    evidence = Evidence()
    program = f"e2e.test {prepared.binary.full_version}"
    for result in results:
        for pod in result.pods:
            evidence.pod(pod.fact)
        evidence.probe(
            Probe(
                title=result.text,
                ok=result.status == "passed",
                target=program,
                expected="passed",
                observed=bounded(f"{result.status}\n{result.message}".strip()),
                seconds=round(result.seconds, 3),
            )
        )
    evidence.fact("upstream", {"program": program, "steering": prepared.steering or "none", "shown": shown})
    return evidence


def combine(native: RequirementResult, upstream: RequirementResult) -> RequirementResult:
    """One result of two verifiers. They must agree; what upstream cannot judge is left to the native check."""
    outcomes = (native.outcome, upstream.outcome)
    in_part = native.outcome == "passed" and upstream.evidence.facts.get("upstream", {}).get("shown") == "a part"
    agreement = "agree" if native.outcome == upstream.outcome else "agree in part" if in_part else "native only"
    outcome, reason, step = native.outcome, native.reason, native.next_step
    if "failed" in outcomes and "passed" in outcomes:
        agreement, outcome = "disagree", "failed"
        loser = native if native.outcome == "failed" else upstream
        reason = f"the two verifiers disagree: winready's check {native.outcome}, upstream {upstream.outcome}"
        reason, step = f"{reason}. {loser.reason}", loser.next_step
    elif upstream.outcome == "failed":
        agreement, outcome, reason, step = "upstream only", "failed", upstream.reason, upstream.next_step
    elif upstream.outcome == "error" and native.outcome == "passed":
        agreement, outcome, reason, step = "native only", "error", upstream.reason, upstream.next_step
    facts: dict[str, Any] = {
        **native.evidence.facts,
        **upstream.evidence.facts,
        "agreement": {"verdict": agreement, "native": native.outcome, "upstream": upstream.outcome},
    }
    if upstream.outcome != "passed":
        facts["agreement"]["upstream_reason"] = upstream.reason
    evidence = Evidence(
        pods=[*native.evidence.pods, *upstream.evidence.pods],
        probes=[*native.evidence.probes, *upstream.evidence.probes],
        facts=facts,
        dropped_probes=native.evidence.dropped_probes,
    )
    if outcome == "passed" and agreement == "agree":
        reason = f"{native.reason}; upstream tests agree"
    elif outcome == "passed" and agreement == "agree in part":
        reason = f"{native.reason}; upstream tests agree as far as they reach"
    elif outcome == "passed":
        reason = f"{native.reason}; upstream does not judge it ({upstream.reason.partition('. Unproven')[0]})"
    return msgspec.structs.replace(
        native,
        outcome=outcome,
        reason=reason,
        next_step=step,
        observed=native.observed or upstream.observed,
        duration_s=round(native.duration_s + upstream.duration_s, 3),
        verifier="both",
        evidence=evidence,
    )


def _headline(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return bounded(lines[0], 300) if lines else "no message"
