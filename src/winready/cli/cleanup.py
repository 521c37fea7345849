"""``winready cleanup``: remove whatever any run left behind."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

import click

from winready.cli.options import cluster_options, fail, parse_duration, prefix_option, say
from winready.cli.patience import patiently

if TYPE_CHECKING:
    from winready.cluster.kubeconfig import Target
    from winready.cluster.node_folders import Swept
    from winready.cluster.settings import Settings

NOTHING = "nothing of winready is left on the cluster"


@click.command()
@cluster_options
@click.option("--run", "run_id", metavar="ID", help="Only what this run created (default: any run).")
@prefix_option
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing of it.")
@click.option("--objects-only", is_flag=True, help="Do not look at Windows nodes themselves: no pod is started.")
@click.option("--tolerate", "tolerations", multiple=True, metavar="K[=V][:EFFECT]", help="Tolerate this taint.")
@click.option("--image-registry", default="", metavar="R", help="Take images from this registry.")
@click.option(
    "--timeout",
    default="5m",
    show_default=True,
    metavar="T",
    help="How long to wait until objects, then nodes are done.",
)
def cleanup(
    kubeconfig: str | None,
    context: str | None,
    run_id: str | None,
    namespace_prefix: str,
    dry_run: bool,
    objects_only: bool,
    tolerations: tuple[str, ...],
    image_registry: str,
    timeout: str,
) -> None:
    """Remove whatever runs of winready left behind on the cluster, and make sure that it is gone.

    Objects first; then a short-lived pod on each Windows node removes folders of runs that are over from C:\\winready,
    and their firewall rules, local groups and host networking objects, and nothing else. Do not use it while a run is
    going on. Exit code 0 when nothing is left, 3 when something is or may be, or the cluster cannot be reached, 130
    when interrupted.

    \b
    winready cleanup
    winready cleanup --dry-run                       what there is to remove
    winready cleanup --run 261115-101500-ab12        after one run only
    winready cleanup --namespace-prefix team-a --run 261115-101500-ab12     in prepared namespaces, which stay
    """
    from winready.cluster.errors import ClusterError, ConfigError
    from winready.cluster.kubeconfig import find_target
    from winready.cluster.settings import Settings, parse_toleration
    from winready.report.folders import new_run_id

    patience = parse_duration(timeout, "--timeout") or 0
    try:
        found = tuple(parse_toleration(text) for text in tolerations)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--tolerate") from None
    settings = Settings(
        run_id=new_run_id(), image_registry=image_registry, tolerations=found, namespace_prefix=namespace_prefix
    )
    # Who sees prepared namespaces alone cannot tell whether the run of a folder on a node is going on.
    objects_only = objects_only or bool(namespace_prefix and run_id is None)
    try:
        target = find_target(kubeconfig, context)
        swept = asyncio.run(_clean(target, settings, run_id, patience, dry_run=dry_run, objects_only=objects_only))
    except ConfigError as error:
        fail(error.message, error.remedy)
    except ClusterError as error:
        fail(error.message, error.remedy, code=3)
    except asyncio.CancelledError:
        say("interrupted; what was started to look at nodes is gone, other things may still be there", err=True)
        sys.exit(130)
    for item in swept.removed:
        say(f"{'would be removed' if dry_run else 'removed'}: {item}")
    for item in swept.left:
        say(f"still there: {item}")
    if not swept.left and not (dry_run and swept.removed):
        say(NOTHING)
    sys.exit(3 if swept.left or (dry_run and swept.removed) else 0)


async def _clean(
    target: Target, settings: Settings, run_id: str | None, patience: float, *, dry_run: bool, objects_only: bool
) -> Swept:
    from winready.checks.rights import SPACES
    from winready.cluster.client import Client
    from winready.cluster.node_folders import sweep
    from winready.cluster.resources import NAMESPACES
    from winready.cluster.settings import RUN_LABEL

    task = asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel if task else lambda: None)
    async with Client.connect(target) as client:
        # A server that was never there, or does not know us, is said at once; one that goes away later is asked again.
        await patiently(target.server, client.version())
        if not settings.namespace_prefix:
            await client.list(NAMESPACES, labels=RUN_LABEL)
        client.transport.patience = patience
        prepared = [settings.namespace(space) for space in SPACES] if settings.namespace_prefix else []
        return await sweep(
            client,
            settings,
            run_id=run_id,
            patience=patience,
            dry_run=dry_run,
            objects_only=objects_only,
            prepared=prepared,
        )
