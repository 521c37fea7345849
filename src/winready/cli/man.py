"""``winready man``: the manual pages, made from the commands of this very version."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("command", nargs=-1)
@click.option(
    "--write",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the pages of all commands to DIR/man1, instead of printing one.",
)
def man(command: tuple[str, ...], folder: Path | None) -> None:
    """Print the manual page of a command, or write them all.

    \b
    winready man run | man -l -                     the page of 'winready run'
    winready man --write ~/.local/share/man         then: man winready, man winready-run
    """
    from winready.cli.main import cli
    from winready.cli.manual import find, page, pages
    from winready.cli.options import fail, say

    if folder is None:
        click.echo(page(*find(cli, command)), nl=False)
        return
    if command:
        raise click.UsageError("--write writes the pages of all commands; name none.")
    try:
        (folder / "man1").mkdir(parents=True, exist_ok=True)
        number = 0
        for name, text in pages(cli):
            (folder / "man1" / name).write_text(text)
            number += 1
    except OSError as error:
        fail(f"{error.filename or folder} cannot be written: {error.strerror}")
    say(f"{number} pages in {folder / 'man1'}")
