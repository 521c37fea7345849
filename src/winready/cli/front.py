"""What the command line says before click is imported: the table of commands, and the first page of help from it.

Click takes most of what ``--help`` costs. A test holds the page to what click would print, at any width.
"""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False
"""As mypy reads it; typing itself would be half of what ``--version`` costs."""
if TYPE_CHECKING:
    from typing import NoReturn

ABOUT = "Tell, with proof, whether a Kubernetes cluster is operationally ready for Windows workloads."
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("winready.cli.run:run", "Verify a cluster against the standard and say Pass or Fail."),
    "doctor": ("winready.cli.doctor:doctor", "What a run would meet: connection, rights, nodes, size, images."),
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
    "capi": ("winready.cli.capi:capi", "Cluster API waits for a Pass: a runtime extension for its hooks."),
    "rbac": ("winready.cli.rbac:rbac", "The least rights that a run needs, as YAML."),
    "lint": ("winready.cli.lint:lint", "Check manifests against what Windows nodes support."),
    "matrix": (
        "winready.cli.matrix:matrix",
        "What Windows supports in a Kubernetes version, and what an upgrade changes.",
    ),
    "node": ("winready.cli.node:node", "From a bare Windows machine to a proven worker."),
    "version": ("winready.cli.version:version", "Which winready this is, and what it knows."),
    "help": ("winready.cli.help:help_command", "The help of a command."),
    "completion": ("winready.cli.completion:completion", "Scripts that complete commands in a shell."),
    "man": ("winready.cli.man:man", "Manual pages of all commands."),
    "sandbox": ("winready.cli.sandbox:sandbox", "A simulated hybrid cluster on loopback that needs nothing installed."),
}
OPTIONS = {"--version": "Show the version and exit.", "-h, --help": "Show this message and exit."}
WIDEST, NARROWEST = 110, 50
CANNOT_WRITE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def answer(arguments: list[str]) -> str | None:
    """What these arguments ask for, if it can be said at once."""
    if arguments == ["--version"]:
        from winready import __version__

        return f"winready {__version__}\n"
    if arguments in (["--help"], ["-h"]):
        return help_page()
    return None


def say(text: str) -> None:
    """Print, or say why that cannot be."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        cannot_write(error)


def cannot_write(error: OSError) -> NoReturn:
    """A full disk or a reader that went away says nothing about any cluster: one sentence, and never exit code 1."""
    if error.errno not in CANNOT_WRITE:
        raise error
    try:
        sys.stderr.write(f"error: the output cannot be written: {error.strerror}\n")
        # Or Python would try once more at its end, and complain in a way of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
    sys.exit(3)


def help_page() -> str:
    """The first page of help, as wide as the terminal."""
    import shutil

    width = max(min(shutil.get_terminal_size().columns, WIDEST) - 2, NARROWEST)
    return (
        "Usage: winready [OPTIONS] COMMAND [ARGS]...\n\n"
        + "".join(f"  {line}\n" for line in _lines(ABOUT, width - 2))
        + "\nOptions:\n"
        + _listed(OPTIONS, width)
        + "\nCommands:\n"
        + _listed({name: text for name, (_, text) in COMMANDS.items()}, width)
    )


def _listed(texts: dict[str, str], width: int) -> str:
    column = max(map(len, texts)) + 2
    listed = ""
    for name, text in texts.items():
        first, *rest = _lines(text, width - column - 2)
        listed += f"  {name:{column}}{first}\n" + "".join(f"  {'':{column}}{line}\n" for line in rest)
    return listed


def _lines(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width)
