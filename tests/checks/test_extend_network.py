"""Both IP families on clusters that offer them to all, to some and to none; `winready sandbox prove` breaks them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from checks.conftest import broken
from engine.stage import Played, Stage
from winready.checks.context import Context
from winready.checks.extend_network.services import nodes_with
from winready.checks.world import World
from winready.cluster.client import Client
from winready.cluster.failures import NotApplicable
from winready.cluster.inventory import take_inventory
from winready.cluster.resources import NODES
from winready.cluster.settings import Settings
from winready.proof.expected.model import ids

Staged = Callable[..., Stage]
KEYS = ("X1", "X2", "X3", "X4", "X5")


def reasons(played: Played) -> str:
    return "\n".join(f"{result.id}: {result.outcome}: {result.reason}" for result in played.results.values())


def test_both_families_are_shown_from_every_node_and_who_answered(staged: Staged) -> None:
    played = staged(dual_stack=True).play(*KEYS)
    assert {result.outcome for result in played.results.values()} == {"passed"}, reasons(played)
    assert played.left == []
    by_name = {key: played.results[ids(key)[0]].evidence.probes for key in KEYS}
    for key in ("X1", "X2"):
        assert {probe.node for probe in by_name[key]} == {"windows-1", "windows-2"}
    for key, probes in by_name.items():
        assert {":" in probe.target.rpartition(":")[0] for probe in probes if probe.target} == {True, False}, key
    assert any("datagrams answered" in probe.observed and "ls-1" in probe.observed for probe in by_name["X1"])
    targets = {probe.target for probe in by_name["X2"]}
    assert any(target.startswith("fd00:10:250::") for target in targets), targets
    addresses = played.results[ids("X5")[0]].evidence.facts["addresses of Windows pods"]
    assert {len(each) for each in addresses.values()} == {2}


def test_a_cluster_of_one_family_does_not_offer_it(staged: Staged) -> None:
    played = staged().play(*KEYS)
    for result in played.results.values():
        assert result.outcome == "not-applicable", reasons(played)
        assert "one IP family only (windows-1, windows-2)" in result.reason
        assert "a service range of each family" in result.reason
    assert played.verdict.verdict == "Fail", "nothing was verified"


def test_windows_server_2019_knows_one_family_and_is_not_to_blame(staged: Staged) -> None:
    played = staged(dual_stack=True, windows_build="2019").play(*KEYS)
    for result in played.results.values():
        assert result.outcome == "not-applicable", reasons(played)
        assert "it can be judged on nodes with Server 2022 or later" in result.reason


def test_of_mixed_builds_those_that_know_both_families_are_judged(staged: Staged) -> None:
    played = staged(dual_stack=True, windows_build="2019,2022").play(*KEYS)
    assert {result.outcome for result in played.results.values()} == {"passed"}, reasons(played)
    x1 = played.results[ids("X1")[0]].evidence
    assert {probe.node for probe in x1.probes} == {"windows-2"}
    assert "left out: wc-1 on windows-1" in x1.facts
    for result in played.results.values():
        assert result.reason.startswith("shown on windows-2; not on windows-1: it runs a Windows build before 19041")


def test_windows_pods_without_ipv6_fail_where_their_nodes_have_ranges_for_it(staged: Staged) -> None:
    stage = staged(dual_stack=True)
    for node in ("windows-1", "windows-2"):
        broken(stage, "link.windows.pods-without-ipv6", node)
    for result in stage.play(*KEYS).results.values():
        assert result.outcome == "failed"
        assert "no Windows pod has addresses of both IP families, for which their nodes have ranges" in result.reason
        assert "on node windows-1 has 10." in result.reason
        assert "on node windows-2 has 10." in result.reason
        assert "nodes windows-1, windows-2" in result.next_step


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        ("flannel.alpha.coreos.com/backend-type", "vxlan", "an overlay network"),
        ("projectcalico.org/IPv4Address", "10.250.0.4/24", "Calico has IPv4 only on Windows"),
    ],
)
def test_a_network_that_has_one_family_on_windows_does_not_offer_the_other(
    staged: Staged, annotation: str, value: str, words: str
) -> None:
    stage = staged(dual_stack=True)
    for node in ("windows-1", "windows-2"):
        broken(stage, "link.windows.pods-without-ipv6", node)

    async def annotate(client: Client) -> None:
        for node in ("windows-1", "windows-2"):
            await client.patch(NODES, node, {"metadata": {"annotations": {annotation: value}}})

    stage.do(annotate)
    for result in stage.play("X1", "X5").results.values():
        assert result.outcome == "not-applicable"
        assert "no Windows pod has addresses of both IP families (nodes windows-1, windows-2)" in result.reason
        assert words in result.reason


def test_one_node_without_the_second_family_is_named(staged: Staged) -> None:
    stage = staged(dual_stack=True)
    broken(stage, "link.windows.pods-without-ipv6", "windows-2")
    for result in stage.play(*KEYS).results.values():
        assert result.outcome == "failed"
        assert "on node windows-2 has 10." in result.reason
        assert "windows-2" in result.next_step


def test_a_node_port_that_answers_nobody_is_no_finding_about_windows(staged: Staged) -> None:
    stage = staged(dual_stack=True)
    for node in stage.sandbox.fabric.nodes.values():
        node.defects.proxy.ipv6_node_port_dead = True
    played = stage.play("X2", "X4")
    for result in played.results.values():
        assert result.outcome == "blocked", reasons(played)
        assert "IPv6 NodePort" in result.reason
        assert "firewall" in result.next_step


def divided_nodes(stage: Stage, without: set[str]) -> tuple[list[str], list[str]] | str:
    """Which nodes have an IPv6 NodePort and which should, where some have no IPv6 address of their own."""

    async def story(client: Client) -> tuple[list[str], list[str]] | str:
        inventory = await take_inventory(client)
        nodes = [
            replace(node, addresses=node.addresses[:1]) if node.name in without else node for node in inventory.nodes
        ]
        names = {os: [node.name for node in inventory.usable(os)] for os in ("windows", "linux")}
        found = replace(inventory, nodes=nodes)
        async with World(client, found, Settings(run_id="ports"), names["windows"], names["linux"]) as world:
            try:
                having, lacking = nodes_with(Context(world), "IPv6")
            except NotApplicable as absence:
                return absence.reason
        return [node.name for node in having], [node.name for node in lacking]

    return stage.do(story)


def test_node_ports_of_a_family_are_where_nodes_have_addresses_of_it(staged: Staged) -> None:
    stage = staged(dual_stack=True)
    assert divided_nodes(stage, {"windows-1"}) == (["windows-2", "linux-1", "linux-2"], ["windows-1"])
    assert divided_nodes(stage, {"windows-1", "windows-2"}) == (["linux-1", "linux-2"], [])
    told = divided_nodes(stage, {"windows-1", "windows-2", "linux-1", "linux-2"})
    assert isinstance(told, str)
    assert "--node-ip" in told
