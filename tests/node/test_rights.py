"""``winready rbac --for node``: the rights that are printed are enough, and none of them is missing unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from cli.conftest import CommandLine
from cli.test_run import _kubeconfig
from node.sandboxes import ask, call, cluster_info, command_line, put_cluster_info
from winready.cli.node_addons import addons
from winready.cli.node_commands import drain, join_command, remove
from winready.cli.node_preflight import preflight
from winready.cli.rbac import rbac
from winready.cluster.client import Client, Object
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DAEMON_SETS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)

__all__ = ["command_line"]
KINDS = {
    resource.kind: resource
    for resource in (NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
}
GIVEN = [
    "--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/16", "--dns", "10.96.0.10",
    "--endpoint", "api.example:6443", "--kubernetes", "1.36.0",
]  # fmt: skip


def printed(*arguments: str) -> list[Object]:
    result = CliRunner().invoke(rbac, ["--for", "node", *arguments])
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


@pytest.fixture(scope="module")
def administrator(command_line: CommandLine) -> str:
    """A cluster without add-ons for Windows, and who may do everything there."""
    kubeconfig = str(command_line.sandbox("rights", "--linux", "1", "--windows", "1")["kubeconfig"])

    async def clear(client: Client) -> None:
        for name in ("kube-proxy-windows", "calico-node-windows"):
            await client.delete(DAEMON_SETS, name, "kube-system")
        await put_cluster_info(client, cluster_info(kubeconfig))

    ask(kubeconfig, clear)
    return kubeconfig


@pytest.fixture
def granted(administrator: str, tmp_path: Path) -> Iterator[str]:
    """A kubeconfig with exactly the printed rights."""
    documents = printed()

    async def grant(client: Client) -> str:
        for item in documents:
            await client.create(KINDS[item["kind"]], item, item["metadata"].get("namespace"))
        path = SERVICE_ACCOUNTS.path("winready", "winready", "token")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str((await client.transport.call("POST", path, body=request)).body["status"]["token"])

    async def take_back(client: Client) -> None:
        for item in documents:
            await client.delete(KINDS[item["kind"]], item["metadata"]["name"], item["metadata"].get("namespace"))

    token = ask(administrator, grant)
    target = find_target(administrator)
    assert target.ca
    yield _kubeconfig(tmp_path / "own", target.server, target.ca, token)
    ask(administrator, take_back)


def test_every_command_works_with_the_rights_that_are_printed(granted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winready.node.joining.make_joining.__kwdefaults__", {"patience": 0.0})
    story: list[tuple[click.Command, list[str], int]] = [
        (join_command, [], 0),
        (addons.commands["diff"], GIVEN, 1),
        (addons.commands["apply"], GIVEN, 0),
        (addons.commands["apply"], [*GIVEN, "--policy", "deny"], 0),
        (addons.commands["diff"], [*GIVEN, "--policy", "deny"], 0),
        (preflight, [*GIVEN, "--no-registries"], 1),
        (addons.commands["delete"], [], 0),
        (addons.commands["delete"], [], 0),
        (drain, ["windows-1"], 0),
        (remove, ["windows-1"], 0),
    ]
    for command, arguments, code in story:
        result = call(command, granted, *arguments)
        assert result.exit_code == code, (command.name, result.output)
        assert "cannot" not in result.output.replace("cannot talk", ""), result.output


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        (join_command, [], 'cannot get resource "configmaps"'),
        (addons.commands["apply"], GIVEN, "cannot "),
        (addons.commands["delete"], [], "cannot list resource"),
        (preflight, GIVEN, 'cannot list resource "nodes"'),
        (drain, ["linux-1"], 'cannot get resource "nodes"'),
        (remove, ["linux-1"], 'cannot get resource "nodes"'),
    ],
    ids=["join-command", "apply", "delete", "preflight", "drain", "remove"],
)
def test_without_a_right_it_is_named(
    administrator: str, tmp_path: Path, command: Any, arguments: list[str], words: str
) -> None:
    async def nobody(client: Client) -> str:
        path = SERVICE_ACCOUNTS.path("default", "default", "token")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str((await client.transport.call("POST", path, body=request)).body["status"]["token"])

    target = find_target(administrator)
    assert target.ca
    kubeconfig = _kubeconfig(tmp_path / "own", target.server, target.ca, ask(administrator, nobody))
    result = call(command, kubeconfig, *arguments)
    assert result.exit_code == 3, result.output
    assert words in result.stderr
    assert "winready rbac --for node" in result.stderr


def test_each_command_has_a_role_of_its_own_and_secrets_are_never_read_cluster_wide() -> None:
    documents = printed("--user", "somebody")
    assert {item["kind"] for item in documents} == {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    names = {item["metadata"]["name"].removeprefix("winready-node-") for item in documents}
    assert names == {"join-command", "addons", "preflight", "drain", "remove"}
    for item in documents:
        if item["kind"] == "ClusterRole":
            assert not any("secrets" in rule["resources"] for rule in item["rules"])
        if item["kind"].endswith("Binding"):
            assert item["subjects"] == [
                {"kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io"}
            ]  # fmt: skip
