"""``winready steer`` as a user runs it; policies themselves need a real API server (tests/real)."""

from __future__ import annotations

import asyncio
from typing import Any

from cli.conftest import CommandLine
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NODES
from winready.cluster.steering import policy_objects, selector


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


def test_a_policy_harms_nobody() -> None:
    policy, binding = policy_objects("p", {"a": "b"}, [])
    assert policy["spec"]["failurePolicy"] == "Ignore"
    assert policy["spec"]["matchConstraints"]["namespaceSelector"] == {
        "matchExpressions": [{"key": "e2e-run", "operator": "Exists"}]
    }
    assert binding["spec"]["policyName"] == "p"
    assert selector(["x", "y"])["matchExpressions"][0]["values"] == ["x", "y"]
