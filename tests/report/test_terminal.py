"""What people see of a run while it goes on: on terminals of any width, with steps and what is left."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from report import samples
from winready.engine import events
from winready.report.pace import Pace
from winready.report.record import Record
from winready.report.terminal import Live, make_terminal

FIRST = samples.CORE[0]


def seen_until(console: Console, last: type[events.Event], doing: dict[str, str] | None = None) -> list[str]:
    """The lines of the live part just after the first event of a kind."""
    record = Record()
    live = Live(console, record, 1.0, lambda: record.duration_s, doing or {}, details=False)
    for event in samples.run_events():
        record.apply(event)
        live.handle(event)
        if isinstance(event, last):
            break
    with console.capture() as captured:
        console.print(live._view())
    return captured.get().splitlines()


def terminal(width: int, height: int = 24) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)


def test_before_the_plan_nothing_is_counted() -> None:
    (head, *_) = seen_until(terminal(80), events.InventoryTaken)
    assert head.startswith("looking at the cluster, ")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_running_checks_fit_the_terminal_with_their_steps(width: int) -> None:
    record = Record()
    console = terminal(width, height=10)
    live = Live(console, record, 1.0, lambda: record.duration_s, {FIRST: "curl.exe in wc-1 on windows-1"}, False)
    for event in samples.run_events():
        if isinstance(event, events.RequirementFinished):
            break
        record.apply(event)
        live.handle(event)
    for name in samples.CORE:
        live.handle(events.RequirementStarted(at_s=3.0, id=name))
    with console.capture() as captured:
        console.print(live._view())
    lines = captured.get().splitlines()
    assert len(lines) <= 10
    # Behind the last line a terminal writes what interrupts it.
    assert max(map(len, lines)) <= width - len("^C")
    assert any("curl.exe in" in line for line in lines)
    assert lines[-1].strip().startswith("+")


def test_results_and_nodes_fit_a_narrow_terminal() -> None:
    console = terminal(60)
    record = Record()
    live = Live(console, record, 1.0, lambda: 0.0, {}, details=False)
    for event in samples.run_events(results=[samples.result(FIRST, "failed", reason="no answer")]):
        record.apply(event)
        if isinstance(event, events.InventoryTaken | events.RequirementFinished):
            live.handle(event)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.rstrip().endswith("no answer") for line in lines)


def test_each_node_is_one_line_of_a_narrow_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, color_system=None, soft_wrap=True)
    record = Record()
    live = Live(console, record, 1.0, lambda: 0.0, {}, details=False)
    taken = next(event for event in samples.run_events() if isinstance(event, events.InventoryTaken))
    long = {"build": "6.8.0-1024-generic-edge", "runtime": "containerd://2.1.4-with-a-long-name"}
    nodes = [msgspec.structs.replace(node, **long) for node in taken.inventory.nodes]
    taken = msgspec.structs.replace(taken, inventory=msgspec.structs.replace(taken.inventory, nodes=nodes))
    record.apply(taken)
    live.handle(taken)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines() if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == [node.name for node in taken.inventory.nodes]
    assert all(line.endswith("6.8.0-1024-generic-edge") and len(line) <= 60 for line in lines)


def test_what_an_interruption_left_is_not_counted_as_judged() -> None:
    console, record = terminal(80), Record()
    live = Live(console, record, 1.0, lambda: record.duration_s, {}, details=False)
    left = [samples.result(name, "blocked") for name in samples.CORE[1:]]
    for event in samples.run_events(results=[samples.result(FIRST, "passed"), *left]):
        if isinstance(event, events.RequirementFinished) and event.result.outcome == "blocked" and not live._stopping:
            live.stopping()
        if isinstance(event, events.RunFinished):
            break
        record.apply(event)
        live.handle(event)
    with console.capture() as captured:
        console.print(live._view())
    assert captured.get().startswith(f"cleaning up; 1 of {len(samples.CORE)} judged")


def test_what_does_not_apply_is_told_once_with_everything_it_concerns() -> None:
    stream, record = io.StringIO(), Record()
    plain = make_terminal(stream, record, 1.0, colour=False)
    ids = [name for name in samples.ALL if name.startswith("extend.")][:3]
    reason = "the cluster has one IP family"
    absent = [
        msgspec.structs.replace(samples.result(name, "not-applicable", reason=reason), duration_s=0.0) for name in ids
    ]
    for event in samples.run_events(ids=[FIRST, *ids], results=[samples.result(FIRST, "passed"), *absent]):
        record.apply(event)
        plain.handle(event)
    said = stream.getvalue()
    assert said.count(reason) == 1
    assert f"- 3 requirements not-applicable\n    {reason}\n    concerns: {', '.join(ids)}\n" in said


def test_what_is_left_adapts_to_how_long_things_took() -> None:
    plan = next(event.plan for event in samples.run_events() if isinstance(event, events.PlanMade))
    pace = Pace(plan, 1.0)
    before = pace.left(0.0, 0.0)
    first = plan.requirements[0]
    pace.started(first.id, 0.0)
    slow = samples.result(first.id, "passed")
    pace.finished(msgspec.structs.replace(slow, duration_s=100 * max(first.expected_s, 1.0)))
    assert pace.slowness > 1
    assert pace.left(0.0, 0.0) > before


def test_quiet_says_the_verdict_alone() -> None:
    stream, record = io.StringIO(), Record()
    quiet = make_terminal(stream, record, 1.0, colour=False, loudness=-1)
    for event in samples.run_events():
        record.apply(event)
        quiet.handle(event)
    assert stream.getvalue() == f"{record.verdict_text}\n"


def test_verbose_shows_what_was_seen() -> None:
    stream, record = io.StringIO(), Record()
    plain = make_terminal(stream, record, 1.0, colour=False, loudness=1)
    for event in samples.run_events():
        record.apply(event)
        plain.handle(event)
    assert "    ✓ wc-1 reaches ws-0: " in stream.getvalue()
