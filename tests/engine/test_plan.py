"""The plan: what runs where, what cannot be judged and why, in which order and how long it should take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.stage import BY_ADDRESS, BY_SERVICE, STANDARD
from winready.checks.fixtures import EXPECTED_SECONDS
from winready.checks.registry import Check, load_checks
from winready.cluster.inventory import Inventory, Node
from winready.engine.coverage import cover
from winready.engine.plan import Assignment, Plan, Planned, make_plan
from winready.engine.with_upstream.prepare import Prepared, Steering, UpstreamOptions
from winready.spec.versions import Version
from winready.upstream.binary import Binary, misfit
from winready.upstream.drift import compare
from winready.upstream.listing import Listing, plain
from winready.upstream.mapping import load_mapping

REBOOT = "core.storage.reboot-recovery"
REJOINS = "extend.hostprocess.node-rejoins"
LONGEST = "core.concurrent.reschedule-50"
BOTH_FAMILIES = "extend.network.dual-stack"
RECREATED = "core.network.service-recreated"
NODE_PORT = "core.network.windows-to-linux-nodeport"


def cluster(*, windows: int = 2, linux: int = 2, version: str = "v1.36.0", **given: Any) -> Inventory:
    nodes = [
        Node(name=f"{os}-{number}", uid=f"{os}-{number}", os=os)
        for os, count in (("linux", linux), ("windows", windows))
        for number in range(1, count + 1)
    ]
    return Inventory(server="https://x", version=version, **{"nodes": nodes, "features": {}, "missing": {}, **given})


def plan(*ids: str, found: Inventory | None = None, checks: dict[str, Check] | None = None, **given: Any) -> Plan:
    wanted = [STANDARD.requirement(name) for name in ids]
    table = load_checks() if checks is None else checks
    return make_plan(STANDARD, wanted, found or cluster(), table, EXPECTED_SECONDS, **given)


def planned(requirement: str, **given: Any) -> Planned:
    (item,) = plan(requirement, **given).requirements
    return item


def test_as_many_windows_nodes_are_judged_as_were_asked_for_and_the_others_say_why_not() -> None:
    found = cluster(windows=4)
    two = plan(BY_ADDRESS, found=found, nodes=2)
    assert two.windows_nodes == ["windows-1", "windows-2"]
    why = "only 2 Windows nodes are judged (--nodes)"
    assert two.nodes_left_out == {"windows-3": why, "windows-4": why}
    assert two.linux_nodes == ["linux-1", "linux-2"]
    every = plan(BY_ADDRESS, found=found, nodes=None)
    assert (len(every.windows_nodes), every.nodes_left_out) == (4, {})


def test_two_linux_nodes_are_the_other_side_and_the_rest_is_named() -> None:
    made = plan(BY_ADDRESS, found=cluster(linux=4))
    assert made.linux_nodes == ["linux-1", "linux-2"]
    why = "2 Linux nodes are enough as the other side"
    assert made.nodes_left_out == {"linux-3": why, "linux-4": why}


def node(number: int, *, build: str = "10.0.20348", zone: str = "a", kubelet: str = "v1.36.0", **labels: str) -> Node:
    place = {"topology.kubernetes.io/zone": zone, **{key.replace("_", "."): value for key, value in labels.items()}}
    return Node(name=f"w{number:02}", uid=str(number), os="windows", build=build, kubelet=kubelet, labels=place)


@pytest.mark.parametrize(
    ("nodes", "most", "wanted"),
    [
        # The one node of another build, of another zone, of another pool, of another version: each is among the first.
        ([*(node(n) for n in range(9)), node(9, build="10.0.26100")], 2, {"w00", "w09"}),
        ([*(node(n) for n in range(9)), node(9, zone="b")], 2, {"w00", "w09"}),
        ([*(node(n, agentpool="x") for n in range(9)), node(9, agentpool="y")], 2, {"w00", "w09"}),
        ([*(node(n) for n in range(9)), node(9, kubelet="v1.35.2")], 2, {"w00", "w09"}),
        # Six in two zones and two builds: one of each pair before a second one of any.
        (
            [node(n, zone="ab"[n % 2], build=("10.0.20348", "10.0.26100")[n // 2 % 2]) for n in range(8)],
            4,
            {"w00", "w01", "w02", "w03"},
        ),
        ([node(n) for n in range(4)], 2, {"w00", "w01"}),
    ],
)
def test_the_judged_nodes_are_spread_over_the_cluster(nodes: list[Node], most: int, wanted: set[str]) -> None:
    for order in (nodes, nodes[::-1]):
        made = plan(BY_ADDRESS, found=cluster(nodes=[*cluster(windows=0).nodes, *order]), nodes=most)
        assert made.windows_nodes == sorted(wanted)
        assert len(made.nodes_left_out) == len(nodes) - most


def test_what_a_selector_leaves_out_is_named_with_it() -> None:
    why = "it is not chosen by --node-selector pool=a"
    nodes = [*cluster(windows=1).nodes, Node(name="windows-2", uid="2", os="windows", left_out=why)]
    found = cluster(nodes=nodes)
    made = plan(BY_ADDRESS, found=found)
    assert (made.windows_nodes, made.nodes_left_out) == (["windows-1"], {"windows-2": why})
    coverage = cover(found, made.windows_nodes, made.nodes_left_out, made.linux_nodes)
    assert str(coverage) == "1 of 2 Windows nodes judged, chosen by --node-selector"
    assert coverage.skipped == ["windows-2"]


def test_a_node_that_cannot_be_used_is_not_judged_but_nobody_could_have() -> None:
    nodes = [*cluster(windows=1).nodes, Node(name="windows-0", uid="0", os="windows", unusable="it is cordoned")]
    found = cluster(nodes=nodes)
    made = plan(BY_ADDRESS, found=found)
    coverage = cover(found, made.windows_nodes, made.nodes_left_out, made.linux_nodes)
    assert str(coverage) == "1 of 2 Windows nodes judged"
    assert (coverage.not_judged, coverage.skipped) == ({"windows-0": "it is cordoned"}, [])


def test_linux_nodes_beside_those_that_are_used_are_named_and_not_counted() -> None:
    nodes = [*cluster(linux=3).nodes, Node(name="control", uid="0", os="linux", unusable="it is cordoned")]
    found = cluster(nodes=nodes)
    made = plan(BY_ADDRESS, found=found)
    coverage = cover(found, made.windows_nodes, made.nodes_left_out, made.linux_nodes)
    assert (str(coverage), coverage.not_judged, coverage.skipped) == ("", {}, [])
    assert coverage.linux_not_judged == {
        "linux-3": "2 Linux nodes are enough as the other side",
        "control": "it is cordoned",
    }


def test_a_node_that_cannot_be_used_is_left_out_with_its_reason() -> None:
    nodes = [*cluster(windows=1).nodes, Node(name="windows-0", uid="0", os="windows", unusable="it is cordoned")]
    made = plan(BY_ADDRESS, found=cluster(nodes=nodes))
    assert made.windows_nodes == ["windows-1"]
    assert made.nodes_left_out == {"windows-0": "it is cordoned"}


def test_what_disturbs_nodes_is_blocked_until_it_is_allowed() -> None:
    item = planned(REBOOT)
    assert (item.action, item.next_step) == ("blocked", "add --allow-disruptive")
    assert planned(REBOOT, allow_disruptive=True).action == "run"


def test_what_the_cluster_does_not_offer_is_not_applicable_whatever_else_is_missing() -> None:
    missing = {"dual-stack": "no node has addresses of both families"}
    item = planned(BOTH_FAMILIES, found=cluster(windows=0, missing=missing))
    assert (item.action, item.reason) == ("not-applicable", missing["dual-stack"])


def test_a_version_that_a_requirement_does_not_speak_of_is_not_applicable() -> None:
    item = planned(BY_ADDRESS, found=cluster(version="v1.22.17"))
    assert (item.action, item.reason) == ("not-applicable", "it applies to Kubernetes >=1.23, this is 1.22")


@pytest.mark.parametrize(
    ("requirement", "found", "words"),
    [
        (BY_ADDRESS, cluster(windows=0), "the cluster has no Windows node"),
        (BY_ADDRESS, cluster(linux=0), "the cluster has no Linux node"),
        (REBOOT, cluster(windows=1), "it needs 2 usable Windows nodes, the cluster has 1"),
    ],
)
def test_too_few_nodes_block_a_requirement(requirement: str, found: Inventory, words: str) -> None:
    item = planned(requirement, found=found, allow_disruptive=True)
    assert (item.action, item.reason) == ("blocked", words)
    assert item.next_step


def test_nodes_that_are_not_judged_do_not_count() -> None:
    assert planned(REBOOT, nodes=1, allow_disruptive=True).action == "blocked"


def test_what_nobody_verifies_is_blocked() -> None:
    item = planned(BY_ADDRESS, checks={})
    assert (item.action, item.reason) == ("blocked", "winready has no check for it yet")
    item = planned(BY_ADDRESS, checks={}, upstream={})
    assert (item.action, item.reason) == ("blocked", "no upstream test of Kubernetes 1.36 verifies it")


def test_long_work_comes_first_then_what_cannot_run_and_what_disturbs_nodes_last() -> None:
    found = cluster(missing={"dual-stack": "it has one family"})
    made = plan(BOTH_FAMILIES, REBOOT, BY_ADDRESS, LONGEST, BY_SERVICE, found=found, allow_disruptive=True)
    assert [item.id for item in made.requirements] == [LONGEST, BY_SERVICE, BY_ADDRESS, BOTH_FAMILIES, REBOOT]


def test_the_critical_path_is_the_slowest_fixture_the_longest_check_and_everything_disruptive() -> None:
    checks = load_checks()
    made = plan(REBOOT, BY_ADDRESS, LONGEST, found=cluster(windows=3), nodes=3, allow_disruptive=True)
    assert made.critical_path == ["fixture clients", LONGEST, REBOOT]
    reboot = checks[REBOOT]
    serial = reboot.expected_s + 3 * reboot.expected_s_per_node
    assert made.expected_s == EXPECTED_SECONDS["clients"] + checks[LONGEST].expected_s + serial
    assert made.windows_pods == checks[LONGEST].windows_pods + 3 * reboot.windows_pods_per_node
    assert made.fixtures.keys() == {"clients", "servers"}


def test_one_reboot_that_two_requirements_share_is_counted_once() -> None:
    together = plan(REBOOT, REJOINS, allow_disruptive=True)
    assert together.critical_path == [REBOOT, REJOINS]
    alone = planned(REBOOT, allow_disruptive=True).expected_s, planned(REJOINS, allow_disruptive=True).expected_s
    saved = 2 * load_checks()[REJOINS].spared_s_per_node[REBOOT]
    assert together.expected_s == sum(alone) - saved < sum(alone)
    assert [item.expected_s for item in together.requirements] == [alone[0], alone[1] - saved]
    # Who does not run has rebooted nothing.
    checks = {name: check for name, check in load_checks().items() if name != REBOOT}
    assert plan(REBOOT, REJOINS, checks=checks, allow_disruptive=True).expected_s == alone[1]


def test_nothing_to_run_takes_no_time() -> None:
    made = plan(REBOOT)
    assert (made.critical_path, made.expected_s, made.fixtures, made.windows_pods) == ([], 0.0, {}, 0)


def test_checks_and_upstream_tests_share_a_requirement() -> None:
    tests = {BY_ADDRESS: Assignment(tests=["hybrid-network"], full=True, expected_s=50.0)}
    both = planned(BY_ADDRESS, upstream=tests)
    together = load_checks()[BY_ADDRESS].expected_s + 50.0
    assert (both.verifier, both.upstream, both.expected_s) == ("both", ["hybrid-network"], together)
    alone = planned(BY_ADDRESS, upstream=tests, checks={})
    assert (alone.verifier, alone.fixtures, alone.expected_s) == ("upstream", [], 50.0)
    assert planned(BY_SERVICE, upstream=tests).verifier == "native"


def test_an_upstream_test_that_disturbs_nodes_needs_the_operators_word_too() -> None:
    tests = {BY_ADDRESS: Assignment(tests=["a test"], disruptive=True)}
    assert planned(BY_ADDRESS, upstream=tests).next_step == "add --allow-disruptive"
    assert planned(BY_ADDRESS, upstream=tests, allow_disruptive=True).disruptive


def test_a_refusal_of_upstream_blocks_even_what_a_check_could_judge() -> None:
    item = planned(BY_ADDRESS, upstream={BY_ADDRESS: Assignment(refused="it drifted", next_step="look")})
    assert (item.action, item.reason, item.next_step) == ("blocked", "it drifted", "look")


def prepared(
    *,
    binary: str = "v1.36.3",
    without: str = "",
    steering: Steering = "policy",
    complaints: dict[str, str] | None = None,
) -> Prepared:
    """An e2e.test of a version that has every mapped test but one, against a cluster of 1.36."""
    program, table = Binary(Path("e2e.test"), binary), load_mapping()
    version = table.nearest_version(program.version)
    texts = [plain(text) for name, test in table.tests.items() if name != without and (text := test.text(version))]
    findings = compare(table, Listing("a listing", tuple(texts)), version)
    return Prepared(
        options=UpstreamOptions(program, Path("output")),
        binary=program,
        table=table,
        findings={finding.test: finding for finding in findings},
        version=version,
        steering=steering,
        policy_version="v1" if steering == "policy" else "",
        refusal=misfit(program, Version(1, 36)),
        complaints=complaints or {},
    )


def assigned(requirement: str, **given: Any) -> Assignment:
    return prepared(**given).assignments([requirement])[requirement]


def test_upstream_is_assigned_what_proves_a_requirement() -> None:
    found = assigned(BY_ADDRESS)
    assert (found.tests, found.full, found.refused) == (["hybrid-network"], True, "")
    assert found.expected_s == load_mapping().tests["hybrid-network"].expected_s
    assert assigned(REBOOT) == Assignment()


@pytest.mark.parametrize(
    ("given", "words", "step"),
    [
        ({"binary": "v1.30.2"}, "e2e.test v1.30.2 is more than one minor older than the cluster", "upstream fetch"),
        ({"binary": "v1.37.0"}, "e2e.test v1.37.0 is newer than the cluster", "upstream fetch"),
        ({"without": "hybrid-network"}, "drifted: no spec has this text", "upstream drift"),
        ({"complaints": {BY_ADDRESS: "a.yaml, line 3: no test"}}, "a.yaml, line 3: no test", "correct the test case"),
    ],
)
def test_upstream_tests_that_must_not_judge_say_why(given: dict[str, Any], words: str, step: str) -> None:
    found = assigned(BY_ADDRESS, **given)
    assert words in found.refused
    assert step in found.next_step
    assert found.tests == []


def test_tests_that_leave_the_place_to_the_scheduler_need_steering() -> None:
    assert assigned(RECREATED, steering="taint").tests == ["service-recreated"]
    refused = assigned(RECREATED, steering="")
    assert "has no MutatingAdmissionPolicy" in refused.refused
    assert "--steer-by-taint" in refused.next_step


def test_without_steering_the_other_tests_still_show_their_part() -> None:
    assert assigned(NODE_PORT).tests == ["granular-services-http", "windows-nodeport"]
    alone = assigned(NODE_PORT, steering="")
    assert (alone.tests, alone.full, alone.refused) == (["windows-nodeport"], False, "")
