"""``winready rbac``: the least rights that a run, cleaning up after one or ``winready node`` needs, as YAML."""

from __future__ import annotations

from typing import Any

import click

from winready.cli.options import print_document, say, selection_options
from winready.cli.run_options import chosen_directory, to_be_granted

CHOSEN = ("categories", "requirements", "features", "skip", "allow_disruptive", "active_directory", "namespace_prefix")


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
@selection_options
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="F|all",
    help="Rights of 'winready matrix --verify' with the same words, or for every feature.",
)
@click.option("--user", metavar="NAME", help="Bind the role to this user instead of a service account.")
def rbac(name: str, namespace: str, purpose: str, user: str | None, **given: Any) -> None:
    """Print the least rights that a run needs, as YAML for kubectl apply -f -.

    Tell it what you tell the run. With --namespace-prefix the namespaces of the run are printed, too, and the rights
    hold there alone: the run makes none and deletes none. What takes rights over the whole cluster is then blocked.

    \b
    winready rbac | kubectl apply -f -
    winready rbac --profile full --allow-disruptive --active-directory domain.yaml | kubectl apply -f -
    winready rbac --namespace-prefix team-a | kubectl apply -f -        then: winready run --namespace-prefix team-a
    winready rbac --feature all | kubectl apply -f -        what 'winready matrix --verify' needs
    winready rbac --for cleanup --name winready-cleanup | kubectl apply -f -
    winready rbac --for node | kubectl apply -f -           one role for each command; 'verify' needs those of a run
    """
    if purpose != "run" and (told := [key for key in CHOSEN if given[key]]):
        plural = {"categories": "category", "requirements": "requirement", "features": "feature"}
        option = plural.get(told[0], told[0]).replace("_", "-")
        raise click.UsageError(f"--for {purpose} does not depend on requirements; leave --{option} out")
    if purpose == "node":
        from winready.node.rights import manifest as of_node

        documents = of_node(name, namespace, user)
    elif purpose == "cleanup":
        from winready.cluster.rights import CLEANUP, manifest

        documents = manifest(name, namespace, user, CLEANUP)
    else:
        documents = _of_run(name, namespace, user, given)
    click.echo("---\n", nl=False)
    for number, document in enumerate(documents):
        if number:
            click.echo("---")
        print_document(document, "yaml")


def _of_run(name: str, namespace: str, user: str | None, given: dict[str, Any]) -> list[dict[str, Any]]:
    from winready.checks.rights import beyond, prepared_namespaces, rights_to_grant
    from winready.cluster.rights import manifest

    requirements, settings = to_be_granted(given, chosen_directory(given["active_directory"]))
    documents = manifest(name, namespace, user, rights_to_grant(requirements, settings))
    if not settings.namespace_prefix:
        return documents
    for requirement, strong in beyond(requirements, settings).items():
        say(f"{requirement} will be blocked: it takes {', '.join(map(str, strong))} in the whole cluster", err=True)
    return [*prepared_namespaces(requirements, settings), *documents]
