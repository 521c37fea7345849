"""Completion of commands and options."""

from __future__ import annotations

import pytest

from cli.conftest import CommandLine
from winready.cli.completion import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script(command_line: CommandLine, shell: str) -> None:
    result = command_line("completion", shell)
    assert result.returncode == 0
    assert "_WINREADY_COMPLETE" in result.stdout


def test_the_script_finds_commands_and_options(command_line: CommandLine) -> None:
    asked = {"_WINREADY_COMPLETE": "bash_complete"}
    commands = command_line(**asked, COMP_WORDS="winready sta", COMP_CWORD="1").stdout
    assert "plain,status" in commands
    options = command_line(**asked, COMP_WORDS="winready run --allow", COMP_CWORD="2").stdout
    assert "--allow-disruptive" in options
