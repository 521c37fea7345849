"""How a check ends, and what outcome that is: no evidence, no pass."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import pytest

from engine.stage import BY_ADDRESS, STANDARD, a_check, raises
from winready.checks.context import Context
from winready.checks.registry import CheckFunction
from winready.checks.world import World
from winready.cluster.client import Client
from winready.cluster.errors import ClusterError, ConnectionFailed
from winready.cluster.evidence import Evidence, PodFact, Probe
from winready.cluster.failures import CheckBlocked, CheckFailed, NotApplicable
from winready.cluster.inventory import Inventory
from winready.cluster.kubeconfig import Target
from winready.cluster.settings import Settings
from winready.cluster.transport import Transport
from winready.engine.checking import LOOK_AT_API, REPORT_IT, judge_requirement, own_failure
from winready.engine.outcomes import Outcome, RequirementResult, unproven
from winready.engine.plan import Planned

WINDOWS = PodFact(namespace="n", name="wc-1", uid="1", node="windows-1", os="windows", build="10.0.20348")
UNASKED = PodFact(namespace="n", name="wc-2", uid="2", node="windows-2", os="windows")
LINUX = PodFact(namespace="n", name="lc-1", uid="3", node="linux-1", os="linux", build="6.1")
RIGHT, WRONG = Probe(title="it answers", ok=True), Probe(title="it answers", ok=False)


def judged(run: CheckFunction) -> RequirementResult:
    inventory = Inventory(server="https://x", version="v1.36.0", nodes=[], features={}, missing={})

    async def story() -> RequirementResult:
        client = Client(Transport(Target("https://x")))
        world = World(client, inventory, Settings(run_id="test"), [], [])
        item = STANDARD.requirement(BY_ADDRESS)
        planned = Planned(id=item.id, category=item.category, level="core", action="run", verifier="native")
        return await judge_requirement(a_check(BY_ADDRESS, run), planned, world)

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("error", "outcome", "reason", "next_step"),
    [
        (CheckFailed("it does not answer", next_step="look there"), "failed", "it does not answer", "look there"),
        (CheckBlocked("no pod starts", next_step="look there"), "blocked", "no pod starts", "look there"),
        (NotApplicable("it has no such thing"), "not-applicable", "it has no such thing", ""),
        (ConnectionFailed("the API is away"), "error", "the API is away", LOOK_AT_API),
        (ClusterError("a right is missing", "get it"), "error", "a right is missing", "get it"),
        (KeyError("x"), "error", "winready itself failed: KeyError: 'x'", REPORT_IT),
        (ExceptionGroup("two", [OSError("a"), OSError("b")]), "error", "winready itself failed: OSError: a", REPORT_IT),
    ],
)
def test_every_way_to_end_is_an_outcome(error: Exception, outcome: Outcome, reason: str, next_step: str) -> None:
    result = judged(raises(error))
    assert (result.outcome, result.reason, result.next_step) == (outcome, reason, next_step)
    assert (result.id, result.category, result.level, result.verifier) == (BY_ADDRESS, "Core.Network", "core", "native")


def test_a_failure_says_what_was_expected_and_what_was_seen() -> None:
    result = judged(raises(CheckFailed("it does not answer", expected="an answer", observed="silence")))
    assert (result.expected, result.observed) == ("an answer", "silence")


def test_a_failure_whose_observation_is_its_expectation_is_our_bug() -> None:
    result = judged(raises(CheckFailed("it does not answer", expected="10 of 10", observed="10 of 10 ")))
    assert (result.outcome, result.next_step) == ("error", REPORT_IT)
    assert "what was seen is what was expected: it does not answer" in result.reason
    assert judged(raises(CheckFailed("it does not answer"))).outcome == "failed"


def test_a_bug_leaves_its_traceback_as_evidence_and_keeps_what_was_found_before() -> None:
    async def run(ctx: Context) -> None:
        ctx.evidence.probe(RIGHT)
        ctx.evidence.saw([WINDOWS])
        raise ValueError("a bug")

    result = judged(run)
    assert re.search(r'File ".*test_checking.py", line \d+, in run', result.evidence.facts["traceback"])
    assert "ValueError: a bug" in result.evidence.facts["traceback"]
    assert (result.evidence.probes, result.evidence.pods) == ([RIGHT], [WINDOWS])


def test_a_check_that_is_given_up_has_no_outcome() -> None:
    with pytest.raises(asyncio.CancelledError):
        judged(raises(asyncio.CancelledError()))


@pytest.mark.parametrize(
    ("probes", "pods", "lack"),
    [
        ([], [], "no answer of the cluster is recorded"),
        ([], [WINDOWS], "no answer of the cluster is recorded"),
        ([WRONG], [WINDOWS], "no answer of the cluster is recorded"),
        ([RIGHT], [], "no proof that a Windows container took part"),
        ([RIGHT], [LINUX], "no proof that a Windows container took part"),
        ([RIGHT], [UNASKED], "no proof that a Windows container took part"),
    ],
)
def test_a_check_that_ends_well_without_evidence_is_in_error(
    probes: Sequence[Probe], pods: Sequence[PodFact], lack: str
) -> None:
    result = judged(_with(probes, pods))
    assert (result.outcome, result.reason, result.next_step) == ("error", f"the check ended with {lack}", REPORT_IT)
    claimed = RequirementResult(
        id="x",
        category="c",
        level="core",
        outcome="passed",
        reason="",
        evidence=Evidence(probes=list(probes), pods=list(pods)),
    )
    assert unproven(claimed) == lack


def test_a_check_with_evidence_passes_and_says_where_it_was_shown() -> None:
    result = judged(_with([WRONG, RIGHT], [LINUX, UNASKED, WINDOWS]))
    assert (result.outcome, result.reason) == ("passed", "shown on windows-1")
    assert unproven(result) == ""


@pytest.mark.parametrize("outcome", ["failed", "blocked", "not-applicable", "error"])
def test_only_a_pass_needs_proof(outcome: Outcome) -> None:
    assert unproven(RequirementResult(id="x", category="c", level="core", outcome=outcome, reason="")) == ""


def test_of_several_bugs_the_first_is_named() -> None:
    nested = BaseExceptionGroup("all", [ExceptionGroup("some", [ValueError("first")]), OSError("second")])
    assert own_failure(nested) == "winready itself failed: ValueError: first"


def _with(probes: Sequence[Probe], pods: Sequence[PodFact]) -> CheckFunction:
    async def run(ctx: Context) -> None:
        for probe in probes:
            ctx.evidence.probe(probe)
        for pod in pods:
            ctx.evidence.saw([pod])

    return run
