"""Manual pages of all commands, as roff, from what the commands say of themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

import click

from winready import __version__

EXIT_CODES = (
    ("0", "Pass, or yes."),
    ("1", "Fail because something failed, or no."),
    ("2", "Wrong usage or input."),
    ("3", "It cannot be judged, or something was left behind."),
    ("130", "Interrupted."),
)
ENVIRONMENT = (
    ("KUBECONFIG", "The kubeconfig files, as kubectl reads them."),
    ("ARTIFACTS", "Where run folders go if --report-dir does not say it."),
    ("XDG_CACHE_HOME", "Where fetched programs are kept, in a folder winready; ~/.cache otherwise."),
    ("NO_COLOR", "No colours, whatever its value."),
)
Path = tuple[str, ...]


def pages(root: click.Command) -> Iterator[tuple[str, str]]:
    """The file name and the text of each command's page, the program's own first."""
    for path, command in _walk(root, ("winready",)):
        yield f"{'-'.join(path)}.1", page(command, path)


def page(command: click.Command, path: Path) -> str:
    """The page of one command, which is called by the words of ``path``."""
    context = _context(command, path)
    name = "-".join(path)
    lines = [f'.TH "{_text(name.upper())}" 1 "" "winready {_text(__version__)}" "winready"', ".nh", ".ad l"]
    about, *rest = _paragraphs(command.help or command.short_help or "")
    lines += [".SH NAME", f"{_text(name)} \\- {_text(_joined(about).rstrip('.'))}"]
    lines += [".SH SYNOPSIS", f".B {_text(' '.join(path))}", _text(" ".join(command.collect_usage_pieces(context)))]
    lines += [".SH DESCRIPTION", *_body([about, *rest])]
    if records := _options(command, context):
        lines += [".SH OPTIONS", *_list(records)]
    if isinstance(command, click.Group):
        lines += [".SH COMMANDS", *_list(_commands(command, context))]
    if epilog := command.epilog:
        lines += [".SH EXAMPLES", *_body(_paragraphs(re.sub(r"(?m)^Examples:\n", "", inspect.cleandoc(epilog))))]
    if len(path) == 1:
        lines += [".SH EXIT STATUS", *_list(EXIT_CODES), ".SH ENVIRONMENT", *_list(ENVIRONMENT)]
    lines += [".SH SEE ALSO", ",\n".join(_reference(each) for each in _related(command, path, context)) or "kubectl(1)"]
    return "\n".join(lines) + "\n"


def find(root: click.Group, words: Sequence[str]) -> tuple[click.Command, Path]:
    """The command that is called by these words."""
    command: click.Command = root
    path: Path = ("winready",)
    for word in words:
        context = _context(command, path)
        if not isinstance(command, click.Group):
            raise click.UsageError(f"{' '.join(path)!r} has no commands.")
        _, found, _ = command.resolve_command(context, [word])
        if found is None:
            raise click.UsageError(f"No such command {word!r}.")
        command, path = found, (*path, word)
    return command, path


def _walk(command: click.Command, path: Path) -> Iterator[tuple[Path, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = _context(command, path)
        for name in command.list_commands(context):
            if (found := command.get_command(context, name)) and not found.hidden:
                yield from _walk(found, (*path, name))


def _context(command: click.Command, path: Path) -> click.Context:
    return click.Context(command, info_name=" ".join(path), help_option_names=["-h", "--help"])


def _options(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    return [record for record in records if record]


def _commands(group: click.Group, context: click.Context) -> list[tuple[str, str]]:
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    return [(name, command.get_short_help_str(limit=200)) for name, command in found if command and not command.hidden]


def _related(command: click.Command, path: Path, context: click.Context) -> list[Path]:
    above = [path[:-1]] if len(path) > 1 else []
    below = [(*path, name) for name, _ in _commands(command, context)] if isinstance(command, click.Group) else []
    return [*above, *below]


def _reference(path: Path) -> str:
    return f"\\fB{_text('-'.join(path))}\\fR(1)"


def _paragraphs(text: str) -> list[list[str]]:
    """Paragraphs as lists of lines; the first line of one that keeps its lines is a backspace, as click has it."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text).partition("\f")[0].strip("\n"))
    return [block.splitlines() for block in blocks if block.strip()] or [[""]]


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _body(blocks: Sequence[Sequence[str]]) -> Iterator[str]:
    for place, block in enumerate(blocks):
        if place:
            yield ".PP"
        if block[0].strip() == "\b":
            yield from (".nf", *(_text(line.rstrip()) for line in block[1:]), ".fi")
        else:
            yield _text(_joined(block))


def _list(records: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, about in records:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(_joined(about.split())) or "\\&")


def _text(text: str) -> str:
    """Text that roff prints as it is."""
    clean = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    clean = clean.replace("^", "\\(ha").replace("~", "\\(ti").replace('"', "\\(dq")
    clean = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in clean)
    return f"\\&{clean}" if clean.startswith(".") else clean
