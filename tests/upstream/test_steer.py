"""``winready steer`` as a user runs it; policies themselves need a real API server (tests/real)."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from cli.conftest import CommandLine
from winready.cluster.client import Client, Object
from winready.cluster.errors import Conflict
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NODES
from winready.cluster.steering import TAINT, policy_objects, remove_taints, selector, taint_linux


def tainted(kubeconfig: str) -> set[str]:
    async def go() -> list[dict[str, Any]]:
        async with Client.connect(find_target(kubeconfig)) as client:
            return await client.list(NODES)

    return {node["metadata"]["name"] for node in asyncio.run(go()) if node["spec"].get("taints")}


def test_without_policies_a_taint_must_be_asked_for(command_line: CommandLine, kubeconfig: str) -> None:
    refused = command_line("steer", "apply", "--kubeconfig", kubeconfig)
    assert refused.returncode == 3
    assert "--steer-by-taint" in refused.stderr
    assert tainted(kubeconfig) == set()


def test_the_taint_comes_and_goes(command_line: CommandLine, kubeconfig: str) -> None:
    options = ["--kubeconfig", kubeconfig, "--steer-by-taint"]
    applied = command_line("steer", "apply", *options)
    assert applied.returncode == 0
    assert "node linux-1 tainted winready.io/steer" in applied.stdout
    assert tainted(kubeconfig) == {"linux-1", "linux-2"}
    assert command_line("steer", "delete", *options).returncode == 0
    assert tainted(kubeconfig) == set()
    assert "nothing to remove" in command_line("steer", "delete", *options).stdout
    command_line("steer", "apply", *options)
    command_line("cleanup", "--kubeconfig", kubeconfig)
    assert tainted(kubeconfig) == set()


class OvertakenClient(Client):
    """Somebody else writes to the node just before we do, as often as told."""

    def __init__(self, times: int) -> None:
        self.node: Object = {"metadata": {"name": "n", "resourceVersion": "1"}, "spec": {"taints": [{"key": "own"}]}}
        self.times = times

    async def list(self, *_: Any, **__: Any) -> list[Object]:
        return [copy.deepcopy(self.node)]

    async def get(self, *_: Any, **__: Any) -> Object:
        return copy.deepcopy(self.node)

    async def patch(self, resource: Any, name: str, patch: Any, *_: Any, **__: Any) -> Object:
        metadata = self.node["metadata"]
        if self.times:
            self.times -= 1
            metadata["resourceVersion"] += "1"
            self.node["spec"]["taints"].append({"key": f"other-{self.times}"})
        if patch["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise Conflict(409, {"message": "the object has been modified"})
        self.node["spec"]["taints"] = patch["spec"]["taints"] or []
        return self.node


async def test_whoever_else_writes_to_a_node_loses_nothing() -> None:
    client = OvertakenClient(2)
    assert await taint_linux(client, "run") == ["n"]
    assert [item["key"] for item in client.node["spec"]["taints"]] == ["own", "other-1", "other-0", TAINT]
    client.times = 1
    assert await remove_taints(client) == ["n"]
    assert [item["key"] for item in client.node["spec"]["taints"]] == ["own", "other-1", "other-0", "other-0"]
    assert await remove_taints(client) == []
    client.times = 1000
    with pytest.raises(Conflict):
        await taint_linux(client, "run")


def test_a_policy_harms_nobody() -> None:
    policy, binding = policy_objects("p", {"a": "b"}, [])
    assert policy["spec"]["failurePolicy"] == "Ignore"
    assert policy["spec"]["matchConstraints"]["namespaceSelector"] == {
        "matchExpressions": [{"key": "e2e-run", "operator": "Exists"}]
    }
    assert binding["spec"]["policyName"] == "p"
    assert selector(["x", "y"])["matchExpressions"][0]["values"] == ["x", "y"]
