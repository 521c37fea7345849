"""What the interpreter and its built-ins share: streams, and the name at the start of a command."""

from __future__ import annotations

import re
from dataclasses import dataclass

from winready_sandbox.streams import Pipe, encoded


@dataclass
class Streams:
    """Where the current command reads and writes."""

    stdin: Pipe
    stdout: Pipe
    stderr: Pipe

    def out(self, text: str) -> None:
        """Write to standard output; line ends become CRLF."""
        self.stdout.write(encoded(text.replace("\n", "\r\n")))

    def err(self, text: str) -> None:
        """Write to standard error; line ends become CRLF."""
        self.stderr.write(encoded(text.replace("\n", "\r\n")))


def number(text: str) -> int:
    """A number as cmd reads one: 32 bits of it, and 0 where there is none."""
    found = re.match(r"[-+]?\d+", text, re.ASCII)
    return max(-(2**31), min(int(found[0][:12]), 2**31 - 1)) if found else 0


def split_name(text: str) -> tuple[str, str]:
    """The command's name and the rest of its text."""
    if text.startswith('"'):
        end = text.find('"', 1)
        if end > 0:
            return text[1:end], text[end + 1 :]
    match = re.match(r"[^\s,;=]+", text)
    name = match[0] if match else text
    return name, text[len(name) :]
