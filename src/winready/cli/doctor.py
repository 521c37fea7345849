"""``winready doctor``: what a run would meet, and the same look at the start of ``run`` and ``plan``."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from winready.cli.choices import RunChoices
from winready.cli.flags import run_flags
from winready.cli.options import fail, print_document, say
from winready.cli.patience import patiently
from winready.cli.tables import WIDE, listed, print_table
from winready.report.printable import printable

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from pathlib import Path

    from winready.cli.venue import T, Venue
    from winready.engine.options import Options
    from winready.engine.preflight import Examined, Finding, Seen
    from winready.spec.model import Specification

NAMED = 10
SUMMARY = {
    0: "a run can start, and may pass",
    1: "a run would fail, whatever its checks find",
    2: "no cluster was asked",
    3: "a run could not judge this cluster",
}


@click.command()
@run_flags
def doctor(**given: Any) -> None:
    """Look at what a run would meet: connection, credentials, rights, nodes, cluster size, images. Starts nothing.

    Takes the options of 'winready run'. Exit code: 0 a run can start and may pass, 1 it would fail whatever its checks
    find, 2 the kubeconfig or an option is wrong, 3 it could not judge all that was selected, or the cluster cannot be
    asked.

    \b
    winready doctor
    winready doctor --profile full --allow-disruptive -o json
    """
    from winready.cli.run import start

    choices = RunChoices(**given, dry_run=True)

    def diagnose(venue: Venue, options: Options, standard: Specification) -> int:
        from winready.cluster.errors import ClusterError
        from winready.engine.preflight import trouble

        try:
            told = _ask(venue, _examine(venue, options, standard))
        except ClusterError as error:
            told = trouble(error)
        return show(told, choices.output)

    sys.exit(start(choices, instead=diagnose))


def show(told: Examined, output: str) -> int:
    """Print what was found; the exit code."""
    if output not in ("text", WIDE):
        print_document(told, output)
        return told.exit_code
    if output == WIDE:
        heads = ("LEVEL", "SUBJECT", "MESSAGE", "NEXT STEP", "CONCERNS")
        print_table(heads, *((f.level, f.subject, f.message, f.next_step, listed(f.concerns)) for f in told.findings))
    for finding in told.findings if output == "text" else ():
        say(f"{finding.level:<8} {finding.subject:<13} {finding.message}")
        for line in behind(finding):
            say(f"{'':<22} {line}")
    warned = sum(finding.level == "warning" for finding in told.findings)
    warnings = f"; {warned} warning{'s' if warned > 1 else ''} above" if warned else ""
    say(f"{_conclusion(told)}{warnings}")
    return told.exit_code


def _conclusion(told: Examined) -> str:
    from winready.report.words import count

    if told.exit_code == 3 and told.runs and told.blocked:
        return f"a run can start, but not pass: {count(len(told.blocked), 'requirement')} cannot be judged"
    return SUMMARY[told.exit_code]


def behind(finding: Finding) -> list[str]:
    """What is folded behind a finding: what to do, and whom it concerns."""
    lines = [f"next step: {finding.next_step}"] if finding.next_step else []
    if finding.concerns:
        more = f" and {len(finding.concerns) - NAMED} more" if len(finding.concerns) > NAMED else ""
        lines.append(f"concerns: {', '.join(finding.concerns[:NAMED])}{more}")
    return lines


def tell(findings: Iterable[Finding], *, err: bool) -> None:
    """What must be known before anything is started; nothing when all is well."""
    for finding in findings:
        say(f"{finding.subject if finding.level == 'ok' else finding.level}: {finding.message}", err=err)
        for line in behind(finding):
            say(f"    {line}", err=err)


def first_look(
    venue: Venue,
    options: Options,
    standard: Specification,
    last_words: Path | None = None,
) -> Seen:
    """Look at the cluster before anything is made, here or there; a cluster that cannot be asked ends the command.

    ``last_words``: a file that is to tell of it, too.
    """
    from winready.cluster.errors import ClusterError
    from winready.engine.preflight import exit_code_of, look
    from winready.upstream.binary import BinaryError

    async def ask() -> Seen:
        async with venue.connected() as client:
            return await look(client, standard, options)

    try:
        return _ask(venue, ask())
    except ClusterError as error:
        if last_words is not None:
            with suppress(OSError):
                last_words.write_text(printable(f"not started: {error.message}\n{error.remedy}\n"))
        fail(error.message, error.remedy, code=exit_code_of(error))
    except BinaryError as error:
        fail(error.message, error.remedy, code=3)


async def _examine(venue: Venue, options: Options, standard: Specification) -> Examined:
    """The look of a run, and where its images are."""
    import msgspec

    from winready.engine.preflight import images, look

    async with venue.connected() as client:
        seen = await look(client, standard, options)
        told = seen.told()
        found = await images(client, seen.plan, options.settings)
        return msgspec.structs.replace(told, findings=[*told.findings, *found])


def _ask(venue: Venue, work: Coroutine[Any, Any, T]) -> T:
    """Do something that leaves no trace, so that an interruption ends it at once."""
    try:
        return venue.run(_unless_interrupted(venue, work))
    except asyncio.CancelledError:
        say("interrupted before anything was started; there is nothing to clean up", err=True)
        sys.exit(130)


async def _unless_interrupted(venue: Venue, work: Coroutine[Any, Any, T]) -> T:
    # Where time is simulated, waiting takes none.
    told = work if venue.virtual else patiently(venue.target.server, work)
    loop, task = asyncio.get_running_loop(), asyncio.create_task(told)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # Beside others' threads, whoever has the first of them hears of signals.
    mine = threading.current_thread() is threading.main_thread()
    for number in numbers if mine else ():
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    finally:
        task.cancel()
        for number in numbers if mine else ():
            loop.remove_signal_handler(number)
