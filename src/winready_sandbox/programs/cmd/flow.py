"""What the interpreter and its built-ins share: streams, and the name at the start of a command."""

from __future__ import annotations

import re
from dataclasses import dataclass

from winready_sandbox.streams import Pipe


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


def split_name(text: str) -> tuple[str, str]:
    """The command's name and the rest of its text."""
    if text.startswith('"'):
        end = text.find('"', 1)
        if end > 0:
            return text[1:end], text[end + 1 :]
    match = re.match(r"[^\s,;=]+", text)
    name = match[0] if match else text
    return name, text[len(name) :]
