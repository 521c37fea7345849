"""``winready run``: verify a cluster and give the verdict."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.audience import audience_options, chosen_audience
from winready.cli.choices import RunChoices
from winready.cli.doctor import first_look, tell
from winready.cli.engines import chosen_engine, read_cases, specification, upstream_options
from winready.cli.flags import place_flags, resume_flags, run_flags
from winready.cli.options import colour_wanted, fail, loudness, say
from winready.cli.places import writing
from winready.cli.run_options import chosen_directory, run_options, wanted
from winready.cli.sharing import prow_place, say_sent, send_build, sending
from winready.cli.tables import print_record
from winready.cli.workloads import read_asked, relied_on, with_workloads
from winready.engine import defaults

if TYPE_CHECKING:
    from winready.cli.venue import Venue
    from winready.deploy.following import Audience
    from winready.engine.options import Options
    from winready.report.record import Record
    from winready.report.sharing.sending import Sender
    from winready.spec.model import Specification
    from winready.store.addresses import Place

SPEED = "25"
"""Of a sandbox that goes by the clock on the wall without being told how fast."""
FILES = {"run.json", "junit.xml", "report.html"}


@click.command()
@run_flags
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("--prow", metavar="ADDRESS", help="Also write the run there as a build of a Prow job, for TestGrid.")
@audience_options
def run(**given: Any) -> None:
    """Verify a cluster against the standard and say Pass or Fail.

    It looks before it starts anything, as 'winready doctor' does. Exit code: 0 Pass, 1 something failed, 2 wrong
    usage, 3 something could not be judged or was left behind, or the cluster cannot be reached, 130 interrupted, which
    is no verdict.

    \b
    winready run                                     the 24 core requirements on the current context
    winready run --sandbox                           the same on a simulated cluster, in seconds
    winready run --category core.network -o json     one category, for machines
    winready run --rerun-failed 261115-101500-ab12   only what did not pass
    winready run --engine both --e2e-binary ./e2e.test   checks and upstream tests must agree
    winready run --for deploy/                       what these workloads rely on, and whether they are ready
    """
    asked = {name: given.pop(name) for name in ("publish", "metrics_file", "metrics_listen")}
    sys.exit(start(RunChoices(**given), asked))


def start(
    choices: RunChoices,
    asked: dict[str, Any] | None = None,
    weigh: Callable[[Record], int] | None = None,
    instead: Callable[[Venue, Options, Specification], int] | None = None,
) -> int:
    """Do the run that was chosen, or show its plan, or do something else ``instead``; the exit code.

    ``weigh`` gives the exit code where that is not the verdict's.
    """
    from winready.cluster.errors import ConfigError
    from winready.engine.journal import Unreadable
    from winready.engine.selection import SelectionError
    from winready.report.folders import RunNotFound

    try:
        with ExitStack() as stack:
            venue, options, standard = _prepare(choices, stack)
            if instead is not None:
                return instead(venue, options, standard)
            if choices.dry_run:
                from winready.cli.plan import show_plan

                return show_plan(venue, options, standard, choices.output)
            audience = chosen_audience(**asked) if asked else None
            # A sandbox of the run's own is gone with it.
            options = replace(options, resume_with=None if choices.sandbox else resume_flags(choices))
            return carry_out(
                venue,
                options,
                standard,
                choices.report_dir,
                choices.output,
                audience,
                weigh,
                places=place_flags(choices),
                builds=prow_place(choices.prow),
            )
    except ConfigError as error:
        fail(error.message, error.remedy)
    except (SelectionError, RunNotFound, Unreadable) as error:
        fail(str(error))


def _prepare(choices: RunChoices, stack: ExitStack) -> tuple[Venue, Options, Specification]:
    from winready.cli.venue import outside
    from winready.cluster.kubeconfig import find_target
    from winready.engine.selection import select
    from winready.report import folders

    run_id = folders.new_run_id()
    scale = choices.time_scale
    engine = chosen_engine(choices)
    cases = read_cases(choices)
    domain = chosen_directory(choices.active_directory)
    asked = read_asked(choices)
    if choices.sandbox:
        from winready.cli.own_sandbox import own_sandbox
        from winready.cli.venue import simulated
        from winready.proof.furnishing import furnished, own_domain

        if choices.kubeconfig or choices.context:
            raise click.UsageError("--sandbox verifies a cluster of its own; leave --kubeconfig and --context out")
        selected = relied_on(asked, choices.skip) if asked else wanted(choices)
        select(specification(cases), selected)
        offers = furnished(specification(cases), selected)
        domain = domain or own_domain(offers)
        # Its own sandbox may be rebooted; e2e.test is a process of its own, and knows no time but that on the wall.
        choices = replace(choices, allow_disruptive=True)
        if choices.speed is None and engine == "native":
            venue = stack.enter_context(simulated(choices.faults, offers))
        else:
            speed = choices.speed or SPEED
            kubeconfig, factor = stack.enter_context(own_sandbox(f"run-{run_id}", speed, choices.faults, offers))
            venue, scale = stack.enter_context(outside(find_target(str(kubeconfig)))), scale or factor
    elif choices.faults:
        raise click.UsageError("--fault breaks a sandbox; it goes with --sandbox")
    else:
        venue = stack.enter_context(outside(find_target(choices.kubeconfig, choices.context)))
    output = writing(choices.report_dir)[0] / run_id / "upstream"
    upstream = upstream_options(choices, engine, venue.target, output, cases)
    options = run_options(choices, run_id, scale or defaults.TIME_SCALE, engine, upstream, domain)
    options.record["virtual_time"] = venue.virtual
    return venue, with_workloads(options, choices, asked, venue), specification(cases)


def carry_out(
    venue: Venue,
    options: Options,
    standard: Specification,
    report_dir: str | None,
    output: str,
    audience: Audience | None = None,
    weigh: Callable[[Record], int] | None = None,
    *,
    places: str = "",
    builds: Place | None = None,
) -> int:
    """Do a run, show it, write its folder; the exit code. Nothing is written for a cluster that cannot be asked.

    ``places``: options that say which cluster it is, and where its runs are. ``builds``: where Prow's are.
    """
    from winready.engine.verdict import EXIT_BLOCKED
    from winready.report import folders
    from winready.report.following import CannotStart
    from winready.report.terminal import TERMINAL

    seen = first_look(venue, options, standard, audience.places.termination_log if audience else None)
    if loudness() >= 0:
        tell(seen, err=output != "text")
    options = replace(options, inventory=seen.inventory, prepared=seen.prepared)
    base, place = writing(report_dir)
    try:
        folder = folders.create(base, options.settings.run_id)
    except OSError as error:
        fail(f"the report folder {base} cannot be written: {error.strerror}", "choose another with --report-dir")
    sender = sending(place, folder) if place is not None else None
    try:
        record, troubles = venue.run(_follow(venue, options, standard, folder, output, audience, sender))
    except CannotStart as error:
        fail(str(error), "choose another place with --report-dir")
    try:
        if output != "text":
            print_record(record, output)
        elif loudness() >= 0 and not FILES & troubles.keys():
            say(f"report: {folder / 'report.html'}, also run.json and junit.xml there")
        sys.stdout.flush()
    except OSError as error:
        if TERMINAL not in troubles:
            troubles.setdefault("standard output", f"standard output cannot be written: {error.strerror}")
        # Or Python would try once more at its end, and complain in a way of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    again = f"{places}{options.resume_with}" if options.resume_with is not None else None
    _last_words(record, troubles, folder, output, again)
    if sender is not None:
        say_sent(sender, folder, quiet=output != "text" or loudness() < 0)
    if builds is not None and not troubles:
        send_build(builds, folder)
    return (weigh(record) if weigh else record.exit_code) or (EXIT_BLOCKED if troubles else 0)


def _last_words(record: Record, troubles: dict[str, str], folder: Path, output: str, again: str | None = None) -> None:
    """What nobody should overlook, at the very end and beside any document."""
    from winready.report.terminal import TERMINAL
    from winready.report.words import leftovers_line

    unheard = not {"standard output", TERMINAL}.isdisjoint(troubles)
    with suppress(OSError):
        for trouble in troubles.values():
            say(f"error: {trouble}", err=True)
        if troubles and not record.leftovers:
            say(f"       the cluster was cleaned up; what could be written is in {folder}", err=True)
        if record.interrupted and again is not None:
            say(f"to do the rest: winready run --resume {record.run_id}{again}", err=output != "text" or unheard)
        if record.leftovers:
            # The last line of what people read, whether or not that is kept.
            say(leftovers_line(record), err=output != "text" or unheard)


async def _follow(
    venue: Venue,
    options: Options,
    standard: Specification,
    folder: Path,
    output: str,
    audience: Audience | None,
    sender: Sender | None,
) -> tuple[Record, dict[str, str]]:
    """Do the run; its record, and what went wrong with those who follow it."""
    from winready.cluster.activity import watch
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
    terminal = make_terminal(
        stream,
        kept.record,
        options.settings.timing.scale,
        colour=colour_wanted(),
        clock=venue.clock,
        doing=watch(),
        loudness=loudness(),
    )
    others: list[Handler] = [
        kept,
        terminal,
        Rendered(folder / junit.NAME, lambda: junit.render(kept.record)),
        Rendered(folder / page.NAME, lambda: page.render(kept.record)),
        *([sender] if sender is not None else []),
    ]
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(venue.connected())
        the_run = Run(client, standard, options)
        if audience is not None:
            from winready.deploy.following import told

            others += await stack.enter_async_context(told(client, audience, kept.record, _complain))
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if the_run.stop():
                with suppress(OSError):
                    terminal.stopping()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, interrupt)
        troubles = await follow(the_run, Journal(folder), others)
    return kept.record, troubles


def _complain(text: str) -> None:
    say(text, err=True)
