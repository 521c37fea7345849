"""The ``winready`` command: a table of subcommands, each imported only when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from winready import __version__
from winready.cli.front import ABOUT, COMMANDS, WIDEST, cannot_write

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


REPEATS = "May be repeated."


class LazyGroup(click.Group):
    """A group whose commands are named in a table, so that ``--help`` imports none of them."""

    def __init__(self, *args: Any, commands_table: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands_table = commands_table

    def invoke(self, ctx: click.Context) -> Any:
        """A full disk or a reader that went away says nothing about the cluster: never exit code 1, and no trace."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(130)
        except OSError as error:
            cannot_write(error)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Here click prints help that was asked for in an unusual order."""
        try:
            return super().make_context(*args, **kwargs)
        except OSError as error:
            cannot_write(error)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Mistakes are told in one way, wherever they are noticed: what is wrong, then what to do."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            from winready.cli.mistakes import told

            for text in told(error):
                click.echo(text, err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(130)
        sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_table:
            return None
        module, attribute = self.commands_table[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        _say_what_repeats(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands_table and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.commands_table, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"no such command {args[0]!r}{hint}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [name for name in self.commands_table if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.commands_table[name][1]) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.commands_table.items()])


def _say_what_repeats(command: click.Command) -> None:
    """Help tells of each option that may be given more than once, in the same words."""
    for option in command.params:
        if isinstance(option, click.Option) and option.multiple and option.help and REPEATS not in option.help:
            option.help = f"{option.help.rstrip('.')}. {REPEATS}"
    for child in command.commands.values() if isinstance(command, click.Group) else ():
        _say_what_repeats(child)


@click.group(
    cls=LazyGroup,
    commands_table=COMMANDS,
    help=ABOUT,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)
@click.version_option(__version__, prog_name="winready", message="%(prog)s %(version)s")
def cli() -> None:
    """All commands."""
