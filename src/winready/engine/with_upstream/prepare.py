"""What e2e.test is to verify: the tests that it has, compared with the cluster and with the mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from winready.cluster.client import Client
from winready.cluster.inventory import Inventory
from winready.cluster.steering import served_version
from winready.cluster.steering_webhook import in_force
from winready.engine import defaults
from winready.engine.plan import Assignment
from winready.spec.versions import Version
from winready.upstream.binary import Binary, list_specs, misfit
from winready.upstream.drift import Finding, compare
from winready.upstream.foreign import Case, resolve
from winready.upstream.listing import Listing
from winready.upstream.mapping import Mapping, load_mapping
from winready.upstream.shards import Selected

Steering = Literal["policy", "webhook", "taint", ""]


@dataclass(frozen=True)
class UpstreamOptions:
    """What the operator decided about e2e.test."""

    binary: Binary
    folder: Path
    """Where its output and reports go."""
    provider: str = defaults.PROVIDER
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
    table: Mapping
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

    def usable(self, names: Iterable[str]) -> list[str]:
        """These tests, if all of them can be run here and judge Windows; otherwise none."""
        wanted = list(names)
        table = self.table
        fit = (
            name in table.tests
            and table.usable(name, self.version, proving=True)
            and not self.findings[name].drifted
            and (bool(self.steering) or table.tests[name].placement != "steered")
            for name in wanted
        )
        return wanted if not self.refusal and all(fit) else []

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
                remedy = "put 'winready steer serve' into force, or allow a taint on the Linux nodes (--steer-by-taint)"
                return Assignment(refused=reason, next_step=remedy)
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
    steering: Steering = "taint" if options.steer_by_taint else "policy" if served else ""
    if not steering and await in_force(client):
        steering = "webhook"
    return Prepared(
        options=options,
        binary=binary,
        table=table,
        findings={finding.test: finding for finding in compare(table, listing, version)},
        version=version,
        steering=steering,
        policy_version=served or "",
        refusal=misfit(binary, cluster),
        complaints=complaints,
    )
