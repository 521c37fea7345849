"""``winready steer``: pods without an OS selector go to Windows nodes, in chosen namespaces only."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from winready.cli.options import apply, cluster_options, fail

if TYPE_CHECKING:
    from winready.cluster.client import Client

NAME = "winready-steer"
steer_options = apply(
    cluster_options,
    click.option("--name", default=NAME, show_default=True, help="Name of the policy; several can be there."),
    click.option("--steer-by-taint", is_flag=True,
                 help="Taint the Linux nodes instead: concerns everybody's new pods."),
)  # fmt: skip


@click.group()
def steer() -> None:
    """Send pods without an OS selector to Windows nodes, in chosen namespaces only."""


@steer.command("apply")
@steer_options
@click.option("--namespace", "namespaces", multiple=True, metavar="NS",
              help="Only pods of this namespace (default: of the namespaces that e2e.test makes).")  # fmt: skip
def apply_command(
    kubeconfig: str | None, context: str | None, name: str, steer_by_taint: bool, namespaces: tuple[str, ...]
) -> None:
    """Put steering into force until 'winready steer delete' or 'winready cleanup'.

    A policy of the API server gives a Windows node selector to new pods that choose no place themselves. It ignores
    its own failures and touches no pod outside the chosen namespaces.

    \b
    winready steer apply
    winready steer apply --namespace team-a --namespace team-b
    """

    async def act(client: Client) -> list[str]:
        from winready.cluster import steering
        from winready.cluster.settings import RUN_LABEL

        if steer_by_taint:
            if namespaces:
                raise click.UsageError("a taint keeps pods of every namespace off Linux; leave --namespace out")
            nodes = await steering.taint_linux(client, name)
            return [f"node {node} tainted {steering.TAINT}={name}:NoSchedule" for node in nodes]
        version = await _served(client)
        await steering.apply_policy(client, version, name, {RUN_LABEL: name}, list(namespaces))
        where = ", ".join(namespaces) or "the namespaces that e2e.test makes (label e2e-run)"
        return [f"MutatingAdmissionPolicy {name} is in force in {where}"]

    _do(kubeconfig, context, act)


@steer.command("delete")
@steer_options
def delete_command(kubeconfig: str | None, context: str | None, name: str, steer_by_taint: bool) -> None:
    """Take steering out of force again. Nothing to remove is no mistake."""

    async def act(client: Client) -> list[str]:
        from winready.cluster import steering

        lines = [f"node {node} is no longer tainted" for node in await steering.remove_taints(client, name)]
        version = await steering.served_version(client)
        if version and not steer_by_taint and await steering.delete_policy(client, version, name):
            lines.append(f"MutatingAdmissionPolicy {name} is gone")
        return lines or ["there was nothing to remove"]

    _do(kubeconfig, context, act)


async def _served(client: Client) -> str:
    from winready.cluster.errors import ClusterError
    from winready.cluster.steering import served_version

    version = await served_version(client)
    if version is None:
        raise ClusterError(
            "this API server has no MutatingAdmissionPolicy (on by default since Kubernetes 1.36)",
            "--steer-by-taint keeps pods off the Linux nodes by a taint instead",
        )
    return version


def _do(kubeconfig: str | None, context: str | None, act: Callable[[Client], Awaitable[list[str]]]) -> None:
    from winready.cluster.client import Client
    from winready.cluster.errors import ClusterError, ConfigError
    from winready.cluster.kubeconfig import find_target

    async def connected() -> list[str]:
        async with Client.connect(find_target(kubeconfig, context)) as client:
            return await act(client)

    try:
        lines = asyncio.run(connected())
    except ConfigError as error:
        fail(error.message, error.remedy)
    except ClusterError as error:
        fail(error.message, error.remedy, code=3)
    for line in lines:
        click.echo(line)
    sys.exit(0)
