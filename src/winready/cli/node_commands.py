"""``winready node join-command``, ``upgrade-command``, ``drain``, ``remove``: the operator's own part."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import click

from winready.cli.options import cluster_options, document_option, fail, parse_duration, print_document, say

if TYPE_CHECKING:
    from winready.cluster.client import Client
    from winready.node.joining import Joining
    from winready.node.opened import Opened

T = TypeVar("T")
Output = Literal["text", "json", "yaml"]
REMAINS = """what remains on the machine until '.\\node.ps1 reset' runs there: kubelet and containerd as services, the
kubelet's credentials (valid until they end by themselves), HNS networks, CNI files, firewall rules, images"""

bundle_option = click.option(
    "--bundle", type=click.Path(path_type=Path), metavar="DIR|ZIP", help="The bundle that 'winready node bundle' wrote."
)


def connected(
    kubeconfig: str | None, context: str | None, act: Callable[[Client], Awaitable[T]], rights: str = ""
) -> T:
    """Do something with the cluster; whatever keeps it from being done ends the command in one sentence.

    ``rights``: what to do where a right is missing, unless it is one of 'winready node'.
    """
    from winready.cluster.client import Client
    from winready.cluster.errors import ClusterError, ConfigError, Forbidden
    from winready.cluster.kubeconfig import find_target
    from winready.node.joining import forbidden
    from winready.node.parameters import ParametersError

    async def go() -> T:
        async with Client.connect(find_target(kubeconfig, context)) as client:
            return await act(client)

    try:
        return asyncio.run(go())
    except (ConfigError, ParametersError) as error:
        fail(error.message, error.remedy)
    except Forbidden as error:
        fail(error.message, rights or forbidden(error).remedy, code=3)
    except ClusterError as error:
        fail(error.message, error.remedy, code=3)
    except KeyboardInterrupt:
        say("interrupted", err=True)
        sys.exit(130)


def opened(bundle: Path) -> Opened:
    """The bundle of ``--bundle``; one that is damaged ends the command."""
    from winready.node.opened import open_bundle
    from winready.node.parameters import ParametersError

    try:
        return open_bundle(bundle)
    except ParametersError as error:
        fail(error.message, error.remedy)


@click.command("join-command")
@cluster_options
@bundle_option
@click.option("--ttl", default="30m", show_default=True, metavar="T", help="How long the token lives, at most 24h.")
@document_option
def join_command(kubeconfig: str | None, context: str | None, bundle: Path | None, ttl: str, output: Output) -> None:
    """Make a token and print the one line that joins a Windows machine.

    The line is for PowerShell, as administrator, in the bundle's folder on the machine. It holds the token, which lets
    whoever has it join machines until it ends: hand it on like a password. It is written nowhere else.

    \b
    winready node join-command --bundle worker.zip
    winready node join-command --bundle worker --ttl 10m -o json
    """
    from winready.node.joining import LONGEST, SHORTEST, join_line, make_joining
    from winready.node.skew import check_release, plain_release

    seconds = parse_duration(ttl, "--ttl") or 0
    if not SHORTEST <= seconds <= LONGEST:
        raise click.BadParameter(f"{ttl!r} is not between 1m and 24h", param_hint="--ttl")
    found = opened(bundle) if bundle else None

    async def act(client: Client) -> Joining:
        if found:
            # No token for a bundle that kubeadm would refuse on the machine.
            check_release(found.parameters.kubernetes, plain_release((await client.version()).get("gitVersion") or ""))
        return await make_joining(client, seconds)

    joining = connected(kubeconfig, context, act)
    line = join_line(joining, found)
    if output == "text":
        # As it is: nothing that a terminal could be steered with is in it, and it will be copied.
        click.echo(line)
        say(f"for {joining.endpoint}; the token ends at {joining.expires}", err=True)
    else:
        document = {
            "command": line,
            "token": joining.token,
            "expires": joining.expires,
            "endpoint": joining.endpoint,
            "ca_hashes": joining.ca_hashes,
            "bundle_digest": found.digest if found else None,
            "signed": joining.signed,
        }
        print_document(document, output)
    if found is None:
        say("note: without --bundle the line does not check which bundle it runs", err=True)
    elif str(found.parameters.endpoint) != joining.endpoint:
        say(f"note: the bundle is for {found.parameters.endpoint}, the cluster names {joining.endpoint}", err=True)
    if not joining.signed:
        say(
            "note: the cluster has not signed cluster-info with the token; until its controller manager runs the "
            "bootstrap signer, machines refuse to join",
            err=True,
        )


@click.command("upgrade-command")
@click.option("--bundle", type=click.Path(path_type=Path), metavar="DIR|ZIP", required=True,
              help="The bundle that 'winready node bundle' wrote.")  # fmt: skip
@document_option
def upgrade_command(bundle: Path, output: Output) -> None:
    """Print the one line that upgrades a worker from a newer bundle.

    The line is for PowerShell, as administrator, in the bundle's folder on the machine. It holds the digest of the
    bundle, so that nothing else is run, and no secret. No cluster is asked; the machine looks at versions itself.

    \b
    winready node upgrade-command --bundle worker-1.37.zip
    """
    from winready.node.joining import upgrade_line

    found = opened(bundle)
    line = upgrade_line(found.digest, found.entry_digest)
    if output == "text":
        click.echo(line)
    else:
        document = {"command": line, "kubernetes": found.parameters.kubernetes, "bundle_digest": found.digest}
        print_document(document, output)


@click.command()
@cluster_options
@click.argument("name")
@click.option("--delete-emptydir-data", is_flag=True, help="What pods keep in emptyDir volumes may be lost.")
@click.option("--delete-bare-pods", is_flag=True, help="Pods that nothing starts anew elsewhere may be lost.")
@click.option("--timeout", default="10m", show_default=True, metavar="T", help="How long to wait for pods to go.")
@document_option
def drain(
    kubeconfig: str | None,
    context: str | None,
    name: str,
    delete_emptydir_data: bool,
    delete_bare_pods: bool,
    timeout: str,
    output: Output,
) -> None:
    """Take a node out of use: no new pods, the old ones evicted as their disruption budgets allow.

    Pods of DaemonSets and static pods stay. Exit code 0 when the node is drained, 1 when pods are left after the time,
    2 when something may not be lost, and then nothing was changed.

    \b
    winready node drain windows-1
    winready node drain windows-1 --delete-emptydir-data --timeout 30m
    """
    from winready.node import draining

    patience = parse_duration(timeout, "--timeout") or 0
    allowed = draining.Allowed(emptydir=delete_emptydir_data, bare=delete_bare_pods)
    tell = say if output == "text" else lambda line: say(line, err=True)
    result = connected(
        kubeconfig,
        context,
        lambda client: draining.drain(client, name, allowed=allowed, timeout=patience, say=tell),
    )
    if output != "text":
        print_document({"node": name, "drained": not result.left, **vars(result)}, output)
    for pod, reason in sorted(result.left.items()):
        tell(f"still there: pod {pod}: {reason}")
    if result.left:
        tell(f"node {name} is not drained and takes no new pods; 'kubectl uncordon {name}' takes that back")
        sys.exit(1)
    tell(f"node {name} is drained: {len(result.evicted)} pods gone, {len(result.spared)} of DaemonSets spared")


@click.command()
@cluster_options
@click.argument("name")
@click.option("--force", is_flag=True, help="Remove it although it was not drained.")
@document_option
def remove(kubeconfig: str | None, context: str | None, name: str, force: bool, output: Output) -> None:
    """Delete the Node of a machine that leaves the cluster, after 'winready node drain'.

    \b
    winready node remove windows-1
    """
    from winready.node import draining

    pods = connected(kubeconfig, context, lambda client: draining.remove(client, name, force=force))
    if output != "text":
        print_document({"node": name, "pods_lost": pods, "remains": REMAINS.replace("\n", " ")}, output)
        return
    say(f"node {name} is gone from the cluster" + (f", and with it {len(pods)} pods" if pods else ""))
    say(REMAINS)
