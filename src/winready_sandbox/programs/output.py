"""Where a shell sends the output of a command: a file, nowhere, or memory."""

from __future__ import annotations

from collections.abc import Callable

from winready_sandbox.machine.handles import Handle
from winready_sandbox.machine.process import BROKEN_PIPE, Exit
from winready_sandbox.machine.tree import Device
from winready_sandbox.streams import FULL, Pipe


class FileWriter(Pipe):
    """Output into an open file, which is closed with it."""

    def __init__(self, target: Handle | Device, owner: object) -> None:
        super().__init__()
        self._target = target
        self._owner = owner

    def write(self, data: bytes) -> None:
        """Append to the file."""
        if isinstance(self._target, Device):
            if self._target.write is not None:
                self._target.write(self._owner, data)
        elif data:
            self._target.write(data)

    def close(self) -> None:
        """Close the file."""
        super().close()
        if not isinstance(self._target, Device):
            self._target.close()


class NullWriter(Pipe):
    """Output that nobody wants."""

    def write(self, data: bytes) -> None:
        """Forget the bytes."""


class Collector(Pipe):
    """Output kept in memory, for command substitution."""

    def __init__(self, grown: Callable[[int], None] = lambda size: None) -> None:
        super().__init__()
        self.data = bytearray()
        self._grown = grown

    def write(self, data: bytes) -> None:
        """Keep the bytes, if whoever wants them can hold them."""
        self._grown(len(self.data) + len(data))
        self.data += data

    def text(self) -> str:
        """What was written."""
        return self.data.decode("utf-8", "surrogateescape")


class Contents(Pipe):
    """An input from bytes that somebody else keeps: of a large file only what is read next is here as well."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data
        self._at = 0

    async def _more(self) -> None:
        self._inside += self._data[self._at : self._at + FULL]
        self._at += FULL
        if self._at >= len(self._data):
            self.close()


def filled(data: bytes) -> Pipe:
    """An input that holds these bytes and then ends."""
    if len(data) > FULL:
        return Contents(data)
    pipe = Pipe()
    pipe.write(data)
    pipe.close()
    return pipe


async def send(pipe: Pipe, data: bytes) -> None:
    """Write much, at the pace of the reader; one that is gone ends the process."""
    for start in range(0, len(data), FULL):
        if pipe.closed:
            raise Exit(BROKEN_PIPE)
        pipe.write(data[start : start + FULL])
        await pipe.room()
