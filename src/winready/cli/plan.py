"""``winready plan``: what a run would do, without doing it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.choices import PlanChoices
from winready.cli.engines import chosen_engine, engine_options, read_cases, specification, upstream_options
from winready.cli.options import cluster_options, document_option, fail, print_document, selection_options
from winready.cli.run_options import chosen_directory, plan_options

if TYPE_CHECKING:
    from winready.cluster.kubeconfig import Target
    from winready.engine.options import Options
    from winready.engine.plan import Plan
    from winready.spec.model import Specification


@click.command()
@cluster_options
@selection_options
@engine_options
@document_option
def plan(**given: Any) -> None:
    """Show what would run, on which nodes, with which verifier, and what is blocked and why.

    Changes nothing on the cluster. Exit code 0 when something would run, 3 when nothing would.

    \b
    winready plan
    winready plan --category Core.Network --nodes all
    """
    from winready.cluster.errors import ConfigError
    from winready.cluster.kubeconfig import find_target
    from winready.engine.selection import SelectionError

    choices = PlanChoices(**given)
    try:
        engine, cases = chosen_engine(choices), read_cases(choices)
        directory = chosen_directory(choices.active_directory)
        target = find_target(choices.kubeconfig, choices.context)
        upstream = upstream_options(choices, engine, target, Path(), cases)
        options = plan_options(choices, engine, upstream, directory)
        code = show_plan(target, options, specification(cases), choices.output)
    except ConfigError as error:
        fail(error.message, error.remedy)
    except SelectionError as error:
        fail(str(error))
    sys.exit(code)


def show_plan(target: Target, options: Options, standard: Specification, output: str) -> int:
    """Print the plan of a run; returns the exit code."""
    from winready.cluster.errors import ClusterError
    from winready.report.words import plan_lines
    from winready.upstream.binary import BinaryError

    try:
        made = asyncio.run(_make(target, options, standard))
    except (ClusterError, BinaryError) as error:
        fail(error.message, error.remedy, code=3)
    if output == "text":
        for line in plan_lines(made, options.settings.timing.scale):
            click.echo(line)
    else:
        print_document(made, output)
    return 0 if any(item.action == "run" for item in made.requirements) else 3


async def _make(target: Target, options: Options, standard: Specification) -> Plan:
    from winready.cluster.client import Client
    from winready.cluster.inventory import take_inventory
    from winready.engine.run import plan_run
    from winready.engine.selection import select
    from winready.engine.with_upstream.prepare import prepare

    requirements = select(standard, options.selection)
    async with Client.connect(target) as client:
        inventory = await take_inventory(client, node_selector=options.node_selector)
        prepared = await prepare(client, options.upstream, inventory) if options.upstream else None
        return plan_run(standard, requirements, inventory, options, prepared)
