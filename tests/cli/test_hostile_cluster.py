"""Every command that asks a cluster, against one that would like to steer the terminal or does not say what it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from cli.hostile_cluster import STEERING, hostile_cluster
from winready.cli.main import cli
from winready.cluster import transport

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
COMMANDS: dict[str, list[str]] = {
    "run": ["--timeout", "2s", "--requirement", "core.network.windows-to-linux-pod-ip", "--allow-small-cluster"],
    "doctor": [],
    "plan": [],
    "steer apply": ["--namespace", "web"],
    "steer delete": [],
    "steer serve": ["https://127.0.0.1:0", "--listen", "127.0.0.1", "--apply"],
    "capi serve": ["https://127.0.0.1:0", "--listen", "127.0.0.1", "--identity-secret", "web/tls", "--state", "gate"],
    "cleanup": ["--timeout", "1s"],
    "deploy capi": ["--image", "registry.example.com/winready:1", "--cluster-namespace", "fleet", "--apply"],
    "deploy cronjob": ["--schedule", "0 3 * * *", "--image", "registry.example.com/winready:1", "--apply"],
    "deploy job": ["--image", "registry.example.com/winready:1", "--apply"],
    "lint": ["--live", "--cluster"],
    "matrix": ["--verify", "--dry-run"],
    "matrix audit": [],
    "node bundle": ["--to", "worker.zip"],
    "node preflight": ["--no-registries"],
    "node join-command": [],
    "node addons apply": [],
    "node addons delete": [],
    "node addons diff": [],
    "node verify": ["windows", "--timeout", "1s"],
    "node drain": ["windows", "--timeout", "1s"],
    "node remove": ["windows"],
}
"""Each with what it needs to ask."""
SHORTER = {"cleanup": ["--dry-run", "--objects-only"], "run": ["--dry-run"]}
"""What they ask the version for is done without waiting as well."""
OWN_WORDS: set[str] = set()
"""Commands that tell nothing in the words of the cluster."""
VERSIONS: list[Any] = [
    {},
    [],
    {"gitVersion": ""},
    {"gitVersion": None},
    {"gitVersion": 5},
    {"gitVersion": ["v1.36.0"]},
    {"gitVersion": "unknown"},
    {"gitVersion": STEERING},
    {"gitVersion": f"v1.36.0{STEERING}"},
    {"gitVersion": f"v{'9' * 5000}.1.0"},
    {"gitVersion": f"v1.36.{'9' * 5000}"},
    b"<html>\xff Bad gateway\x1b]0;stolen\x07</html>",
]


def asking(group: click.Command, path: tuple[str, ...] = ()) -> set[str]:
    """Every command that takes a kubeconfig."""
    found = {" ".join(path)} if any("--kubeconfig" in option.opts for option in group.params) else set()
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            if (command := group.get_command(context, name)) is not None:
                found |= asking(command, (*path, name))
    return found


def ask(command: str, kubeconfig: str, *more: str) -> Result:
    """Run a command in this process, in the folder that this is."""
    return CliRunner().invoke(cli, [*command.split(), *COMMANDS[command], *more, "--kubeconfig", kubeconfig])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARTIFACTS", raising=False)


def sound(result: Result) -> None:
    """No traceback, a documented exit code, and nothing that steers a terminal."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2, 3), result.output
    assert CONTROL.search(result.output) is None, ascii(result.output)
    assert "stolen\a" not in result.output


def test_all_commands_that_ask_a_cluster_are_here() -> None:
    assert asking(cli) == COMMANDS.keys()


@pytest.mark.parametrize("command", COMMANDS)
def test_text_of_a_cluster_does_not_steer_the_terminal(tmp_path: Path, command: str) -> None:
    with hostile_cluster(tmp_path) as kubeconfig:
        result = ask(command, kubeconfig)
    sound(result)
    if command not in OWN_WORDS:
        assert "\N{REPLACEMENT CHARACTER}" in result.output, f"nothing of the cluster is told: {result.output}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_does_not_say_which_version_it_is_is_named_in_words(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody here answers better the second time; who is late on a busy machine is told of in words as well.
    monkeypatch.setattr(transport, "CALL_SECONDS", 0.1)
    for version in VERSIONS:
        with hostile_cluster(tmp_path, version) as kubeconfig:
            sound(ask(command, kubeconfig, *SHORTER.get(command, ())))
