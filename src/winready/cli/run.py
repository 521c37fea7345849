"""``winready run``: verify a cluster and give the verdict."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.choices import RunChoices
from winready.cli.engines import chosen_engine, engine_options, read_cases, specification, upstream_options
from winready.cli.options import (
    cluster_options,
    colour_wanted,
    document_option,
    fail,
    print_document,
    say,
    selection_options,
)
from winready.cli.run_options import chosen_directory, run_options, wanted
from winready.engine import defaults

if TYPE_CHECKING:
    from winready.cluster.kubeconfig import Target
    from winready.engine.options import Options
    from winready.report.record import Record
    from winready.spec.model import Specification

FILES = {"run.json", "junit.xml", "report.html"}


@click.command()
@cluster_options
@click.option("--sandbox", is_flag=True, help="Verify a simulated cluster of its own, started and stopped by the run.")
@click.option("--speed", default="25", show_default=True, metavar="X", help="Speed of that sandbox, or 'max'.")
@click.option("--fault", "faults", multiple=True, metavar="NAME[@NODE]", help="Break that sandbox this way first.")
@selection_options
@engine_options
@click.option("--report-dir", metavar="DIR", help="Where run folders go (default: $ARTIFACTS, else ./winready-runs).")
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=defaults.PARALLEL,
    show_default=True,
    help="Checks at the same time.",
)
@click.option("--timeout", metavar="T", help="Give up what is not finished after this time, such as 45m.")
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0.01, max=100),
    metavar="X",
    help="Divide every wait by this (default: 1, on a sandbox its speed).",
)
@click.option("--tolerate", "tolerations", multiple=True, metavar="K[=V][:EFFECT]", help="Tolerate this taint.")
@click.option("--image-registry", default="", metavar="R", help="Take images from this registry.")
@click.option("--air-gapped", is_flag=True, help="The cluster has no way to the internet, on purpose.")
@click.option("--allow-downtime", is_flag=True, help="Reboots may take away the last replica of others' workloads.")
@click.option("--allow-small-cluster", is_flag=True, help="Judge a cluster with fewer than 2 + 2 nodes all the same.")
@click.option(
    "--windows-builds",
    type=click.Choice(["draft", "published", "current"]),
    help="Which text says what Windows is allowed: 1809-2022, 2019 and 2022, or 2022 and 2025  "
    f"[default: {defaults.WINDOWS_BUILDS}].",
)
@click.option("--linux-conformance", metavar="FILE", help="Result of Linux conformance: JUnit XML or Sonobuoy archive.")
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("--resume", metavar="RUN", help="Take over what an earlier run of this cluster finished; do the rest.")
@click.option("--rerun-failed", metavar="RUN", help="Verify again only what did not pass in that run.")
@document_option
def run(**given: Any) -> None:
    """Verify a cluster against the standard and say Pass or Fail.

    Exit code: 0 Pass, 1 something failed, 2 wrong usage, 3 something could not be judged or was left behind, 130
    interrupted.

    \b
    winready run                                     the 24 core requirements on the current context
    winready run --sandbox                           the same on a simulated cluster, in seconds
    winready run --category core.network -o json     one category, for machines
    winready run --rerun-failed 261115-101500-ab12   only what did not pass
    winready run --engine both --e2e-binary ./e2e.test   checks and upstream tests must agree
    """
    from winready.cluster.errors import ConfigError
    from winready.engine.journal import Unreadable
    from winready.engine.selection import SelectionError
    from winready.report.folders import RunNotFound

    choices = RunChoices(**given)
    try:
        with ExitStack() as stack:
            target, options, standard = _prepare(choices, stack)
            if choices.dry_run:
                from winready.cli.plan import show_plan

                sys.exit(show_plan(target, options, standard, choices.output))
            code = carry_out(target, options, standard, report_dir=choices.report_dir, output=choices.output)
    except ConfigError as error:
        fail(error.message, error.remedy)
    except (SelectionError, RunNotFound, Unreadable) as error:
        fail(str(error))
    sys.exit(code)


def _prepare(choices: RunChoices, stack: ExitStack) -> tuple[Target, Options, Specification]:
    from winready.cluster.kubeconfig import find_target
    from winready.report import folders

    run_id = folders.new_run_id()
    scale = choices.time_scale
    engine = chosen_engine(choices)
    cases = read_cases(choices)
    domain = chosen_directory(choices.active_directory)
    if choices.sandbox:
        from winready.cli.own_sandbox import own_sandbox
        from winready.proof.furnishing import furnished, own_domain

        if choices.kubeconfig or choices.context:
            raise click.UsageError("--sandbox verifies a cluster of its own; leave --kubeconfig and --context out")
        offers = furnished(specification(cases), wanted(choices))
        domain = domain or own_domain(offers)
        kubeconfig, speed = stack.enter_context(own_sandbox(f"run-{run_id}", choices.speed, choices.faults, offers))
        target = find_target(str(kubeconfig))
        scale = scale or speed
    elif choices.faults:
        raise click.UsageError("--fault breaks a sandbox; it goes with --sandbox")
    else:
        target = find_target(choices.kubeconfig, choices.context)
    output = folders.report_folder(choices.report_dir) / run_id / "upstream"
    upstream = upstream_options(choices, engine, target, output, cases)
    options = run_options(choices, run_id, scale or defaults.TIME_SCALE, engine, upstream, domain)
    return target, options, specification(cases)


def carry_out(target: Target, options: Options, standard: Specification, *, report_dir: str | None, output: str) -> int:
    """Do a run, show it, write its folder; the exit code."""
    from winready.engine.verdict import EXIT_BLOCKED
    from winready.report import folders
    from winready.report.following import CannotStart
    from winready.report.terminal import TERMINAL

    base = folders.report_folder(report_dir)
    try:
        folder = folders.create(base, options.settings.run_id)
    except OSError as error:
        fail(f"the report folder {base} cannot be written: {error.strerror}", "choose another with --report-dir")
    try:
        record, troubles = asyncio.run(_follow(target, options, standard, folder, output))
    except CannotStart as error:
        fail(str(error), "choose another place with --report-dir")
    try:
        if output != "text":
            print_document(record, output)
        elif not FILES & troubles.keys():
            click.echo(f"report: {folder / 'report.html'}, also run.json and junit.xml there")
        sys.stdout.flush()
    except OSError as error:
        if TERMINAL not in troubles:
            troubles.setdefault("standard output", f"standard output cannot be written: {error.strerror}")
        # Or Python would try once more at its end, and complain in a way of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _last_words(record, troubles, folder, output)
    return record.exit_code or (EXIT_BLOCKED if troubles else 0)


def _last_words(record: Record, troubles: dict[str, str], folder: Path, output: str) -> None:
    """What nobody should overlook, at the very end and beside any document."""
    from winready.report.terminal import TERMINAL
    from winready.report.words import leftovers_line

    unheard = not {"standard output", TERMINAL}.isdisjoint(troubles)
    with suppress(OSError):
        for trouble in troubles.values():
            say(f"error: {trouble}", err=True)
        if troubles and not record.leftovers:
            say(f"       the cluster was cleaned up; what could be written is in {folder}", err=True)
        if record.leftovers:
            # The last line of what people read, whether or not that is kept.
            say(leftovers_line(record), err=output != "text" or unheard)


async def _follow(
    target: Target, options: Options, standard: Specification, folder: Path, output: str
) -> tuple[Record, dict[str, str]]:
    """Do the run; its record, and what went wrong with those who follow it."""
    from winready.cluster.client import Client
    from winready.engine.journal import Journal
    from winready.engine.run import Run
    from winready.report import junit
    from winready.report.files import Rendered
    from winready.report.following import follow
    from winready.report.html import page
    from winready.report.record import RecordFile
    from winready.report.terminal import make_terminal

    # With a document asked for, progress may only go where it does not mix with it.
    stream = sys.stdout if output == "text" else sys.stderr
    kept = RecordFile(folder)
    others = [
        kept,
        make_terminal(stream, kept.record, options.settings.timing.scale, colour=colour_wanted()),
        Rendered(folder / junit.NAME, lambda: junit.render(kept.record)),
        Rendered(folder / page.NAME, lambda: page.render(kept.record)),
    ]
    async with Client.connect(target) as client:
        the_run = Run(client, standard, options)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, the_run.stop)
        troubles = await follow(the_run, Journal(folder), others)
    return kept.record, troubles
