"""Runs as records, made up: small ones, whole ones, and hostile ones."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from winready.cluster.evidence import PROBE_LIMIT, Evidence, PodFact, Probe
from winready.cluster.images import repository
from winready.cluster.inventory import Inventory, Node
from winready.cluster.settings import AGNHOST, PAUSE
from winready.engine import events
from winready.engine.facts import gather
from winready.engine.journal import Journal
from winready.engine.outcomes import FeatureResult, Outcome, RequirementResult, RuleResult
from winready.engine.plan import Plan, Planned
from winready.engine.rules import judge_rules
from winready.engine.selection import Selection
from winready.engine.sights import ImageSeen, Sights
from winready.engine.terms import SMALL_CLUSTER, Terms
from winready.engine.verdict import judge
from winready.engine.workloads import FeatureUse, WorkloadResult
from winready.proof.conformance import conformance_result
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
        found.saw(
            [
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
            ]
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


def feature(feature_id: str, outcome: Outcome = "passed", *, works: bool | None = True, **more: Any) -> FeatureResult:
    """A feature that was to be shown."""
    given: dict[str, Any] = {
        "name": f"The feature {feature_id}",
        "area": "Pods",
        "reason": f"{feature_id} was seen",
        "way": "check",
        "support": "yes",
        "documented": "supported since 1.22",
        "evidence": evidence(probes=1, bad=int(outcome == "failed")),
        **more,
    }
    return FeatureResult(id=feature_id, outcome=outcome, works=works, **given)


def workload(name: str, outcome: Outcome = "passed", *, path: str = "a.yaml") -> WorkloadResult:
    """A workload that relies on probes."""
    use = FeatureUse(id="probes", outcome=outcome, reason=f"probes {outcome}", path=path, line=7, field="spec.x")
    return WorkloadResult(
        kind="Deployment",
        namespace="shop",
        name=name,
        path=path,
        line=1,
        ready=outcome == "passed",
        outcome=outcome,
        features=[use],
    )


def inventory(
    server: str = "https://cluster.example:6443", uid: str = "", windows: int = 2, linux: int = 2
) -> Inventory:
    """Two Linux and two Windows nodes, or fewer."""
    nodes = [
        Node(
            name=f"{os}-{number}",
            uid=f"{server}-{os}-{number}",
            os=os,
            build="10.0.20348" if os == "windows" else "6.8.0",
            addresses=[f"10.250.0.{number + (2 if os == 'windows' else 0)}"],
        )
        for os, most in (("linux", linux), ("windows", windows))
        for number in range(1, most + 1)
    ]
    return Inventory(server=server, version="v1.36.0", nodes=nodes, features={}, missing={"gmsa": "none"}, uid=uid)


def terms(*, conformance: bool = True, waived: bool = False) -> Terms:
    """What an operator decided."""
    return Terms(
        conformance=conformance_result() if conformance else None,
        waived=[SMALL_CLUSTER] if waived else [],
    ).stated([repository(image) for image in (AGNHOST, PAUSE)])


def sights() -> Sights:
    """Pods of two nodes that run what they should."""
    pods = [
        ImageSeen(pod=f"winready-r-0/wc-{node}", node=f"windows-{node}", image=AGNHOST, digest="sha256:1")
        for node in (1, 2)
    ]
    return Sights(namespaces=["winready-r-0"], images=pods)


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
    waived: bool = False,
    left_out: Mapping[str, str] | None = None,
    features: Iterable[FeatureResult] = (),
    workloads: Iterable[WorkloadResult] = (),
    interrupted: bool = False,
) -> list[events.AnyEvent]:
    """The events of a whole run; its rules are judged by its facts unless they are given."""
    outcomes = outcomes or {}
    if results is None:
        results = [result(name, outcomes.get(name, "passed"), number=n) for n, name in enumerate(ids)]
    results = list(results)
    selection = Selection(requirements=[item.id for item in results] if len(results) < len(CORE) else [])
    found = found or inventory()
    plan = Plan(
        windows_nodes=[node.name for node in found.usable("windows") if node.name not in (left_out or {})],
        linux_nodes=["linux-1", "linux-2"],
        nodes_left_out=dict(left_out or {}),
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
    told: list[events.AnyEvent] = [
        events.RunStarted(
            at_s=0.0,
            run_id=run_id,
            time=f"{day}T{clock}+00:00",
            tool="winready 0.1.0",
            spec_version="1.0",
            spec_digest=digest,
            selection=selection,
            settings={"time_scale": 1.0, "air_gapped": False, "sandbox": False, "nodes": 10, **(settings or {})},
            requirements=[item.id for item in STANDARD.requirements if item.id in {result.id for result in results}],
            terms=terms(conformance=conformance, waived=waived),
        ),
        events.InventoryTaken(at_s=0.1, inventory=found),
        events.PlanMade(at_s=0.1, plan=plan),
        events.FixtureReady(at_s=1.0, name="servers", seconds=0.9, windows_pods=4),
        events.PodsSeen(at_s=4.0, sights=sights()),
        *(events.RequirementFinished(at_s=4.0, result=item) for item in results),
        *(events.FeatureFinished(at_s=4.0, result=item) for item in features),
        *(events.WorkloadJudged(at_s=4.0, result=item) for item in workloads),
    ]
    facts = gather(told)
    judged = list(rules) if rules is not None else judge_rules(STANDARD, facts, results)
    verdict = judge(STANDARD, results, judged, coverage=facts.coverage, interrupted=interrupted)
    return [
        *told,
        *(events.RuleJudged(at_s=9.0, result=item) for item in judged),
        events.CleanedUp(at_s=9.0, leftovers=[], seconds=1.0),
        events.RunFinished(at_s=9.0, verdict=verdict, windows_pods=4),
    ]


def judged(happened: Sequence[events.AnyEvent], count: int) -> int:
    """How many events lead up to that many outcomes."""
    ends = [number for number, event in enumerate(happened, 1) if isinstance(event, events.RequirementFinished)]
    return ends[count - 1]


def make_record(**given: Any) -> Record:
    """The record of a run with these events."""
    return record.from_events(run_events(**given))


@contextmanager
def written_journal(folder: Path) -> Iterator[Journal]:
    """A journal that is being written."""
    journal = Journal(folder)
    journal.start()
    try:
        yield journal
    finally:
        journal.close()


def write_run(base: Path, run_id: str = "261101-101500-ab12", **given: Any) -> Path:
    """A whole run folder, as ``winready run`` leaves it."""
    folder = base / run_id
    folder.mkdir(parents=True)
    happened = run_events(run_id, **given)
    with written_journal(folder) as journal:
        for event in happened:
            journal.handle(event)
    made = record.from_events(happened)
    record.write(made, folder)
    (folder / junit.NAME).write_text(junit.render(made))
    (folder / page.NAME).write_text(page.render(made))
    return folder


def many_outcomes(seed: int) -> dict[str, Outcome]:
    """Mostly passed, as in real life."""
    chance = random.Random(seed)
    kinds: list[Outcome] = ["passed", "failed", "blocked", "not-applicable"]
    return {name: chance.choices(kinds, weights=(22, 1, 1, 1))[0] for name in ALL}


def crowd(windows: int, *, ids: Iterable[str] = CORE, broken: Collection[str] = (), linux: int = 4) -> Record:
    """A run over many Windows nodes, with as much evidence as a run keeps; the broken ones answer nobody."""
    found = inventory(windows=windows, linux=linux)
    names = [node.name for node in found.nodes if node.windows]
    results = []
    for number, name in enumerate(ids):
        seen = Evidence()
        seen.saw(PodFact(**_pod(kind, number, node)) for node in names for kind in ("wc", "ws"))
        for index in range(PROBE_LIMIT):
            asker, asked = names[index % windows], names[(index * 7 + number) % windows]
            bad = asked in broken
            address = _address(asked)
            seen.probe(
                Probe(
                    title=f"wc-{asker.removeprefix('windows-')} reaches ws-{asked.removeprefix('windows-')}",
                    ok=not bad,
                    pod=f"winready-r-fx/wc-{asker.removeprefix('windows-')}",
                    node=asker,
                    target=f"{address}:8080",
                    command=["curl.exe", "-g", "-s", "-S", f"http://127.0.0.1:8080/dial?host={address}&" + "x" * 600],
                    expected=f"an answer from ws-{asked.removeprefix('windows-')}",
                    observed="curl: (28) timed out"
                    if bad
                    else f"ws-{asked.removeprefix('windows-')} answered 10 times",
                    at_s=index / 50,
                    seconds=0.3,
                )
            )
        for node in names:
            seen.fact(f"addresses on {node}", [_address(node)])
        failed = any(not probe.ok for probe in seen.probes)
        reason = f"{min(broken)} does not answer" if failed else f"shown on {', '.join(names)}"
        step = f"look at node {min(broken)}" if failed else ""
        results.append(result(name, "failed" if failed else "passed", reason=reason, next_step=step, found=seen))
    return make_record(results=results, found=found, settings={"nodes": "all"})


def _address(node: str) -> str:
    number = int(node.rpartition("-")[2])
    return f"10.{100 + number // 250}.{number % 250}.7"


def _pod(kind: str, number: int, node: str) -> dict[str, Any]:
    name = f"{kind}-{node.rpartition('-')[2]}"
    return {
        "namespace": "winready-r-fx",
        "name": name,
        "uid": f"{number}-{name}",
        "node": node,
        "os": "windows",
        "build": "10.0.20348",
        "node_build": "10.0.20348",
        "image": AGNHOST,
        "image_id": f"{repository(AGNHOST)}@sha256:{'0' * 64}",
        "addresses": [_address(node)] if kind == "ws" else [],
    }
