"""``winready node preflight``: what would keep a Windows machine from joining, beforehand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from winready.cli.node_commands import connected
from winready.cli.node_parameters import of_bundle, parameter_options, settled
from winready.cli.options import cluster_options, document_option, print_document, say

if TYPE_CHECKING:
    from winready.cluster.client import Client
    from winready.node.findings import Finding


@click.command()
@cluster_options
@parameter_options
@click.option("--windows-build", metavar="B", help="Build of the machine, such as 20348 (Server 2022).")
@click.option("--no-registries", is_flag=True, help="Ask no registry about images.")
@click.option("--name", default="", metavar="NODE", help="Name that the new node is to have.")
@document_option
def preflight(
    kubeconfig: str | None,
    context: str | None,
    windows_build: str | None,
    name: str,
    no_registries: bool,
    output: Literal["text", "json", "yaml"],
    **given: Any,
) -> None:
    """Look for what would keep a Windows machine from joining or working; nothing is changed.

    Versions, addresses, Flannel on the Linux side, tokens, add-ons, and whether the registries have the images for the
    machine's build: they are asked from here, without an account, through the proxies of the bundle or else of this
    computer. What could not be looked at is 'unknown', never fine. Exit code 0: nothing was found in the way, 1:
    something was, 2: wrong usage, 3: the cluster cannot be asked.

    \b
    winready node preflight
    winready node preflight --bundle worker.zip --windows-build 26100 --name win-3 -o json
    """
    from winready.spec.windows import build_number

    build = build_number(windows_build) if windows_build else None
    if windows_build and build is None:
        raise click.BadParameter(f"{windows_build!r} is not a build of Windows", param_hint="--windows-build")
    from_bundle = of_bundle(given)

    async def act(client: Client) -> list[Finding]:
        from winready.node.discovery import look
        from winready.node.findings import Finding
        from winready.node.parameters import ParametersError
        from winready.node.preflight import Machine, examine

        found = await look(client)
        try:
            parameters = from_bundle or await settled(client, given, found)
        except ParametersError as error:
            return [Finding("parameters", "problem", error.message, error.remedy)]
        return await examine(client, parameters, found, Machine(build, name), registries=not no_registries)

    findings = connected(kubeconfig, context, act)
    problems = sum(item.level == "problem" for item in findings)
    if output != "text":
        print_document({"problems": problems, "findings": [vars(item) for item in findings]}, output)
    else:
        _show(findings, problems)
    sys.exit(1 if problems else 0)


def _show(findings: list[Finding], problems: int) -> None:
    for item in findings:
        say(f"{item.level:<8} {item.subject:<10} {item.message}")
        if item.todo:
            say(f"{'':<19} {item.todo}")
    unknown = sum(item.level == "unknown" for item in findings)
    more = f"; {unknown} could not be looked at" if unknown else ""
    say(f"{problems or 'no'} problem{'' if problems == 1 else 's'}{more}")
