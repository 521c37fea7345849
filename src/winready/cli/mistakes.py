"""Mistakes on the command line, told as every other error is: one line of what is wrong, one of what to do."""

from __future__ import annotations

import difflib
import re

import click

from winready.report.printable import printable

NEAR = 0.75
"""How alike a suggestion must be: one that is far off sends people the wrong way."""


def told(error: click.ClickException) -> list[str]:
    """The lines for standard error."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return [error.format_message()]
    lines = [f"error: {printable(_message(error))}"]
    if isinstance(error, click.UsageError) and error.ctx is not None:
        lines.append(f"       '{error.ctx.command_path} --help' shows how it is written")
    return lines


def _message(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        near = difflib.get_close_matches(error.option_name, error.possibilities or [], n=1, cutoff=NEAR)
        return f"no such option {error.option_name}" + (f"; did you mean {near[0]}?" if near else "")
    # click sets choices below each other.
    text = " ".join(error.format_message().split()).removesuffix(".").replace(". Did you mean", "; did you mean")
    text = re.sub(r"(\}'?)\. Choose from: .*", r"\1", text).replace(". Choose from: ", ": ")
    # click begins a sentence; what stands behind "error:" goes on with one.
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
