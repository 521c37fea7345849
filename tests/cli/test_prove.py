"""`winready sandbox prove`: what counts as noticed, missed and a false alarm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from click.testing import CliRunner

from winready.cli.proof import HEALTHY, _conformance, compare, selection
from winready.cli.prove import prove
from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.engine.rules.conformance import judge_conformance
from winready.report.record import Record
from winready_sandbox.faults import ids as r
from winready_sandbox.faults.table import find

FAULT = find("volumes.windows.read-only")


def record(**outcomes: Outcome) -> Record:
    """What a run came to; everything that is not named passed."""
    found = Record()
    for short in ("S1", "S2", "S3", "S4", "N1"):
        outcome = outcomes.get(short, "passed")
        found.requirements.append(
            RequirementResult(
                id=getattr(r, short), category="c", level="core", outcome=outcome, reason="pod x on node windows-1"
            )
        )
    found.rules.append(RuleResult(id=r.IMAGES, outcome=outcomes.get("IMAGES", "passed"), reason="", gates="run"))
    return found


def test_what_must_fail_has_failed_and_names_the_node() -> None:
    good = compare(FAULT, "windows-1", record(S1="failed", S2="failed", S4="failed", S3="blocked"))
    assert (good.missed, good.false_alarms) == ([], [])
    assert "noticed by  3" in good.line()
    elsewhere = compare(FAULT, "windows-2", record(S1="failed", S2="failed", S4="failed"))
    assert elsewhere.missed == [r.S1, r.S2, r.S4]


def test_blocked_or_in_error_counts_as_missed() -> None:
    proof = compare(FAULT, "windows-1", record(S1="blocked", S2="error", S4="failed"))
    assert proof.missed == [r.S1, r.S2]
    assert f"MISSED {r.S1}: blocked: pod x" in proof.line()


def test_whatever_else_does_not_pass_is_a_false_alarm() -> None:
    proof = compare(FAULT, "windows-1", record(S1="failed", S2="failed", S4="failed", N1="blocked", IMAGES="failed"))
    assert proof.false_alarms == [r.N1, r.IMAGES]
    healthy = compare(None, "", record(S3="failed"))
    assert (healthy.name, healthy.false_alarms) == (HEALTHY, [r.S3])


def test_long_observations_run_where_they_are_at_stake() -> None:
    assert r.S6 in selection(FAULT, [], False).skip
    assert r.S6 not in selection(FAULT, [], True).skip
    assert r.S6 not in selection(None, [], False).skip
    assert r.S6 not in selection(find("node.windows.never-returns"), [], False).skip


def test_a_fault_is_proven_from_start_to_verdict() -> None:
    result = CliRunner().invoke(
        prove, ["--category", "core.network", "--fault", "dns.windows.no-search-path", "-ojson"]
    )
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["missed"], document["false_alarms"]) == (0, 0)
    (proof,) = document["faults"]
    assert proof["node"] == "windows-1"
    assert {name for name, outcome in proof["outcomes"].items() if outcome == "failed"} == set(proof["declared"])


def test_linux_conformance_is_imported_from_a_result_that_shows_the_fault() -> None:
    assert judge_conformance(_conformance(FAULT))[0] == "passed"
    broken = find("volumes.linux.updates-never-arrive")
    outcome, reason = judge_conformance(_conformance(broken))
    assert outcome == "failed"
    assert broken.conformance[0] in reason


def test_a_pod_that_cannot_start_on_a_node_with_linux_containers_has_failed() -> None:
    arguments = ["--category", "core.storage", "--fault", "lcow.windows-pods-run-linux", "-o", "json"]
    result = CliRunner().invoke(prove, arguments)
    assert result.exit_code == 0, result.output
    outcomes = json.loads(result.stdout)["faults"][0]["outcomes"]
    assert outcomes[r.S1] == outcomes[r.S4] == outcomes[r.S5] == "failed"


def test_a_fault_that_nothing_verifies_is_no_proof() -> None:
    result = CliRunner().invoke(prove, ["--category", "core.storage", "--fault", "dns.windows.no-search-path"])
    assert result.exit_code == 2
    assert "dns.windows.no-search-path" in result.output


def test_a_killed_command_leaves_no_process_behind() -> None:
    command = [sys.executable, "-m", "winready", "sandbox", "prove", "--category", "core.storage", "--parallel", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    for _ in range(3000):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("workers go on for nobody")
