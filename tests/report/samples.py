"""Runs as records, made up: small ones, whole ones, and hostile ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from winready.cluster.evidence import Evidence, PodFact, Probe
from winready.cluster.inventory import Inventory, Node
from winready.engine import events
from winready.engine.journal import Journal
from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.engine.plan import Plan, Planned
from winready.engine.selection import Selection
from winready.engine.verdict import judge
from winready.report import junit, record
from winready.report.html import page
from winready.report.record import Record
from winready.spec.loader import load_standard

STANDARD = load_standard()
CORE = [item.id for item in STANDARD.requirements if STANDARD.level(item) == "core"]
ALL = [item.id for item in STANDARD.requirements]


def evidence(number: int = 0, probes: int = 2, *, bad: int = 0, text: str = "ws-1") -> Evidence:
    """Questions and answers from two Windows nodes."""
    found = Evidence()
    for node in (1, 2):
        found.pod(
            PodFact(
                namespace=f"winready-r-{number}",
                name=f"wc-{node}",
                uid=f"u-{number}-{node}",
                node=f"windows-{node}",
                os="windows",
                build="10.0.20348",
                node_build="10.0.20348",
                addresses=[f"10.244.{node + 3}.7"],
            )
        )
    for index in range(probes):
        node = index % 2 + 1
        ok = index >= bad
        found.probe(
            Probe(
                title=f"wc-{node} reaches ws-{index}",
                ok=ok,
                pod=f"winready-r-{number}/wc-{node}",
                node=f"windows-{node}",
                target=f"10.244.{5 - node % 2}.7:8080",
                command=["curl", "-s", "http://10.244.4.7:8080/host name"],
                expected="ws-1",
                observed=text if ok else "curl: (28) Connection timed out",
                exit_code=0 if ok else 28,
                at_s=1.0 + index / 10,
                seconds=0.2,
            )
        )
    return found


def result(
    requirement_id: str,
    outcome: Outcome = "passed",
    *,
    reason: str = "",
    found: Evidence | None = None,
    number: int = 0,
    next_step: str = "look at node windows-1",
) -> RequirementResult:
    """A finished requirement."""
    item = STANDARD.requirement(requirement_id)
    failed = outcome == "failed"
    return RequirementResult(
        id=item.id,
        category=item.category,
        level=STANDARD.level(item),
        outcome=outcome,
        reason=reason or ("shown on windows-1, windows-2" if outcome == "passed" else f"{item.key} went wrong"),
        next_step="" if outcome == "passed" else next_step,
        expected="an answer" if failed else "",
        observed="silence" if failed else "",
        duration_s=3.0 + number / 10,
        started_s=0.1,
        verifier="native",
        evidence=found if found is not None else evidence(number, bad=1 if failed else 0),
    )


def inventory(server: str = "https://cluster.example:6443", uid: str = "") -> Inventory:
    """Two Linux and two Windows nodes."""
    nodes = [
        Node(
            name=f"{os}-{number}",
            uid=f"{server}-{os}-{number}",
            os=os,
            build="10.0.20348" if os == "windows" else "6.8.0",
            addresses=[f"10.250.0.{number + (2 if os == 'windows' else 0)}"],
        )
        for os in ("linux", "windows")
        for number in (1, 2)
    ]
    return Inventory(server=server, version="v1.36.0", nodes=nodes, features={}, missing={"gmsa": "none"}, uid=uid)


def rule_results(*changed: RuleResult, conformance: bool = True) -> list[RuleResult]:
    """Every rule of the standard, passed but for those given."""
    if not conformance:
        absent = RuleResult(id="rule.linux-conformance", outcome="blocked", reason="absent", gates="certificate")
        changed = (*changed, absent)
    others = {rule.id: rule for rule in changed}
    return [
        others.get(rule.id) or RuleResult(id=rule.id, outcome="passed", reason="as it should be", gates=rule.gates)
        for rule in STANDARD.rules
    ]


def run_events(
    run_id: str = "261101-101500-ab12",
    *,
    ids: Iterable[str] = CORE,
    outcomes: Mapping[str, Outcome] | None = None,
    results: Iterable[RequirementResult] | None = None,
    rules: Iterable[RuleResult] | None = None,
    settings: Mapping[str, Any] | None = None,
    digest: str = STANDARD.digest,
    found: Inventory | None = None,
    conformance: bool = True,
) -> list[events.AnyEvent]:
    """The events of a whole run."""
    outcomes = outcomes or {}
    if results is None:
        results = [result(name, outcomes.get(name, "passed"), number=n) for n, name in enumerate(ids)]
    results = list(results)
    rules = list(rules if rules is not None else rule_results(conformance=conformance))
    selection = Selection(requirements=[item.id for item in results] if len(results) < len(CORE) else [])
    plan = Plan(
        windows_nodes=["windows-1", "windows-2"],
        linux_nodes=["linux-1", "linux-2"],
        nodes_left_out={},
        requirements=[
            Planned(id=item.id, category=item.category, level=item.level, action="run", fixtures=["servers"])
            for item in results
        ],
        fixtures={"servers": 60.0},
        critical_path=[],
        expected_s=60.0,
        windows_pods=4,
    )
    if len(run_id) < 18:
        run_id = "261101-101500-ab12"
    day = f"20{run_id[:2]}-{run_id[2:4]}-{run_id[4:6]}"
    clock = f"{run_id[7:9]}:{run_id[9:11]}:{run_id[11:13]}"
    verdict = judge(STANDARD, results, rules)
    return [
        events.RunStarted(
            at_s=0.0,
            run_id=run_id,
            time=f"{day}T{clock}+00:00",
            tool="winready 0.1.0",
            spec_version="1.0",
            spec_digest=digest,
            selection=selection,
            settings={"time_scale": 1.0, "air_gapped": False, "sandbox": False, **(settings or {})},
        ),
        events.InventoryTaken(at_s=0.1, inventory=found or inventory()),
        events.PlanMade(at_s=0.1, plan=plan),
        events.FixtureReady(at_s=1.0, name="servers", seconds=0.9, windows_pods=4),
        *(events.RequirementFinished(at_s=4.0, result=item) for item in results),
        *(events.RuleJudged(at_s=9.0, result=item) for item in rules),
        events.CleanedUp(at_s=9.0, leftovers=[], seconds=1.0),
        events.RunFinished(at_s=9.0, verdict=verdict, windows_pods=4),
    ]


def make_record(**given: Any) -> Record:
    """The record of a run with these events."""
    return record.from_events(run_events(**given))


def write_run(base: Path, run_id: str = "261101-101500-ab12", **given: Any) -> Path:
    """A whole run folder, as ``winready run`` leaves it."""
    folder = base / run_id
    folder.mkdir(parents=True)
    happened = run_events(run_id, **given)
    with Journal(folder) as journal:
        for event in happened:
            journal.append(event)
    made = record.from_events(happened)
    record.write(made, folder)
    junit.write(made, folder)
    page.write(made, folder)
    return folder


def many_outcomes(seed: int) -> dict[str, Outcome]:
    """Mostly passed, as in real life."""
    chance = random.Random(seed)
    kinds: list[Outcome] = ["passed", "failed", "blocked", "not-applicable"]
    return {name: chance.choices(kinds, weights=(22, 1, 1, 1))[0] for name in ALL}
