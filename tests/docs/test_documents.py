"""What the documents say can be typed: commands and options exist, links lead somewhere, YAML is YAML."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from winready.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
# The changelog tells what was true once.
DOCUMENTS = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob(".github/*.md")} - {ROOT / "CHANGELOG.md"})
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(winready [^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
OPERATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"}
QUOTED = re.compile(r"""(['"])(winready\s.*?)\1""")
PROGRAM = re.compile(r"(?:^\s*(?:-\s+)?|[|;&(]\s*|\brun:\s+)(?:[\w./]+/bin/)?(winready\s[^\n)]*)")


def fences(text: str, language: str | None = None) -> Iterator[str]:
    for match in FENCE.finditer(text):
        if language is None or match[2] == language:
            yield match[3]


def command_lines(text: str) -> Iterator[str]:
    """Every command line of winready: typed after a prompt, in scripts and pipelines, or named in a sentence."""
    for block in fences(text):
        lines = re.sub(r"\\\n\s*", " ", block).splitlines()
        prompts = any(line.startswith("$ ") for line in lines)
        for line in lines:
            # With prompts in a block, everything else in it is output.
            if (prompts and not line.startswith("$ ")) or line.lstrip().startswith("#"):
                continue
            yield from (match[2] for match in QUOTED.finditer(line))
            yield from (match[1] for match in PROGRAM.finditer(QUOTED.sub("", line.removeprefix("$ "))))
    yield from (match[1] for match in INLINE.finditer(FENCE.sub("", text)))


def arguments(line: str) -> list[str]:
    """The arguments up to the end of this command, without the signs of a synopsis."""
    line = re.split(r"\s{3,}", line, maxsplit=1)[0]  # what follows in a column of its own is an explanation
    words = shlex.split(re.sub(r"(?<=\s)[\[\]]|[\[\]](?=\s|$)", " ", line), comments=True)[1:]
    end = next((place for place, word in enumerate(words) if word in OPERATORS), len(words))
    return [word for word in words[:end] if word != "..."]


def parse(words: list[str]) -> None:
    """Let click read the arguments, down to the command they are for, without calling it."""
    command: click.Command = cli
    context = click.Context(cli, info_name="winready")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, f"there is no command {words[0]!r}"
        command, words = found, words[1:]
    if isinstance(command, click.Group) and not command.invoke_without_command:
        assert set(words) <= {"--help", "-h", "--version"}, words
    elif words:
        command.make_context(command.name, list(words), parent=context)


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", "")).replace(" ", "-")


def headings(path: Path) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_line_parses(path: Path) -> None:
    wrong = []
    for line in dict.fromkeys(command_lines(path.read_text())):
        try:
            parse(arguments(line))
        except click.exceptions.Exit:
            continue
        except (click.UsageError, AssertionError, ValueError) as error:
            wrong.append(f"{line}: {error}")
    assert wrong == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_to_files_and_headings(path: Path) -> None:
    wrong = []
    for target in LINK.findall(FENCE.sub("", path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists() or (
            anchor and anchor not in {slug(h) for h in re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)}
        ):
            wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_yaml_blocks_are_yaml(path: Path) -> None:
    for block in fences(path.read_text(), "yaml"):
        assert list(yaml.safe_load_all(block))


def test_the_index_names_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    named = {target.partition("#")[0] for target in LINK.findall(index)}
    missing = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} - named
    assert not missing, f"docs/README.md needs a line for {missing}"


def test_a_wrong_command_or_option_is_found() -> None:
    text = "```\n$ kubectl -n winready get pods | winready run --sandbx\nwinready is output\n```\n"
    text += "See `winready sandbox break NAME [--node N]`."
    lines = list(command_lines(text))
    assert lines == ["winready run --sandbx", "winready sandbox break NAME [--node N]"]
    parse(arguments(lines[1]))
    with pytest.raises(click.NoSuchOption):
        parse(arguments(lines[0]))
