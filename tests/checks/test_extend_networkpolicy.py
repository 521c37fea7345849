"""Network policies where an engine enforces them, where none does, and where nobody may look or write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checks.conftest import broken
from engine.stage import STANDARD, Listener, Played, Stage
from winready.checks.context import Context
from winready.checks.extend_networkpolicy.policed import Policed
from winready.checks.registry import load_checks
from winready.checks.rights import rights_to_grant
from winready.checks.world import World
from winready.cluster.client import Client
from winready.cluster.failures import CheckBlocked
from winready.cluster.inventory import take_inventory
from winready.cluster.kubeconfig import Target
from winready.cluster.resources import DAEMON_SETS, NETWORK_POLICIES, NODES
from winready.cluster.rights import manifest
from winready.cluster.settings import Settings
from winready.engine.options import Options
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.proof.expected.model import ids
from winready.report.folders import new_run_id
from winready.report.following import follow
from winready_sandbox.api.identity import AUTHENTICATED, User
from winready_sandbox.wire import WireConnector

Staged = Callable[..., Stage]
KEYS = ("K1", "K2")
ENGINE = "calico-node-windows"


def reasons(played: Played) -> str:
    return "\n".join(f"{result.id}: {result.outcome}: {result.reason}" for result in played.results.values())


def test_policies_are_judged_on_every_node_at_both_ends_and_removed(staged: Staged) -> None:
    stage = staged()
    played = stage.play(*KEYS)
    assert {result.outcome for result in played.results.values()} == {"passed"}, reasons(played)
    assert played.left == []
    k1, k2 = (played.results[ids(key)[0]].evidence for key in KEYS)
    told = {(probe.pod.partition("/")[2], probe.title): probe.observed for probe in k1.probes}
    first = "tries others after a policy was made that lets through only pods labelled who=friend"
    assert "np-1 answered as np-1" in told["npc-1", f"npc-1 {first}"]
    assert "np-1 did not answer" in told["npc-2", f"npc-2 {first}"]
    assert "npl-2 did not answer" in told["np-2", f"np-2 {first}"]
    assert "npl-1 answered as npl-1" in told["np-2", f"np-2 {first}"]
    changed = "npc-2 tries others after that label was taken from these pods and given to the others"
    assert "npx-1 answered as npx-1" in told["npc-2", changed]
    for evidence in (k1, k2):
        assert {probe.node for probe in evidence.probes} == {"windows-1", "windows-2", "linux-1", "linux-2"} - (
            {"linux-2"} if evidence is k2 else set()
        )
        assert any(probe.title.endswith("the policy was removed") for probe in evidence.probes)


def test_an_engine_that_accepts_policies_and_ignores_them_fails(staged: Staged) -> None:
    stage = staged()
    for node in ("windows-1", "windows-2"):
        broken(stage, "policy.windows.not-enforced", node)
    for result in stage.play(*KEYS).results.values():
        assert result.outcome == "failed"
        assert "60 s after a policy was made that lets through only" in result.reason
        assert "is still reached by" in result.reason
        assert ENGINE in result.next_step


def test_without_an_engine_for_windows_there_is_nothing_to_judge(staged: Staged) -> None:
    stage = staged()
    stage.do(lambda client: client.delete(DAEMON_SETS, ENGINE, "kube-system"))
    for result in stage.play(*KEYS).results.values():
        assert result.outcome == "not-applicable"
        assert ENGINE in result.reason


def test_an_engine_that_runs_as_a_windows_service_is_known_by_its_marks_on_nodes(staged: Staged) -> None:
    stage = staged()

    async def as_service(client: Client) -> str:
        await client.delete(DAEMON_SETS, ENGINE, "kube-system")
        mark = {"metadata": {"annotations": {"projectcalico.org/IPv4Address": "10.250.0.4/24"}}}
        await client.patch(NODES, "windows-1", mark)
        return (await take_inventory(client)).features["network-policy"]

    assert stage.do(as_service).startswith("Calico (annotations")


def operator(stage: Stage, *without: str) -> Target:
    """Somebody with the rights that ``winready rbac`` prints, but for those on some resources."""
    user = User("operator", (AUTHENTICATED,))
    plane = stage.sandbox.embedded
    rights = rights_to_grant(load_checks(), Settings(run_id="rights"))
    for obj in manifest("winready", "winready", user.name, rights):
        if obj["kind"] == "ClusterRole":
            obj = {**obj, "rules": [rule for rule in obj["rules"] if not set(without) & set(rule["resources"])]}
        plane.client.create(f"{obj['kind'].lower()}s", obj)
    return Target(plane.url, token=plane.token(user))


def play_as(stage: Stage, target: Target, *keys: str) -> Played:
    """The run of that operator."""

    async def story(client: Client) -> Any:
        plane = stage.sandbox.embedded
        async with Client.connect(target, WireConnector(plane.inside)) as own:
            return await _play(own, keys)

    played: Played = stage.do(story)
    return played


async def _play(client: Client, keys: tuple[str, ...]) -> Played:
    settings = Settings(run_id=new_run_id())
    listener = Listener("the stage")
    run = Run(client, STANDARD, Options(settings=settings, selection=Selection(requirements=list(keys))))
    troubles = await follow(run, Listener("the journal"), [listener])
    return Played(settings.run_id, listener.told, troubles, [])


def test_without_the_right_to_write_policies_it_is_blocked_and_says_so(staged: Staged) -> None:
    stage = staged()
    played = play_as(stage, operator(stage, "networkpolicies"), *KEYS)
    for result in played.results.values():
        assert result.outcome == "blocked", reasons(played)
        assert "networkpolicies" in result.reason
        assert "winready rbac" in result.next_step


def test_what_could_not_be_seen_is_not_taken_for_absent_nor_for_broken(staged: Staged) -> None:
    stage = staged()
    blind = operator(stage, "daemonsets")
    played = play_as(stage, blind, "K1")
    assert [result.outcome for result in played.results.values()] == ["passed"], reasons(played)
    for node in ("windows-1", "windows-2"):
        broken(stage, "policy.windows.not-enforced", node)
    (result,) = play_as(stage, blind, "K1").results.values()
    assert result.outcome == "blocked"
    assert "DaemonSets cannot be listed" in result.reason


def test_policies_that_others_write_into_new_namespaces_are_named(staged: Staged) -> None:
    stage = staged()

    async def story(client: Client) -> str:
        inventory = await take_inventory(client)
        nodes = {os: [node.name for node in inventory.usable(os)] for os in ("windows", "linux")}
        async with World(client, inventory, Settings(run_id="deny"), nodes["windows"], nodes["linux"]) as world:
            namespace = await world.namespace("np")
            deny = {"metadata": {"name": "default-deny"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}
            await client.create(NETWORK_POLICIES, deny, namespace.name)
            try:
                await (await Policed.open(Context(world), "np")).require_alone()
            except CheckBlocked as block:
                return f"{block.reason}; {block.next_step}"
        return ""

    told = stage.do(story)
    assert "put there by others: default-deny" in told
    assert "winready.io/run" in told


def test_an_engine_that_needs_most_of_its_time_is_sound_and_one_that_needs_more_is_not(staged: Staged) -> None:
    stage = staged()
    policy = stage.sandbox.fabric.nodes["windows-1"].defects.policy
    policy.late = 50.0
    played = stage.play(*KEYS)
    assert {result.outcome for result in played.results.values()} == {"passed"}, reasons(played)
    policy.late, policy.removed_late = 0.0, 85.0
    for result in stage.play(*KEYS).results.values():
        assert result.outcome == "failed"
        assert "60 s after the policy was removed" in result.reason
        assert "windows-1" in result.reason


def test_policies_are_watched_for_minutes_after_a_change(staged: Staged) -> None:
    stage = staged()
    stage.sandbox.fabric.nodes["windows-2"].defects.policy.lost_after = 45.0
    for result in stage.play(*KEYS).results.values():
        assert result.outcome == "failed"
        assert "windows-2" in result.reason
