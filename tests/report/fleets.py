"""A made-up fleet: clusters that are upgraded, break, are repaired, waver and are forgotten, over many months."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from report import samples
from winready.cluster.inventory import Inventory
from winready.engine.outcomes import Outcome, RequirementResult
from winready.report import record

PLACES = ("eu-west", "eu-north", "us-east", "us-central", "ap-south", "sa-east")
USES = ("shop", "billing", "build", "stage", "edge", "labs", "iis")
VERSIONS = ("v1.33.4", "v1.34.2", "v1.35.1", "v1.36.0")
BUILDS = ("10.0.20348", "10.0.17763", "10.0.20348")
NEWER = "10.0.26100"
"""Which the published list of the standard does not have."""
REASONS = {
    "core.network.dns-external": "the name example.com has no address for pods on {node}",
    "core.network.dns-internal": "{node} resolves no name of a service: its DNS client asks an address of another node",
    "core.storage.shared-files": "what a pod on {node} wrote is not there for the next one",
}


@dataclass
class Member:
    """A cluster and how it behaves."""

    found: Inventory
    wavering: str
    """A requirement that passes and fails in turns."""
    broken: list[str]
    trouble: tuple[int, int]
    """From which to which of its runs these fail."""
    sandbox: bool
    newer: bool
    """Whether its nodes run a build that the standard does not list."""
    partial: float
    """How often a run is only a part."""


def write_fleet(base: Path, *, clusters: int = 40, runs: int = 2000, until: datetime | None = None) -> None:
    """So many runs of so many clusters, the last of them shortly before ``until``."""
    base.mkdir(parents=True, exist_ok=True)
    for name, made in fleet(clusters, runs, until or datetime(2026, 11, 17, 6)):
        (base / name).mkdir()
        (base / name / record.NAME).write_bytes(msgspec.json.encode(made))


def fleet(clusters: int, runs: int, until: datetime) -> Iterator[tuple[str, record.Record]]:
    """The runs, a cluster after the other."""
    found = samples.evidence(probes=1)
    passed = {name: samples.result(name, found=found) for name in samples.ALL}
    for number in range(clusters):
        chance = random.Random(number)
        count = runs // clusters + (number < runs % clusters)
        member = _member(number, chance, count)
        step = timedelta(days=365 / max(count, 1))
        # Some were forgotten: nobody looked at them for weeks.
        last = until - timedelta(days=chance.choice((0, 0, 0, 0, 0, 1, 2, 45)), minutes=number)
        for place in range(count):
            at = last - step * (count - 1 - place)
            name = f"{at:%y%m%d-%H%M%S}-{number:02x}{place % 256:02x}"
            yield name, _run(name, member, place, count, passed, chance)


def _member(number: int, chance: random.Random, count: int) -> Member:
    use, place = USES[number % len(USES)], PLACES[number % len(PLACES)]
    begin = chance.choice((0, count // 3, count // 2, count - 2, count * 2, count * 2, count * 2))
    end = begin + max(count // 8, 2)
    return Member(
        found=samples.inventory(f"https://{use}-{place}-{number:02}.example:6443", uid=f"uid-{number:04}"),
        wavering=chance.choice(("core.network.dns-external", "core.storage.shared-files", "", "", "", "")),
        broken=chance.sample(samples.CORE, chance.choice((1, 1, 2, 6))),
        trouble=(begin, end),
        sandbox=number == 18,
        newer=number % 17 == 6,
        partial=0.3 if number % 11 == 5 else 0.03,
    )


def _run(
    name: str, member: Member, place: int, count: int, passed: dict[str, RequirementResult], chance: random.Random
) -> record.Record:
    version = VERSIONS[min(place * len(VERSIONS) // max(count, 1), len(VERSIONS) - 1)]
    build = NEWER if member.newer else BUILDS[sum(member.found.uid.encode()) % len(BUILDS)]
    nodes = [msgspec.structs.replace(node, build=build if node.windows else node.build) for node in member.found.nodes]
    found = msgspec.structs.replace(member.found, version=version, nodes=nodes)
    bad: dict[str, Outcome] = dict.fromkeys(member.broken, "failed") if place in range(*member.trouble) else {}
    if member.wavering and chance.random() < 0.35:
        bad[member.wavering] = "failed"
    for item in chance.choices(samples.ALL, k=chance.choice((0, 0, 0, 0, 1))):
        bad.setdefault(item, chance.choice(("failed", "blocked", "error", "blocked")))
    bad |= {item: "not-applicable" for item in samples.ALL if item.startswith("extend.activedirectory")}
    ids = samples.ALL if chance.random() > member.partial else chance.sample(samples.CORE, 9)
    results = [_result(item, bad.get(item, "passed"), passed) for item in samples.ALL if item in ids]
    settings = {"sandbox": True} if member.sandbox else {}
    interrupted = chance.random() < 0.01
    return samples.make_record(
        run_id=name, results=results, found=found, settings=settings, interrupted=interrupted, conformance=False
    )


def _result(item: str, outcome: Outcome, passed: dict[str, RequirementResult]) -> RequirementResult:
    if outcome == "passed":
        return passed[item]
    reason = REASONS.get(item, f"{item.rpartition('.')[2]} did not come about on {{node}}").format(node="windows-2")
    return msgspec.structs.replace(passed[item], outcome=outcome, reason=reason, next_step="look at node windows-2")
