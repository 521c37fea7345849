"""What is answered before click is there: the same words as click's, whatever the terminal and whoever reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli.conftest import CommandLine
from winready.cli import front
from winready.cli.main import LazyGroup, cli


def test_the_page_is_what_click_would_print_at_any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = set()
    for columns in range(1, 140):
        monkeypatch.setenv("COLUMNS", str(columns))
        page = front.answer(["--help"])
        assert page == cli.get_help(click.Context(cli, info_name="winready", **cli.context_settings)) + "\n"
        pages.add(page)
    assert len(pages) > 10


@pytest.mark.parametrize("columns", ["20", "72", "300"])
def test_help_is_printed_as_wide_as_the_terminal(command_line: CommandLine, columns: str) -> None:
    answers = {command_line(word, COLUMNS=columns).stdout for word in ("--help", "-h")}
    # With a further word click prints it.
    answers.add(command_line("--help", "run", COLUMNS=columns).stdout)
    assert len(answers) == 1
    assert answers.pop().startswith("Usage: winready [OPTIONS] COMMAND [ARGS]...\n")


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["--help", "run"], ["run", "--help"]])
@pytest.mark.parametrize("full", [True, False])
def test_what_cannot_be_printed_leaves_one_sentence(command_line: CommandLine, words: list[str], full: bool) -> None:
    with Path("/dev/full" if full else "/dev/null").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "winready", *words],
            env=command_line.environment(),
            stdout=output if full else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if process.stdout is not None:
            process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(timeout=60) == 3, said
    assert said.startswith("error: the output cannot be written: ")
    assert len(said.splitlines()) == 1


def test_commands_are_completed_from_the_table_and_none_is_imported(command_line: CommandLine) -> None:
    asked = {"_WINREADY_COMPLETE": "fish_complete", "COMP_CWORD": "", "PYTHONPROFILEIMPORTTIME": "1"}
    result = command_line(**asked, COMP_WORDS="winready ")
    for name, (_, text) in front.COMMANDS.items():
        assert f"{name}\t{text}" in result.stdout or f"{name}\n{text}" in result.stdout
    assert "winready.cli.front" in result.stderr
    assert "winready.cli.run" not in result.stderr


def test_groups_within_complete_their_commands() -> None:
    for name in ("node", "matrix"):
        group = cli.get_command(click.Context(cli), name)
        assert isinstance(group, LazyGroup)
        found = group.shell_complete(click.Context(group), "")
        assert [(item.value, item.help) for item in found] == [(n, t) for n, (_, t) in group.commands_table.items()]
