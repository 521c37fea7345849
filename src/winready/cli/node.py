"""``winready node``: from a bare Windows machine to a proven worker."""

from __future__ import annotations

import click

from winready.cli.main import LazyGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "bundle": ("winready.cli.node_bundle:bundle", "One folder for the Windows machine: scripts, parameters, digests."),
    "preflight": ("winready.cli.node_preflight:preflight", "What would keep a machine from joining, beforehand."),
    "join-command": ("winready.cli.node_commands:join_command", "A short-lived token and the one line that joins."),
    "upgrade-command": ("winready.cli.node_commands:upgrade_command", "The one line that upgrades a worker."),
    "addons": ("winready.cli.node_addons:addons", "kube-proxy and Flannel for Windows on the cluster."),
    "verify": ("winready.cli.node_verify:verify", "Wait for one node and judge it: Pass or Fail."),
    "drain": ("winready.cli.node_commands:drain", "Cordon a node and evict what runs there."),
    "remove": ("winready.cli.node_commands:remove", "Take a node that was drained out of the cluster."),
}


@click.group(cls=LazyGroup, commands_table=COMMANDS)
def node() -> None:
    """From a bare Windows machine to a proven worker."""
