"""``winready steer`` as a user runs it: by policy, by webhook, by taint."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import CommandLine
from winready.cluster.client import Client, Object
from winready.cluster.errors import AlreadyExists, Conflict
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NAMESPACES, NODES
from winready.cluster.steering import (
    TAINT,
    policy_objects,
    remove_taints,
    selector,
    taint_linux,
    wait_until_steered,
)
from winready.cluster.steering_webhook import CONFIGURATIONS

UPSTREAM = Path(__file__).parents[2] / "docs" / "upstream.md"


def tainted(kubeconfig: str) -> set[str]:
    async def go() -> list[dict[str, Any]]:
        async with Client.connect(find_target(kubeconfig)) as client:
            return await client.list(NODES)

    return {node["metadata"]["name"] for node in asyncio.run(go()) if node["spec"].get("taints")}


def steered(kubeconfig: str, namespace: str) -> bool:
    """Whether a pod that is only tried out there is sent to Windows."""

    async def go() -> str:
        async with Client.connect(find_target(kubeconfig)) as client:
            with contextlib.suppress(AlreadyExists):
                await client.create(NAMESPACES, {"metadata": {"name": namespace}})
            return await wait_until_steered(client, namespace, seconds=3)

    return asyncio.run(go()) == ""


def test_the_commands_of_the_documentation_work_on_the_sandbox(command_line: CommandLine, kubeconfig: str) -> None:
    shown = re.search(r"```\n(\$ winready steer apply.*?)```", UPSTREAM.read_text(), re.DOTALL)
    assert shown is not None
    lines = shown[1].splitlines()
    seen = []
    for command, said in zip(lines[::2], lines[1::2], strict=True):
        result = command_line(*command.removeprefix("$ winready ").split(), KUBECONFIG=kubeconfig)
        assert (result.returncode, result.stdout) == (0, f"{said}\n"), result.stderr
        seen.append(steered(kubeconfig, "team-a"))
    assert seen == [True, False]
    assert not steered(kubeconfig, "team-b")


def test_a_policy_is_removed_by_cleanup_too(command_line: CommandLine, kubeconfig: str) -> None:
    assert command_line("steer", "apply", "--namespace", "team-a", "--kubeconfig", kubeconfig).returncode == 0
    assert steered(kubeconfig, "team-a")
    command_line("cleanup", "--kubeconfig", kubeconfig)
    assert "nothing to remove" in command_line("steer", "delete", "--kubeconfig", kubeconfig).stdout


def test_without_policies_another_way_must_be_chosen(command_line: CommandLine) -> None:
    kubeconfig = str(command_line.sandbox("older", "--kubernetes", "1.32")["kubeconfig"])
    refused = command_line("steer", "apply", "--kubeconfig", kubeconfig)
    assert refused.returncode == 3
    assert "--steer-by-taint" in refused.stderr
    assert "winready steer serve" in refused.stderr
    assert tainted(kubeconfig) == set()
    command_line("sandbox", "down", "--name", "older")


def webhooks(kubeconfig: str) -> list[str]:
    async def go() -> list[dict[str, Any]]:
        async with Client.connect(find_target(kubeconfig)) as client:
            return await client.list(CONFIGURATIONS)

    return [item["metadata"]["name"] for item in asyncio.run(go())]


def test_serve_puts_its_webhook_into_force_and_takes_it_out(command_line: CommandLine, kubeconfig: str) -> None:
    options = ["--kubeconfig", kubeconfig, "--listen", "127.0.0.1", "--port", "0", "--name", "mine", "--apply"]
    process = command_line.start("steer", "serve", "https://127.0.0.1:9443", *options)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("steering pods at https://127.0.0.1:9443 (listening on 127.0.0.1 port ")
    assert process.stdout.readline() == (
        "MutatingWebhookConfiguration mine is in force in the namespaces that e2e.test makes (label e2e-run)\n"
    )
    assert webhooks(kubeconfig) == ["mine"]
    process.terminate()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert output == "MutatingWebhookConfiguration mine is gone\n"
    assert webhooks(kubeconfig) == []


def test_a_webhook_is_applied_with_the_authority_of_its_server(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path
) -> None:
    serve = ["steer", "serve", "https://127.0.0.1:9443", "--listen", "127.0.0.1", "--port", "0"]
    process = command_line.start(*serve, "--identity", str(tmp_path))
    assert process.stdout is not None
    said = process.stdout.readline()
    process.terminate()
    assert process.wait(timeout=60) == 0
    command = said.split("'")[1].removeprefix("winready ").split()
    assert command[-1] == str(tmp_path / "ca.crt")
    printed = command_line(*command, "--print")
    bundle = yaml.safe_load(printed.stdout)["webhooks"][0]["clientConfig"]["caBundle"]
    assert base64.b64decode(bundle) == (tmp_path / "ca.crt").read_bytes()
    assert webhooks(kubeconfig) == []
    applied = command_line(*command, KUBECONFIG=kubeconfig)
    assert applied.returncode == 0, applied.stderr
    assert webhooks(kubeconfig) == ["winready-steer"]
    assert (
        "MutatingWebhookConfiguration winready-steer is gone"
        in command_line("steer", "delete", "--kubeconfig", kubeconfig).stdout
    )
    command_line(*command, KUBECONFIG=kubeconfig)
    command_line("cleanup", "--kubeconfig", kubeconfig)
    assert webhooks(kubeconfig) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "http://a:1", "--apply"], "is not https://HOST:PORT"),
        (["serve", "https://a:1"], "say how it gets into force"),
        (["serve", "https://a:1", "--apply", "--identity", "x"], "say how it gets into force"),
        (["serve", "https://a:1", "--identity", "/dev/null/x"], "cannot be written"),
        (["serve", "https://a:1", "--listen", "192.0.2.1", "--identity", "{tmp}"], "cannot be listened on"),
        (["apply", "--webhook", "https://a:1"], "--webhook needs --ca"),
        (["apply", "--webhook", "https://a:1", "--ca", "/no/such"], "/no/such cannot be read"),
        (["apply", "--webhook", "https://a:1", "--ca", __file__], "is no certificate"),
        (["apply", "--ca", "x"], "--ca goes with --webhook"),
    ],
)
def test_mistakes_are_told(command_line: CommandLine, tmp_path: Path, arguments: list[str], words: str) -> None:
    result = command_line("steer", *(text.replace("{tmp}", str(tmp_path)) for text in arguments))
    assert result.returncode == 2
    assert words in result.stderr


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
