"""Manual pages: one for each command, with all that it says of itself, in a roff that the real programs take."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from cli.conftest import CommandLine
from winready.cli.front import COMMANDS
from winready.cli.manual import page


def shown(text: str) -> str:
    """A page as a terminal of endless width shows it."""
    command = ["groff", "-ww", "-rCHECKSTYLE=3", "-rLL=10000n", "-Tascii", "-P-cbou", "-man"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


needs_groff = pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("man")


@pytest.fixture
def written(command_line: CommandLine, folder: Path) -> dict[str, str]:
    """All pages by name."""
    if not (folder / "man1").exists():
        assert command_line("man", "--write", str(folder)).returncode == 0
    return {path.name: path.read_text() for path in (folder / "man1").iterdir()}


def test_every_command_has_a_page(written: dict[str, str]) -> None:
    assert {"winready.1", "winready-node-addons-apply.1", *(f"winready-{name}.1" for name in COMMANDS)} <= set(written)


@needs_groff
def test_groff_has_nothing_to_say_against_any_page(written: dict[str, str]) -> None:
    for name, text in written.items():
        assert "NAME" in shown(text), name


@needs_groff
def test_references_lead_to_pages(written: dict[str, str]) -> None:
    for name, text in written.items():
        related = shown(text).partition("SEE ALSO")[2]
        missing = set(re.findall(r"(winready[\w-]*)\(1\)", related)) - {each.removesuffix(".1") for each in written}
        assert not missing, name


@needs_groff
def test_a_page_tells_what_help_tells(command_line: CommandLine) -> None:
    text = shown(command_line("man", "run").stdout)
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", command_line("run", "--help").stdout, re.MULTILINE)
    assert len(options) > 30
    assert [option for option in options if option not in text] == []
    assert "winready run --category core.network -o json     one category, for machines" in text


@needs_groff
def test_text_cannot_steer_the_formatter() -> None:
    about = ".so /etc/passwd\n\n\\*(XX 'quoted' \"twice\" `x` ~/a^b\n\n\b\n.sp 1000\n'br \\n[.s]"
    text = shown(page(click.Command("x", help=about), ("winready", "x")))
    for line in (".so /etc/passwd", "\\*(XX 'quoted' \"twice\" `x` ~/a^b", ".sp 1000", "'br \\n[.s]"):
        assert line in text


def test_what_is_no_command_is_wrong_usage(command_line: CommandLine) -> None:
    result = command_line("man", "sandbx")
    assert result.returncode == 2
    assert "did you mean 'sandbox'?" in result.stderr
    assert "'winready run' has no commands" in command_line("man", "run", "faster").stderr
    assert command_line("man", "run", "--write", "x").returncode == 2


def test_a_folder_that_cannot_be_written_is_told(command_line: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = command_line("man", "--write", str(tmp_path / "file" / "man"))
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
