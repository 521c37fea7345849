"""``winready run``: verify a cluster and give the verdict."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.audience import audience_options, chosen_audience
from winready.cli.choices import RunChoices
from winready.cli.engines import chosen_engine, engine_options, read_cases, specification, upstream_options
from winready.cli.options import (
    cluster_options,
    colour_wanted,
    condition_options,
    document_option,
    fail,
    parallel_option,
    print_document,
    say,
    scale_option,
    selection_options,
)
from winready.cli.run_options import chosen_directory, run_options, wanted
from winready.engine import defaults

if TYPE_CHECKING:
    from winready.cluster.kubeconfig import Target
    from winready.deploy.following import Audience
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
@parallel_option
@click.option("--timeout", metavar="T", help="Give up what is not finished after this time, such as 45m.")
@scale_option
@condition_options
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("--resume", metavar="RUN", help="Take over what an earlier run of this cluster finished; do the rest.")
@click.option("--rerun-failed", metavar="RUN", help="Verify again only what did not pass in that run.")
@audience_options
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

    asked = {name: given.pop(name) for name in ("publish", "metrics_file", "metrics_listen")}
    choices = RunChoices(**given)
    try:
        with ExitStack() as stack:
            target, options, standard = _prepare(choices, stack)
            if choices.dry_run:
                from winready.cli.plan import show_plan

                sys.exit(show_plan(target, options, standard, choices.output))
            audience = chosen_audience(**asked)
            code = carry_out(target, options, standard, choices.report_dir, choices.output, audience)
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


def carry_out(
    target: Target,
    options: Options,
    standard: Specification,
    report_dir: str | None,
    output: str,
    audience: Audience | None = None,
) -> int:
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
        record, troubles = asyncio.run(_follow(target, options, standard, folder, output, audience))
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
    target: Target,
    options: Options,
    standard: Specification,
    folder: Path,
    output: str,
    audience: Audience | None,
) -> tuple[Record, dict[str, str]]:
    """Do the run; its record, and what went wrong with those who follow it."""
    from winready.cluster.client import Client
    from winready.engine.journal import Journal
    from winready.engine.run import Run
    from winready.report import junit
    from winready.report.files import Rendered
    from winready.report.following import Handler, follow
    from winready.report.html import page
    from winready.report.record import RecordFile
    from winready.report.terminal import make_terminal

    # With a document asked for, progress may only go where it does not mix with it.
    stream = sys.stdout if output == "text" else sys.stderr
    kept = RecordFile(folder)
    others: list[Handler] = [
        kept,
        make_terminal(stream, kept.record, options.settings.timing.scale, colour=colour_wanted()),
        Rendered(folder / junit.NAME, lambda: junit.render(kept.record)),
        Rendered(folder / page.NAME, lambda: page.render(kept.record)),
    ]
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.connect(target))
        the_run = Run(client, standard, options)
        if audience is not None:
            from winready.deploy.following import told

            others += await stack.enter_async_context(told(client, audience, kept.record, _complain))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, the_run.stop)
        troubles = await follow(the_run, Journal(folder), others)
    return kept.record, troubles


def _complain(text: str) -> None:
    say(text, err=True)
