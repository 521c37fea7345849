"""``--for`` and ``--for-live``: the workloads that a run is to answer for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from winready.cli.choices import RunChoices
from winready.cli.options import apply, fail, say

if TYPE_CHECKING:
    from winready.cli.venue import Venue
    from winready.engine.options import Options
    from winready.engine.selection import Selection
    from winready.features.manifests import Manifests

workload_options = apply(
    click.option("--for", "for_paths", multiple=True, metavar="PATH|-",
                 help="Verify what the workloads in these manifests rely on, and answer for each of them."),
    click.option("--for-live", is_flag=True,
                 help="The same for the Windows workloads that the cluster has (-n: of one namespace)."),
    click.option("-n", "--namespace", metavar="NS", help="Namespace for --for-live, and of manifests that name none."),
    click.option("--try", "try_them", is_flag=True,
                 help="Also start each workload's own pod once on every judged node, with its images."),
)  # fmt: skip


def read_asked(choices: RunChoices) -> Manifests | None:
    """The manifests of ``--for``; ends the command when they cannot be used."""
    asked = bool(choices.for_paths) or choices.for_live
    if not asked and (choices.try_them or choices.namespace):
        raise click.UsageError(f"{'--try' if choices.try_them else '--namespace'} goes with --for or --for-live")
    if asked and (choices.categories or choices.requirements or choices.test_directory):
        raise click.UsageError("--for selects what the workloads rely on; leave --category and --requirement out")
    if asked and choices.rerun_failed:
        raise click.UsageError("--rerun-failed takes what an earlier run selected; leave --for out, or use --resume")
    if choices.try_them and choices.namespace_prefix:
        raise click.UsageError("--try makes a namespace for each workload; leave --namespace-prefix out")
    if choices.for_live and choices.sandbox:
        raise click.UsageError("--for-live asks a cluster that has workloads; a sandbox of its own has none")
    if not choices.for_paths:
        return None
    from winready.features.asking import read
    from winready.features.manifests import ManifestError

    try:
        return read(choices.for_paths, choices.namespace or "")
    except ManifestError as error:
        fail(str(error))


def relied_on(found: Manifests, skip: tuple[str, ...]) -> Selection:
    """What the workloads in these manifests rely on."""
    from winready.features.relying import workloads
    from winready.features.selecting import selection

    return selection(workloads(found), skip)


def with_workloads(options: Options, choices: RunChoices, found: Manifests | None, venue: Venue) -> Options:
    """The options of a run that answers for workloads; ends the command when the cluster cannot be asked."""
    if found is None and not choices.for_live:
        return options
    from winready.cluster.errors import ClusterError
    from winready.features.asking import look
    from winready.features.choosing import showing
    from winready.features.manifests import ManifestError
    from winready.features.selecting import selection

    try:
        asked = venue.run(
            look(
                venue.target,
                found,
                live=choices.for_live,
                namespace=choices.namespace or "",
                with_attempts=choices.try_them,
            )
        )
    except ManifestError as error:
        fail(str(error))
    except ClusterError as error:
        fail(error.message, error.remedy, code=3)
    for notice in asked.notices:
        say(f"note: {notice}", err=True)
    chosen = selection(asked.workloads, choices.skip)
    asking = dataclasses.replace(options, selection=chosen, workloads=asked.workloads, attempts=asked.attempts)
    return showing(asking, chosen.features)
