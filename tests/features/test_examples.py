"""The applications in ``examples/``: ready on a sound cluster, and not ready for the one reason that breaks them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.stage import Played, Stage
from winready.engine.options import Options
from winready.engine.workloads import WorkloadResult
from winready.features import choosing, manifests, relying, selecting
from winready.features.attempts import attempts
from winready.lint.context import Profile
from winready.proof.furnishing import own_domain
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

EXAMPLES = Path(__file__).parents[2] / "examples"
CALICO = Profile(builds=(20348,), cni="calico", windows_nodes=True)
"""What the cluster of these tests is."""


@dataclass(frozen=True)
class Breakage:
    """A fault, and exactly what an application then says: what is not shown, and the text of the line that needs it."""

    application: str
    fault: str
    needs: dict[str, str]


BREAKAGES = [
    Breakage("aspnet-web", "service-proxy.windows.nodeport-dead", {"svc-nodeport": "type: NodePort"}),
    Breakage("iis-gmsa", "runtime.windows.gmsa-ignored", {"gmsa": "gmsaCredentialSpecName: webapp"}),
    Breakage(
        "windows-exporter",
        "machine.windows.firewall-ignores-local-rules",
        {"extend.hostprocess.bind-host-interface": "ports:"},
    ),
    Breakage(
        "queue",
        "service-proxy.windows.stale-endpoints",
        {"core.network.statefulset-identity": "serviceName: queue"},
    ),
    Breakage(
        "nightly-batch", "runtime.windows.user-name-ignored", {"run-as-user-name": "runAsUserName: ContainerUser"}
    ),
    Breakage(
        "shop", "dns.windows.external-dead", {"core.network.dns-external": "value: https://payments.example.com/v2"}
    ),
    Breakage("policed-service", "policy.windows.not-enforced", {"network-policy": "kind: NetworkPolicy"}),
    Breakage("dual-stack", "link.windows.ipv6-dead", {"dual-stack": "ipFamilyPolicy: RequireDualStack"}),
    Breakage("settings", "volumes.windows.labels-never-updated", {"core.storage.host-volumes": "projected:"}),
    Breakage("log-sidecar", "dns.windows.host-aliases-ignored", {"hosts-file": "hostAliases:"}),
]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One cluster for all of them: both families, a domain, policies."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        sandbox = Sandbox(Plan(name="examples", dual_stack=True, active_directory=True))
        runner.run(_enter(sandbox))
        yield Stage(runner, sandbox)
        runner.run(sandbox.__aexit__(None, None, None))


async def _enter(sandbox: Sandbox) -> None:
    await sandbox.__aenter__()
    await sandbox.settled()


def run_for(stage: Stage, *applications: str, trying: bool = False, **more: Any) -> Played:
    """A run that answers for the workloads of these applications."""
    found = manifests.read([str(EXAMPLES / name) for name in applications], CALICO)
    workloads = tuple(relying.workloads(found))
    selection = selecting.selection(workloads)
    directory = own_domain(vars(stage.sandbox.plan))
    shown = choosing.showing(Options(settings=_settings(), selection=selection), selection.features)
    tried = tuple(attempts(found, list(workloads))) if trying else ()
    return stage.play(
        *selection.requirements,
        features=shown.features,
        workloads=workloads,
        attempts=tried,
        directory=directory,
        nodes=None,
        parallel=32,
        **more,
    )


def _settings() -> Any:
    from winready.cluster.settings import Settings

    return Settings(run_id="260101-000000-0000")


def not_shown(results: Sequence[WorkloadResult]) -> dict[str, str]:
    """What kept workloads from being ready, with the text of the line that needs it."""
    return {
        use.id: Path(use.path).read_text().splitlines()[use.line - 1].strip().removeprefix("- ")
        for result in results
        for use in result.features
        if use.outcome != "passed" and not use.by_data
    }


def test_every_application_is_described_with_what_breaks_it() -> None:
    text = (EXAMPLES / "README.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| [")]
    told = {name.partition("]")[0].removeprefix("["): (fault, named) for name, _, _, fault, named in rows}
    assert told == {one.application: (f"`{one.fault}`", *(f"`{need}`" for need in one.needs)) for one in BREAKAGES}


@pytest.mark.parametrize("one", BREAKAGES, ids=lambda one: one.application)
def test_lint_finds_nothing_but_what_is_documented(one: Breakage) -> None:
    documented = {"policed-service": {"np-needs-plugin"}, "shop": {"svc-session-affinity"}}
    found = manifests.read([str(EXAMPLES / one.application)], Profile())
    rules = {finding.rule for workload in relying.workloads(found) for finding in workload.findings}
    assert rules == documented.get(one.application, set())


def test_all_applications_are_ready_on_a_sound_cluster(stage: Stage) -> None:
    names = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    played = run_for(stage, *names)
    assert len(names) == len(BREAKAGES) == len(played.record.workloads)
    assert {result.title: not_shown([result]) for result in played.record.workloads if not result.ready} == {}
    assert played.verdict.exit_code == 0
    assert set(names) == {one.application for one in BREAKAGES}
    # What the answer names is what was verified, and nothing else was.
    relied = {use.id for result in played.record.workloads for use in result.features}
    assert set(played.results) <= relied | set(choosing.requirements_of(played.record.selection.features))


@pytest.mark.parametrize("broken", BREAKAGES, ids=lambda one: one.application)
def test_what_breaks_an_application_is_named_with_its_line_and_node(stage: Stage, broken: Breakage) -> None:
    where = stage.run(lambda: stage.sandbox.break_fault(broken.fault))
    try:
        played = run_for(stage, broken.application)
    finally:
        stage.run(lambda: stage.sandbox.heal_fault())
    (result,) = played.record.workloads
    assert not result.ready
    assert result.outcome == "failed"
    assert not_shown([result]) == broken.needs
    nodes = {item.node for item in where if item.node}
    assert all(nodes <= set(use.nodes) for use in result.features if use.id in broken.needs)
    assert played.verdict.exit_code == 1


@pytest.mark.parametrize(
    "broken",
    [
        Breakage("shop", "service-proxy.windows.affinity-ignored", {"session-affinity": "sessionAffinity: ClientIP"}),
        Breakage("log-sidecar", "kubelet.windows.sidecars-stay-down", {"sidecars": "restartPolicy: Always"}),
    ],
    ids=lambda one: one.fault,
)
def test_what_no_requirement_knows_keeps_a_workload_from_being_ready_and_no_verdict(
    stage: Stage, broken: Breakage
) -> None:
    stage.run(lambda: stage.sandbox.break_fault(broken.fault))
    try:
        played = run_for(stage, broken.application)
    finally:
        stage.run(lambda: stage.sandbox.heal_fault())
    assert not_shown(played.record.workloads) == broken.needs
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Pass", 1)
