"""``winready rbac``: the least rights that a run, cleaning up after one or ``winready node`` needs, as YAML."""

from __future__ import annotations

from pathlib import Path

import click

from winready.cli.options import print_document
from winready.cli.run_options import chosen_directory


@click.command()
@click.option("--name", default="winready", show_default=True, help="Name of the role and of the service account.")
@click.option("--namespace", default="winready", show_default=True, help="Namespace of the service account.")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["run", "cleanup", "node"]),
    default="run",
    show_default=True,
    help="Rights for runs, which include cleaning up, for 'winready cleanup' alone, or for 'winready node'.",
)
@click.option(
    "--active-directory",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also what a run with this file needs: to let its pods use the credential specs that are named there.",
)
@click.option("--user", metavar="NAME", help="Bind the role to this user instead of a service account.")
def rbac(name: str, namespace: str, purpose: str, active_directory: Path | None, user: str | None) -> None:
    """Print the least rights that a run needs, as YAML for kubectl apply -f -.

    \b
    winready rbac | kubectl apply -f -
    winready rbac --for cleanup --name winready-cleanup | kubectl apply -f -
    winready rbac --active-directory domain.yaml | kubectl apply -f -
    winready rbac --for node | kubectl apply -f -           one role for each command; 'verify' needs those of a run
    """
    if purpose == "node":
        from winready.node.rights import manifest as of_node

        if active_directory:
            raise click.UsageError("winready node needs nothing of a domain; leave --active-directory out")
        documents = of_node(name, namespace, user)
    else:
        from winready.cluster.rights import manifest

        if active_directory and purpose == "cleanup":
            raise click.UsageError("cleaning up needs nothing of a domain; leave --active-directory out")
        documents = manifest(name, namespace, user, purpose, chosen_directory(active_directory))
    click.echo("---\n", nl=False)
    for number, document in enumerate(documents):
        if number:
            click.echo("---")
        print_document(document, "yaml")
