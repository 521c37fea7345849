"""``winready completion``: scripts that complete commands and options in a shell."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish", "powershell")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    winready completion bash > /etc/bash_completion.d/winready
    source <(winready completion zsh)
    winready completion fish | source
    winready completion powershell | Out-String | Invoke-Expression
    """
    from click.shell_completion import get_completion_class

    from winready.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click cannot complete for {shell}")
    click.echo(kind(cli, {}, "winready", "_WINREADY_COMPLETE").source())
