"""``winready plan``: what a run would do, without doing it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from winready.cli.choices import RunChoices
from winready.cli.doctor import first_look, tell
from winready.cli.flags import run_flags
from winready.cli.options import print_document, say
from winready.cli.tables import WIDE, listed, table_text, yes

if TYPE_CHECKING:
    from winready.cli.venue import Venue
    from winready.engine.options import Options
    from winready.engine.plan import Plan, Planned
    from winready.spec.model import Specification


@click.command()
@run_flags
def plan(**given: Any) -> None:
    """Show what would run, on which nodes, with which verifier, and what is blocked and why.

    Takes the options of 'winready run', and changes nothing on the cluster. Exit code: 0 when a run can start and may
    pass, 1 when it would fail whatever its checks find, 2 wrong usage, 3 when something selected, or all of it, cannot
    be judged, or the cluster cannot be reached.

    \b
    winready plan
    winready plan --category Core.Network --nodes all
    """
    from winready.cli.run import start

    sys.exit(start(RunChoices(**given, dry_run=True)))


def show_plan(venue: Venue, options: Options, standard: Specification, output: str) -> int:
    """Print the plan of a run; returns the exit code."""
    import msgspec

    from winready.engine.preflight import ABSENT
    from winready.report.words import plan_around, plan_table

    seen = first_look(venue, options, standard)
    if output in ("text", WIDE):
        nodes, times = plan_around(seen.plan, options.settings.timing.scale)
        for line in (*nodes, *(plan_table(seen.plan) if output == "text" else _wide(seen.plan)), *times):
            say(line)
        told = [*(each for each in seen.findings if each.subject == ABSENT), *seen.remarkable]
        if told:
            say()
        tell(told, err=False)
    else:
        print_document({**msgspec.to_builtins(seen.plan), "findings": seen.findings}, output)
    return seen.exit_code


def _wide(plan: Plan) -> list[str]:
    heads = ("REQUIREMENT", "CATEGORY", "LEVEL", "ACTION", "VERIFIER", "TAKES", "WINDOWS PODS", "DISRUPTIVE", "SHARES")
    rows = [_row(item) for item in plan.requirements]
    return table_text((*heads, "UPSTREAM TESTS", "REASON"), *rows).splitlines() if rows else []


def _row(item: Planned) -> tuple[str, ...]:
    from winready.report.words import duration

    runs = item.action == "run"
    takes, pods = (duration(item.expected_s), str(item.windows_pods)) if runs else ("", "")
    why = "; ".join(filter(None, (item.reason, f"next step: {item.next_step}" if item.next_step else "")))
    head = (item.id, item.category, item.level, item.action, item.verifier, takes, pods, yes(item.disruptive))
    return *head, listed(item.fixtures), listed(item.upstream), why
