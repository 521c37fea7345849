"""``winready rbac`` and runs with exactly these rights, as an administrator and an operator use them."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cli.conftest import SPEED, CommandLine
from cli.test_run import _grant, _kubeconfig, document
from winready.checks.rights import SPACES
from winready.cli.main import cli
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.prepared import CLAIM, KINDS
from winready.cluster.resources import NAMESPACES, PODS

PREFIX = "team-a"
QUICK = "core.storage.hostpath-read"
FAR = "core.scheduling.limits-honoured"
OF_KUBERNETES = {"ConfigMap kube-root-ca.crt", "ServiceAccount default"}
OF_ADMINISTRATOR = {"Role winready", "RoleBinding winready"}


def printed(*arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["rbac", *arguments])
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


def allowed(documents: list[dict[str, Any]], kind: str) -> set[str]:
    """Every verb and resource that roles of a kind allow."""
    return {
        f"{verb} {resource}"
        for item in documents
        if item["kind"] == kind
        for rule in item["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def test_the_rights_follow_the_requirements() -> None:
    core, full = allowed(printed(), "ClusterRole"), allowed(printed("--profile", "full"), "ClusterRole")
    assert core < full
    assert full - core == {"delete networkpolicies", "patch networkpolicies"}
    assert "get nodes/proxy" in core
    assert "get secrets" not in full
    one = allowed(printed("--requirement", "core.network.windows-to-linux-pod-ip"), "ClusterRole")
    assert one.isdisjoint({"create secrets", "create services", "get nodes/proxy", "create deployments"})
    storage = allowed(printed("--category", "core.storage", "--skip", "core.storage.host-volumes"), "ClusterRole")
    assert not any("secrets" in right for right in storage)


def test_beside_prepared_namespaces_nothing_strong_is_granted() -> None:
    documents = printed("--profile", "full", "--allow-disruptive", "--namespace-prefix", PREFIX)
    assert allowed(documents, "ClusterRole") == {
        "list nodes", "get nodes", "get namespaces", "list daemonsets", "list gmsacredentialspecs",
    }  # fmt: skip
    spaces = [item["metadata"]["name"] for item in documents if item["kind"] == "Namespace"]
    of_features = {"files", "life", "hostnet", "psa"}
    assert set(spaces) - {"winready"} == {f"{PREFIX}-{space}" for space in {*SPACES} - of_features} - {
        f"{PREFIX}-{space}" for space in ("lim", "boot", "rejoin", "ad")
    }
    roles = {item["metadata"]["namespace"] for item in documents if item["kind"] == "Role"}
    assert roles == {name for name in spaces if name.startswith(PREFIX)} | {"kube-system", "default"}
    for item in documents:
        if item["kind"] == "Role" and item["metadata"]["namespace"] in ("kube-system", "default"):
            assert {verb for rule in item["rules"] for verb in rule["verbs"]} <= {"get", "list"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--namespace-prefix", "Team A"], "cannot begin the name of a namespace"),
        (["--namespace-prefix", "x" * 51], "cannot begin the name of a namespace"),
        (["--for", "cleanup", "--category", "core.storage"], "leave --category out"),
        (["--requirement", "nonsense"], "unknown requirement"),
    ],
)
def test_mistakes_are_told(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(cli, ["rbac", *arguments])
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.split())


@pytest.fixture(scope="module")
def prepared(command_line: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A cluster as its administrator prepared it; his kubeconfig, and that of the operator."""
    admin = str(command_line.sandbox("prepared")["kubeconfig"])
    target = find_target(admin)
    assert target.ca is not None
    documents = printed("--requirement", QUICK, "--requirement", FAR, "--namespace-prefix", PREFIX)
    token = asyncio.run(_grant(admin, documents))
    own = tmp_path_factory.mktemp("operator") / "kubeconfig"
    return admin, _kubeconfig(own, target.server, target.ca, token)


def inside(kubeconfig: str) -> set[str]:
    """What is in the prepared namespaces, besides what was there before."""

    async def look() -> set[str]:
        async with Client.connect(find_target(kubeconfig)) as client:
            spaces = [item["metadata"]["name"] for item in await client.list(NAMESPACES)]
            own = [name for name in spaces if name.startswith(PREFIX)]
            assert own == [f"{PREFIX}-host", f"{PREFIX}-hpr"]
            return {
                f"{kind.kind} {item['metadata']['name']}"
                for name in own
                for kind in KINDS
                for item in await client.list(kind, name)
            }

    return asyncio.run(look()) - OF_KUBERNETES - OF_ADMINISTRATOR


def test_a_run_in_prepared_namespaces_verifies_and_leaves_them_empty(
    command_line: CommandLine, prepared: tuple[str, str], tmp_path: Path
) -> None:
    admin, own = prepared
    where = ["--kubeconfig", own, "--time-scale", SPEED, "--report-dir", str(tmp_path), "-o", "json"]
    result = command_line("run", *where, "--namespace-prefix", PREFIX, "--requirement", QUICK, "--requirement", FAR)
    record = document(result.stdout)
    outcomes = {item["id"]: item for item in record["requirements"]}
    assert outcomes[QUICK]["outcome"] == "passed", outcomes[QUICK]
    assert outcomes[FAR]["outcome"] == "blocked"
    assert outcomes[FAR]["reason"] == "rights are missing: get nodes/proxy in the whole cluster"
    assert (record["leftovers"], inside(admin)) == ([], set())
    without = command_line("run", *where, "--requirement", QUICK)
    item = document(without.stdout)["requirements"][0]
    assert (without.returncode, item["outcome"]) == (3, "error")
    assert "create namespaces" in item["reason"]


def test_requirements_without_a_prepared_namespace_are_blocked_by_name(
    command_line: CommandLine, prepared: tuple[str, str]
) -> None:
    arguments = ["--kubeconfig", prepared[1], "--namespace-prefix", PREFIX, "-o", "json"]
    planned = document(command_line("plan", *arguments).stdout)["requirements"]
    assert {item["id"] for item in planned if item["action"] == "run"} == {QUICK}
    reasons = {item["id"]: item.get("reason", "") for item in planned}
    assert f"create services in namespace {PREFIX}-fx" in reasons["core.network.windows-to-linux-service-ip"]


def test_a_killed_run_holds_its_namespaces_until_they_are_cleaned_up(
    command_line: CommandLine, prepared: tuple[str, str], tmp_path: Path
) -> None:
    admin, own = prepared
    where = ["--kubeconfig", own, "--namespace-prefix", PREFIX]
    arguments = ["run", *where, "--requirement", QUICK, "--time-scale", SPEED, "-o", "json", "--report-dir"]
    process = command_line.start(*arguments, str(tmp_path / "killed"))
    while not {"reader-1", "reader-2"} <= asyncio.run(_pods(admin)):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (folder,) = (tmp_path / "killed").iterdir()
    again = command_line(*arguments, str(tmp_path / "again"))
    item = document(again.stdout)["requirements"][0]
    assert (again.returncode, item["outcome"]) == (3, "error")
    assert f"in use by run {folder.name}" in item["reason"]
    assert f"winready cleanup --namespace-prefix {PREFIX} --run {folder.name}" in item["next_step"]
    assert f"ConfigMap {CLAIM}" in inside(admin)
    looked = command_line("cleanup", *where, "--dry-run", "--objects-only")
    assert looked.returncode == 3
    assert f"would be removed: Pod {PREFIX}-hpr/reader-1" in looked.stdout
    cleaned = command_line("cleanup", *where, "--run", folder.name)
    assert cleaned.returncode == 0, cleaned.stdout
    removed = [f"removed: folder C:\\winready\\{folder.name} on node windows-{number}" for number in (1, 2)]
    assert sorted(cleaned.stdout.splitlines()[:-1]) == removed
    assert inside(admin) == set()


async def _pods(kubeconfig: str) -> set[str]:
    async with Client.connect(find_target(kubeconfig)) as client:
        return {item["metadata"]["name"] for item in await client.list(PODS)}
