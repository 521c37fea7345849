"""The ``winready`` command: a table of subcommands, each imported only when it is called."""

from __future__ import annotations

import contextlib
import difflib
import errno
import importlib
import os
import sys
from typing import Any

import click

from winready import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("winready.cli.run:run", "Verify a cluster against the standard and say Pass or Fail."),
    "plan": ("winready.cli.plan:plan", "What a run would do, without doing it."),
    "status": ("winready.cli.status:status", "The verdict of the last run."),
    "report": ("winready.cli.report:report", "A finished run as HTML, JUnit, CSV, JSON, YAML, Markdown or for Prow."),
    "history": ("winready.cli.history:history", "The runs of each cluster and what changed between them."),
    "compare": ("winready.cli.compare:compare", "Two runs side by side: better, worse, same, new."),
    "dashboard": ("winready.cli.dashboard:dashboard", "A local web page: all runs, each run, comparisons, live runs."),
    "certify": ("winready.cli.certify:certify", "The bundle that a vendor hands in."),
    "verify": ("winready.cli.verify:verify", "Check a bundle again: every byte, and the verdict by the rules."),
    "spec": ("winready.cli.spec:spec", "The standard as data: requirements, categories, rules."),
    "upstream": ("winready.cli.upstream:upstream", "Kubernetes' own e2e.test: its specs and what they verify."),
    "sonobuoy": ("winready.cli.sonobuoy:sonobuoy", "The plugin for Sonobuoy, and what it brought."),
    "steer": ("winready.cli.steer:steer", "Send pods without an OS selector to Windows nodes, in chosen namespaces."),
    "cleanup": ("winready.cli.cleanup:cleanup", "Remove whatever runs left behind on a cluster."),
    "deploy": ("winready.cli.deploy:deploy", "Runs in the cluster itself: a Job, or a CronJob on a schedule."),
    "rbac": ("winready.cli.rbac:rbac", "The least rights that a run needs, as YAML."),
    "lint": ("winready.cli.lint:lint", "Check manifests against what Windows nodes support."),
    "matrix": (
        "winready.cli.matrix:matrix",
        "What Windows supports in a Kubernetes version, and what an upgrade changes.",
    ),
    "node": ("winready.cli.node:node", "From a bare Windows machine to a proven worker."),
    "completion": ("winready.cli.completion:completion", "Scripts that complete commands in a shell."),
    "sandbox": ("winready.cli.sandbox:sandbox", "A simulated hybrid cluster on loopback that needs nothing installed."),
}
CANNOT_WRITE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class LazyGroup(click.Group):
    """A group whose commands are named in a table, so that ``--help`` imports none of them."""

    def __init__(self, *args: Any, commands_table: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands_table = commands_table

    def invoke(self, ctx: click.Context) -> Any:
        """A full disk or a reader that went away says nothing about the cluster: never exit code 1, and no trace."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno not in CANNOT_WRITE:
                raise
            with contextlib.suppress(OSError):
                click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
            # Or Python would try once more at its end, and complain in a way of its own.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(3)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_table:
            return None
        module, attribute = self.commands_table[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands_table and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.commands_table, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.commands_table.items()])


@click.group(
    cls=LazyGroup,
    commands_table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="winready", message="%(prog)s %(version)s")
def cli() -> None:
    """Tell, with proof, whether a Kubernetes cluster is operationally ready for Windows workloads."""
