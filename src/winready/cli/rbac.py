"""``winready rbac``: the least rights that a run needs, as YAML."""

from __future__ import annotations

import click

from winready.cli.options import print_document


@click.command()
@click.option("--name", default="winready", show_default=True, help="Name of the role and of the service account.")
@click.option("--namespace", default="winready", show_default=True, help="Namespace of the service account.")
@click.option("--user", metavar="NAME", help="Bind the role to this user instead of a service account.")
def rbac(name: str, namespace: str, user: str | None) -> None:
    """Print the least rights that a run needs, as YAML for kubectl apply -f -.

    \b
    winready rbac | kubectl apply -f -
    """
    from winready.cluster.rights import manifest

    click.echo("---\n", nl=False)
    for number, document in enumerate(manifest(name, namespace, user)):
        if number:
            click.echo("---")
        print_document(document, "yaml")
