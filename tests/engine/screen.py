"""A terminal and somebody who looks at it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios

ROWS, COLUMNS = 40, 160
PATIENCE = 60.0
"""Seconds until whoever looks at the terminal gives up."""
_FRAME = re.compile(rb"(?=\r\x1b\[2K)")
"""Where the live part of the screen begins to be drawn anew."""
_TOKEN = re.compile(r"\x1b\[(?P<argument>[\d;?]*)(?P<code>[A-Za-z])|(?P<control>[\r\n])|(?P<text>[^\x1b\r\n]+)")


class Screen:
    """What stands on a screen after what was written to it: as much of a terminal as the live view makes use of."""

    def __init__(self) -> None:
        self.lines = [""]
        self._row = self._column = 0

    def feed(self, written: str) -> None:
        """Show more."""
        for token in _TOKEN.finditer(written):
            if text := token["text"]:
                line = self.lines[self._row].ljust(self._column)
                self.lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
                self._column += len(text)
            elif token["control"] == "\r":
                self._column = 0
            elif token["control"] == "\n":
                self._row += 1
                if self._row == len(self.lines):
                    self.lines.append("")
            elif token["code"] == "A":
                self._row -= int(token["argument"] or 1)
            elif token["code"] == "K":
                self.lines[self._row] = ""
            else:
                # Colours, and whether there is a cursor.
                assert token["code"] in "mhl", token[0]

    @property
    def text(self) -> str:
        """All of it, without what is blank at the end of lines."""
        return "\n".join(line.rstrip() for line in self.lines).rstrip()


class Terminal:
    """A pseudo terminal: programs write to ``slave``, a person sits at the other end and misses no frame."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.written = b""
        self._screen = Screen()
        self._frames: list[bytes] = []
        self._rest = b""
        self._ended = False

    def until(self, *texts: str, without: str = "") -> str:
        """Look until all of this stands on the screen at once, without something else; then what stands there."""
        while True:
            while self._frames:
                seen = self._show(self._frames.pop(0))
                if all(text in seen for text in texts) and (not without or without not in seen):
                    return seen
            assert not self._ended, f"{texts} were never on the screen:\n{self._screen.text}"
            self._read()

    def to_the_end(self) -> str:
        """Look until nobody writes any more; then what stands there."""
        while not self._ended:
            self._read()
        return self._show(b"".join(self._frames))

    def go_away(self) -> None:
        """Hang up."""
        os.close(self._master)

    def _show(self, frame: bytes) -> str:
        self._screen.feed(frame.decode())
        return self._screen.text

    def _read(self) -> None:
        readable, _, _ = select.select([self._master], [], [], PATIENCE)
        assert readable, f"nothing more was written:\n{self._screen.text}"
        try:
            data = os.read(self._master, 65536)
        except OSError:
            # Nobody has the other end open any more.
            self._ended = True
            self._frames.append(self._rest)
            return
        self.written += data
        *whole, self._rest = _FRAME.split(self._rest + data)
        self._frames += whole
