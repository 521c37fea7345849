"""``winready cleanup``: remove whatever any run left behind."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from winready.cli.options import cluster_options, fail, parse_duration

if TYPE_CHECKING:
    from winready.cluster.kubeconfig import Target


@click.command()
@cluster_options
@click.option("--run", "run_id", metavar="ID", help="Only what this run created (default: any run).")
@click.option("--timeout", default="5m", show_default=True, metavar="T", help="How long to wait until it is gone.")
def cleanup(kubeconfig: str | None, context: str | None, run_id: str | None, timeout: str) -> None:
    """Remove whatever runs of winready left behind on the cluster, and make sure that it is gone.

    Do not use it while a run is going on. Exit code 0 when nothing is left, 3 otherwise.
    """
    from winready.cluster.errors import ConfigError
    from winready.cluster.kubeconfig import find_target

    patience = parse_duration(timeout, "--timeout") or 0
    try:
        left = asyncio.run(_clean(find_target(kubeconfig, context), run_id, patience))
    except ConfigError as error:
        fail(error.message, error.remedy)
    for item in left:
        click.echo(f"still there: {item}")
    if not left:
        click.echo("nothing of winready is left on the cluster")
    sys.exit(3 if left else 0)


async def _clean(target: Target, run_id: str | None, patience: float) -> list[str]:
    from winready.cluster.cleanup import clean_up
    from winready.cluster.client import Client

    async with Client.connect(target) as client:
        return await clean_up(client, run_id=run_id, patience=patience, pause=0.3)
