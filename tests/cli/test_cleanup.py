"""``winready cleanup`` after a run that could not clean up itself, as a user runs it."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import SPEED, CommandLine
from cli.test_run import _grant, _kubeconfig, left_behind
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CLUSTER_ROLES, PODS

HOSTPATH = "core.storage.hostpath-read"


def pods(kubeconfig: str) -> list[str]:
    async def ask() -> list[str]:
        async with Client.connect(find_target(kubeconfig)) as client:
            return [item["metadata"]["name"] for item in await client.list(PODS)]

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def own_cluster(command_line: CommandLine) -> str:
    """A cluster on which nobody else's runs are cleaned up."""
    return str(command_line.sandbox("cleanup")["kubeconfig"])


@pytest.fixture
def killed(command_line: CommandLine, own_cluster: str, tmp_path: Path) -> str:
    """The id of a run that was killed while it had files on both Windows nodes."""
    arguments = ["--requirement", HOSTPATH, "--time-scale", SPEED, "--report-dir", str(tmp_path)]
    process = command_line.start("run", "--kubeconfig", own_cluster, *arguments)
    # The reader of a node is made when its file is there.
    while not {"reader-1", "reader-2"} <= set(pods(own_cluster)):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (folder,) = tmp_path.iterdir()
    return folder.name


def folders(run: str) -> list[str]:
    return [f"folder C:\\winready\\{run} on node {node}" for node in ("windows-1", "windows-2")]


def said(output: str, what: str) -> list[str]:
    return sorted(line.removeprefix(f"{what}: ") for line in output.splitlines() if line.startswith(what))


def test_a_killed_run_is_cleaned_up_after_down_to_the_disks_of_nodes(
    command_line: CommandLine, own_cluster: str, killed: str
) -> None:
    where = ["--kubeconfig", own_cluster]
    spaces = left_behind(own_cluster)
    looked = command_line("cleanup", *where, "--dry-run")
    assert looked.returncode == 3, looked.stderr
    assert said(looked.stdout, "would be removed") == [*(f"Namespace {name}" for name in spaces), *folders(killed)]
    assert left_behind(own_cluster) == spaces
    objects = command_line("cleanup", *where, "--objects-only")
    assert (objects.returncode, objects.stdout) == (0, "nothing of winready is left on the cluster\n")
    assert left_behind(own_cluster) == []
    other = command_line("cleanup", *where, "--run", "261115-101500-ab12")
    assert (other.returncode, said(other.stdout, "removed")) == (0, [])
    cleaned = command_line("cleanup", *where)
    assert cleaned.returncode == 0, cleaned.stdout
    assert said(cleaned.stdout, "removed") == folders(killed)
    assert cleaned.stdout.endswith("nothing of winready is left on the cluster\n")
    again = command_line("cleanup", *where)
    assert (again.returncode, again.stdout) == (0, "nothing of winready is left on the cluster\n")
    assert left_behind(own_cluster) == []


def test_the_rights_for_cleanup_are_enough_and_without_them_it_says_what_to_do(
    command_line: CommandLine, own_cluster: str, killed: str, tmp_path: Path
) -> None:
    printed = command_line("rbac", "--for", "cleanup")
    manifests: list[dict[str, Any]] = list(yaml.safe_load_all(printed.stdout))
    target = find_target(own_cluster)
    assert target.ca is not None
    token = asyncio.run(_grant(own_cluster, manifests))
    where = ["--kubeconfig", _kubeconfig(tmp_path / "own", target.server, target.ca, token)]
    rules = manifests[2]["rules"]
    asyncio.run(_rules(own_cluster, [rule for rule in rules if "pods" not in rule["resources"]]))
    refused = command_line("cleanup", *where)
    assert refused.returncode == 3
    assert len(said(refused.stdout, "still there")) == 2, refused.stdout
    for line in said(refused.stdout, "still there"):
        assert line.startswith("unknown on node")
        assert "'winready rbac --for cleanup' prints the rights for it" in line
        assert "C:\\winready" in line
    assert left_behind(own_cluster) == []
    asyncio.run(_rules(own_cluster, rules))
    allowed = command_line("cleanup", *where)
    assert (allowed.returncode, said(allowed.stdout, "removed")) == (0, folders(killed)), allowed.stdout
    assert token not in allowed.stdout + refused.stdout


async def _rules(kubeconfig: str, rules: list[dict[str, Any]]) -> None:
    async with Client.connect(find_target(kubeconfig)) as client:
        await client.patch(CLUSTER_ROLES, "winready", {"rules": rules})


def test_an_interrupted_cleanup_leaves_nothing_of_its_own(command_line: CommandLine, own_cluster: str) -> None:
    process = command_line.start("cleanup", "--kubeconfig", own_cluster)
    while not left_behind(own_cluster):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, ""), errors
    assert errors.startswith("interrupted; ")
    assert left_behind(own_cluster) == []


def test_a_killed_cleanup_is_cleaned_up_after(command_line: CommandLine, own_cluster: str) -> None:
    process = command_line.start("cleanup", "--kubeconfig", own_cluster)
    while not left_behind(own_cluster):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate()
    cleaned = command_line("cleanup", "--kubeconfig", own_cluster)
    assert cleaned.returncode == 0, cleaned.stdout
    assert left_behind(own_cluster) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--tolerate", "a:b:c"], 2, "KEY[=VALUE][:EFFECT]"),
        (["--timeout", "soon"], 2, "is not a duration"),
        (["--kubeconfig", "{dead}"], 3, "127.0.0.1:9"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(
    command_line: CommandLine, own_cluster: str, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    dead = _kubeconfig(tmp_path / "dead", "https://127.0.0.1:9", find_target(own_cluster).ca or b"", "t")
    given = [text.format(dead=dead) for text in arguments]
    result = command_line("cleanup", "--kubeconfig", own_cluster, *given)
    assert result.returncode == code
    assert words in result.stderr
