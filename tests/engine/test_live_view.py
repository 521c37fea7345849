"""What a person sees of a run on a terminal, and what becomes of a run whose terminal goes away."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from cli.conftest import SPEED, CommandLine
from engine.screen import Terminal
from engine.stage import BY_ADDRESS, BY_SERVICE, Stage, left
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.engine import events, journal
from winready.report.record import Record
from winready.report.terminal import Live, make_terminal


@pytest.fixture(autouse=True)
def colourful(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of somebody at a terminal."""
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


def short(name: str) -> str:
    """A requirement as it is called where lines are short."""
    return name.rpartition(".")[2]


def test_what_runs_stands_below_what_is_finished_and_the_summary_stays(stage: Stage) -> None:
    waiting = stage.play("N1", "N5").told
    terminal, record = Terminal(), Record()

    def tell(number: int, kind: type[events.Event]) -> events.AnyEvent:
        """Go on until that many more events of a kind were told."""
        while number:
            event = waiting.pop(0)
            record.apply(event)
            view.handle(event)
            number -= isinstance(event, kind)
        return event

    with os.fdopen(terminal.slave, "w") as stream:
        view = make_terminal(stream, record, 1.0, colour=True)
        assert isinstance(view, Live)
        view.start()
        tell(2, events.RequirementStarted)
        terminal.until(
            "0 of 2 judged",
            " left",
            "starting pods and services: clients, servers, services",
            f"… {short(BY_ADDRESS)}",
            f"… {short(BY_SERVICE)}",
        )
        finished = tell(1, events.RequirementFinished)
        assert isinstance(finished, events.RequirementFinished)
        (other,) = {BY_ADDRESS, BY_SERVICE} - {finished.result.id}
        seen = terminal.until("1 of 2 judged", f"✓ {finished.result.id}", f"… {short(other)}")
        assert f"… {short(finished.result.id)}" not in seen
        assert "starting pods" not in seen
        assert seen.index(f"✓ {finished.result.id}") < seen.index("1 of 2 judged") < seen.index(f"… {short(other)}")
        tell(1, events.RunFinished)
        view.close()
    seen = terminal.to_the_end()
    assert "…" not in seen
    assert "judged" not in seen
    assert f"✓ {BY_ADDRESS}" in seen
    assert f"✓ {BY_SERVICE}" in seen
    assert "Kubernetes v1.36.0 at https://" in seen.splitlines()[0]
    assert "2 passed" in seen.splitlines()
    assert seen.splitlines()[-1] == "Pass (partial: 2 of 24 core requirements)"
    assert b"\x1b[32m" in terminal.written
    terminal.go_away()


def test_upstream_tests_are_shown_while_they_run_and_when_they_have_ended() -> None:
    def progress(state: str, done: int) -> events.UpstreamProgress:
        return events.UpstreamProgress(at_s=1.0, test="t", text="[sig-windows] a test", state=state, done=done, total=2)

    terminal = Terminal()
    with os.fdopen(terminal.slave, "w") as stream:
        view = make_terminal(stream, Record(), 1.0, colour=True)
        view.start()
        view.handle(progress("started", 0))
        terminal.until("… [sig-windows] a test")
        view.handle(progress("passed", 1))
        terminal.until("e2e.test 1/2 passed", "looking at the cluster", without="…")
        view.close()
    assert "e2e.test 1/2 passed" in terminal.to_the_end()
    terminal.go_away()


def start(
    terminal: Terminal, command_line: CommandLine, *arguments: str, **environment: str
) -> subprocess.Popen[bytes]:
    """A command in a session of its own on a terminal, as a shell starts it."""
    end = terminal.slave
    process = subprocess.Popen(
        [sys.executable, "-m", "winready", *arguments],
        env=command_line.environment(**environment),
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(end)
    return process


def run_arguments(kubeconfig: str, folder: Path) -> list[str]:
    scale = ["--time-scale", SPEED, "--report-dir", str(folder)]
    return ["run", "--kubeconfig", kubeconfig, "--requirement", "N5", *scale]


@pytest.mark.parametrize("plain", [False, True])
def test_a_run_on_a_terminal(command_line: CommandLine, kubeconfig: str, tmp_path: Path, plain: bool) -> None:
    terminal = Terminal()
    environment = {"NO_COLOR": "1"} if plain else {}
    process = start(terminal, command_line, *run_arguments(kubeconfig, tmp_path), **environment)
    if not plain:
        terminal.until("0 of 1 judged", f"… {BY_ADDRESS}")
    lines = terminal.to_the_end().splitlines()
    terminal.go_away()
    assert process.wait(timeout=110) == 0
    assert any(line.startswith(f"✓ {BY_ADDRESS}") for line in lines)
    assert lines[-2] == "Pass (partial: 1 of 24 core requirements)"
    assert lines[-1].startswith(f"report: {tmp_path}")
    assert (b"\x1b" in terminal.written) == (not plain)


def test_a_terminal_that_goes_away_ends_the_run_with_cleanup(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path
) -> None:
    async def on_the_cluster() -> list[str]:
        async with Client.connect(find_target(kubeconfig)) as client:
            return await left(client)

    terminal = Terminal()
    process = start(terminal, command_line, *run_arguments(kubeconfig, tmp_path))
    terminal.until(f"… {BY_ADDRESS}")
    terminal.go_away()
    # Hung up, or its output not written: whichever it hears of first.
    assert process.wait(timeout=110) in (130, 3)
    assert asyncio.run(on_the_cluster()) == []
    (folder,) = tmp_path.iterdir()
    last = journal.read(folder)[-1]
    assert isinstance(last, events.RunFinished)
    assert last.verdict.verdict == (None if process.returncode == 130 else "Fail")
    assert last.verdict.exit_code == process.returncode
