"""``winready help``: what ``--help`` says, in the place where many look for it."""

from __future__ import annotations

import click


@click.command("help")
@click.argument("commands", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_command(ctx: click.Context, commands: tuple[str, ...]) -> None:
    """Print the help of winready, or of a command.

    \b
    winready help
    winready help sandbox up
    """
    root = ctx.find_root()
    found: click.Context = root
    for name in commands:
        group = found.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"'{found.command_path}' has no commands", ctx=found)
        _, command, _ = group.resolve_command(found, [name])
        if command is None:
            raise click.UsageError(f"no such command {name!r}", ctx=found)
        found = click.Context(command, info_name=name, parent=found, **root.command.context_settings)
    click.echo(found.get_help())
