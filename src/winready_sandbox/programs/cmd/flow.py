"""What the interpreter and its built-ins share: streams, and the ways out of a batch file."""

from __future__ import annotations

from dataclasses import dataclass

from winready_sandbox.streams import Pipe


class LeaveBatch(Exception):
    """`exit /b` inside a batch file."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


class Goto(Exception):
    """`goto label` inside a batch file."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.label = label


@dataclass
class Streams:
    """Where the current command reads and writes."""

    stdin: Pipe
    stdout: Pipe
    stderr: Pipe

    def out(self, text: str) -> None:
        """Write to standard output; line ends become CRLF."""
        self.stdout.write(text.replace("\n", "\r\n").encode("utf-8", "surrogateescape"))

    def err(self, text: str) -> None:
        """Write to standard error; line ends become CRLF."""
        self.stderr.write(text.replace("\n", "\r\n").encode("utf-8", "surrogateescape"))
