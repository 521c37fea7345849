"""Mistakes on the command line are told in one style; ``version`` and ``help`` are commands."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from winready import __version__
from winready.cli.main import cli


def invoke(words: list[str]) -> Result:
    return CliRunner().invoke(cli, words, prog_name="winready")


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["--bogus"], "error: no such option --bogus"),
        (["versio"], "error: no such command 'versio'; did you mean 'version'?"),
        (["sandbox", "upp"], "error: no such command 'upp'; did you mean 'up'?"),
        (["cleanup", "--time-scale", "1"], "error: no such option --time-scale"),
        (["run", "--catgory", "x"], "error: no such option --catgory; did you mean --category?"),
        (["run", "--parallel", "many"], "error: invalid value for '--parallel': 'many' is not a valid integer range"),
        (["compare", "a"], "error: missing argument 'B'"),
        (["completion"], "error: missing argument '{bash|zsh|fish|powershell}'"),
        (["help", "bogus"], "error: no such command 'bogus'"),
        (["help", "run", "fast"], "error: 'winready run' has no commands"),
        (["run", "--sandbox", "--context", "a\x1b[2Jb", "--fault", "x"], "error: --sandbox verifies a cluster"),
        (["lint", "--config", "no\x1b[2J\x07where", "-"], "error: "),
    ],
)
def test_what_is_wrong_is_one_line_and_what_to_do_another(words: list[str], first: str) -> None:
    result = invoke(words)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert lines[0].startswith(first)
    assert len(lines) <= 2
    assert all(line.startswith("       ") for line in lines[1:])
    assert not {"\x1b", "\x07"} & set(result.stderr)


def test_without_a_command_there_is_help() -> None:
    result = invoke([])
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: winready [OPTIONS] COMMAND")


def test_help_is_what_the_option_says() -> None:
    for words in ([], ["run"], ["sandbox", "up"]):
        asked = invoke(["help", *words])
        assert asked.exit_code == 0
        assert asked.stdout == invoke([*words, "--help"]).stdout


def test_version_for_people_and_for_machines() -> None:
    assert invoke(["version"]).stdout.startswith(f"winready {__version__}\nstandard ")
    told = json.loads(invoke(["version", "-o", "json"]).stdout)
    assert told["winready"] == __version__
    assert told["standard"]["digest"].startswith("sha256:")
