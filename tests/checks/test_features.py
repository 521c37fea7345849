"""Checks of features: shown with the rights that are printed for it, on clusters that have what others have not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from engine.stage import STANDARD, Listener, Played, Stage
from winready.checks.registry import load_feature_checks
from winready.checks.rights import rights_to_grant
from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.cluster.resources import NODES
from winready.cluster.rights import manifest
from winready.cluster.settings import Settings
from winready.engine.options import Options
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.features import catalogue
from winready.features.choosing import requirements_of, showing
from winready.proof.choosing import cheap_features
from winready.proof.judgement import UNSEEN
from winready.report.folders import new_run_id
from winready.report.following import follow
from winready_sandbox.api.identity import AUTHENTICATED, User
from winready_sandbox.wire import WireConnector

Staged = Callable[..., Stage]


def play(stage: Stage, *features: str) -> Played:
    wanted = [catalogue.wanted(catalogue.load()[name]) for name in features]
    return stage.play(*requirements_of(features), features=wanted)


def play_as(stage: Stage, granted: Iterable[str], *features: str) -> Played:
    """The run of somebody with the rights that ``winready rbac`` prints for these requirements and features."""
    user, plane = User("operator", (AUTHENTICATED,)), stage.sandbox.embedded
    rights = rights_to_grant(granted, Settings(run_id="rights"))
    for obj in manifest("winready", "winready", user.name, rights):
        plane.client.create(f"{obj['kind'].lower()}s", obj)

    async def story(_: Client) -> Played:
        async with Client.connect(Target(plane.url, token=plane.token(user)), WireConnector(plane.inside)) as client:
            options = Options(settings=Settings(run_id=new_run_id()), selection=Selection(features=list(features)))
            listener = Listener("the stage")
            run = Run(client, STANDARD, showing(options, features))
            troubles = await follow(run, Listener("the journal"), [listener])
            return Played(options.settings.run_id, listener.told, troubles, [])

    return stage.do(story)


def test_the_printed_rights_are_enough_to_show_every_feature_with_a_check_of_its_own(staged: Staged) -> None:
    features = cheap_features()
    played = play_as(staged(), [*requirements_of(features), *features], *features)
    found = {name: (each.outcome, each.reason) for name, each in played.features.items()}
    unseen = {name for name, (outcome, _) in found.items() if outcome == "not-applicable"}
    assert unseen == UNSEEN & found.keys()
    assert {name: why for name, why in found.items() if why[0] not in ("passed", "not-applicable")} == {}
    for name, each in played.features.items():
        assert each.evidence.probes or name in unseen, name
        windows = {pod.node for pod in each.evidence.pods if pod.os == "windows" and pod.build}
        assert windows == {"windows-1", "windows-2"} or name in unseen, name
    # Shared pods, and three of each node for what cannot be seen in those.
    pods = 2 * sum(load_feature_checks()[name].windows_pods_per_node for name in found)
    assert played.record.windows_pods_started == 2 * len(("clients", "servers")) + pods


def test_a_feature_whose_rights_are_missing_is_blocked_and_names_them(staged: Staged) -> None:
    played = play_as(staged(), ["subpath"], "resource-quota", "subpath")
    assert played.features["subpath"].outcome == "passed"
    quota = played.features["resource-quota"]
    assert (quota.outcome, quota.contradiction) == ("blocked", "")
    assert "create resourcequotas" in quota.reason
    assert "winready rbac" in quota.next_step


def test_a_release_of_windows_counts_by_what_the_version_says_of_it(staged: Staged) -> None:
    before = play(staged(windows_build="2019", kubernetes="1.34"), "ws2019", "session-affinity", "ws2022")
    assert before.features["ws2019"].outcome == "passed"
    assert before.features["session-affinity"].outcome == "not-applicable"
    assert before.features["ws2022"].outcome == "not-applicable"
    after = play(staged(windows_build="2019,2022"), "ws2019").features["ws2019"]
    assert (after.outcome, after.contradiction) == ("failed", "documented as gone since 1.35, yet it works here")
    assert "not on windows-2: it is 10.0.20348" in after.reason


def test_network_plugins_are_known_by_what_they_write_to_nodes(staged: Staged) -> None:
    stage = staged()
    marks = {
        "flannel.alpha.coreos.com/backend-type": "vxlan",
        "k8s.ovn.org/hybrid-overlay-node-subnet": "10.132.0.0/24",
        "kubernetes.azure.com/network-policy": "none",
    }

    async def annotate(client: Client) -> None:
        for node in ("windows-1", "windows-2"):
            await client.patch(NODES, node, {"metadata": {"annotations": marks}})
            hns = stage.sandbox.fleet.kubelets[node].machine.windows_host.hns
            for name, network in list(hns.networks.items()):
                hns.networks[name] = replace(network, type="L2Bridge")

    stage.do(annotate)
    played = play(stage, "cni-flannel", "cni-ovn", "cni-azure", "kube-proxy-l2bridge", "kube-proxy-overlay")
    outcomes = {name: each.outcome for name, each in played.features.items()}
    assert outcomes.pop("kube-proxy-overlay") == "not-applicable"
    assert set(outcomes.values()) == {"passed"}, {name: each.reason for name, each in played.features.items()}


def test_a_node_that_breaks_is_named_and_the_finding_is_a_contradiction(staged: Staged) -> None:
    stage = staged()
    stage.do(lambda _: stage.sandbox.break_fault("volumes.windows.modes-kept", "windows-2"))
    stage.do(lambda _: stage.sandbox.break_fault("kubelet.windows.hooks-ignored", "windows-2"))
    played = play(stage, "default-mode", "lifecycle-hooks", "probes")
    modes, hooks = played.features["default-mode"], played.features["lifecycle-hooks"]
    assert (modes.outcome, modes.contradiction) == ("failed", "documented as never, yet it works here")
    assert "on node windows-2 a file with mode 0 cannot be read" in modes.reason
    assert hooks.contradiction == "documented as supported, not shown here"
    assert "windows-2" in hooks.reason
    assert played.features["probes"].outcome == "passed"
    assert played.record.verdict_reasons[-1] == "no requirement was selected"
