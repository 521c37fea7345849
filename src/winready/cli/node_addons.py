"""``winready node addons``: kube-proxy and Flannel for Windows nodes on the cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from winready.cli.node_commands import connected
from winready.cli.node_parameters import of_bundle, parameter_options, settled
from winready.cli.options import cluster_options, document_option, parse_duration, print_document, say

if TYPE_CHECKING:
    from winready.cluster.applying import Difference
    from winready.cluster.client import Client, Object

Output = Literal["text", "json", "yaml"]
force_option = click.option("--force", is_flag=True, help="Take over fields that somebody else has changed.")
policy_option = click.option(
    "--policy",
    type=click.Choice(["warn", "deny"]),
    default="warn",
    show_default=True,
    help="HostProcess and hostPath in namespaces that are not labelled privileged: warn, or refuse such pods.",
)


@click.group()
def addons() -> None:
    """kube-proxy and Flannel for Windows nodes, as HostProcess DaemonSets in the namespace winready-node.

    They run the programs that '.\\node.ps1 join' has verified on the node, in the official HostProcess base image.
    """


@addons.command("apply")
@cluster_options
@parameter_options
@policy_option
@force_option
@click.option("--wait", metavar="T", help="Wait until every node runs them and nothing older, at most so long.")
@document_option
def apply_command(
    kubeconfig: str | None,
    context: str | None,
    policy: str,
    force: bool,
    wait: str | None,
    output: Output,
    **given: Any,
) -> None:
    """Put the add-ons on the cluster, or bring them up to date; what fits already is not written.

    Pods start anew, node by node, when the bundle carries other programs. With --wait, exit code 1 says that some node
    does not run them after the time.

    \b
    winready node addons apply --bundle worker.zip
    winready node addons apply --mode l2bridge --policy deny
    winready node addons apply --cni none --network-name Calico      kube-proxy alone
    """

    patience = parse_duration(wait, "--wait")

    async def act(client: Client) -> tuple[list[Difference], list[str]]:
        from winready.node import applying

        wanted = await _wanted(client, given, policy)
        await applying.check_alone(client, wanted)
        done = await applying.apply(client, wanted, force=force)
        return done, await applying.rolled_out(client, wanted, patience=patience) if patience is not None else []

    done, left = connected(kubeconfig, context, act)
    _show(done, output)
    for line in left:
        say(f"not yet: {line}", err=output != "text")
    if left:
        sys.exit(1)


@addons.command("diff")
@cluster_options
@parameter_options
@policy_option
@force_option
@document_option
def diff_command(
    kubeconfig: str | None, context: str | None, policy: str, force: bool, output: Output, **given: Any
) -> None:
    """Show what 'apply' would change, and change nothing. Exit code 0: nothing, 1: something, 2: it would refuse."""

    async def act(client: Client) -> list[Difference]:
        from winready.node import applying

        wanted = await _wanted(client, given, policy)
        await applying.check_alone(client, wanted)
        return await applying.differences(client, wanted, force=force)

    found = connected(kubeconfig, context, act)
    _show(found, output, lines=True)
    sys.exit(1 if any(item.change != "unchanged" for item in found) else 0)


@addons.command("delete")
@cluster_options
@document_option
def delete_command(kubeconfig: str | None, context: str | None, output: Output) -> None:
    """Remove exactly what 'apply' put on the cluster. Windows pods lose their network with it."""

    async def act(client: Client) -> list[Difference]:
        from winready.node import applying

        return await applying.delete(client)

    done = connected(kubeconfig, context, act)
    _show(done, output)
    if not done and output == "text":
        say("there was nothing to remove")


async def _wanted(client: Client, given: dict[str, Any], policy: str) -> list[Object]:
    from winready.node.addons import has_network, has_policies, objects
    from winready.node.discovery import look
    from winready.node.parameters import ParametersError
    from winready.node.settling import check_fits

    found = await look(client)
    parameters = of_bundle(given)
    if parameters is not None:
        check_fits(parameters, found)
    else:
        parameters = await settled(client, given, found)
    if not has_policies(parameters):
        say("note: the policy about privileged pods needs Kubernetes 1.30; it is left out", err=True)
    if not has_network(parameters):
        raise ParametersError(
            "kube-proxy must be told the HNS network of your own pod network",
            "name it, as in --network-name Calico, here or when the bundle is made",
        )
    return objects(parameters, enforce=policy == "deny")


def _show(found: list[Difference], output: Output, *, lines: bool = False) -> None:
    if output != "text":
        documents = [
            {"object": item.title, "change": item.change, "lines": list(item.lines)}
            for item in found
        ]  # fmt: skip
        print_document({"changes": documents}, output)
        return
    for item in found:
        say(f"{item.change}: {item.title}")
        if lines or item.change == "kept":
            for line in item.lines:
                say(f"  {line}")
    if found and all(item.change == "unchanged" for item in found):
        say("nothing changes" if lines else "nothing was changed")
