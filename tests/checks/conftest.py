"""Checks are tried as users run them: from the command line, against a sandbox of the run's own."""

from cli.conftest import CommandLine, command_line

__all__ = ["CommandLine", "command_line"]
