"""Where a shell sends the output of a command: a file, nowhere, or memory."""

from __future__ import annotations

from winready_sandbox.machine.files import Handle
from winready_sandbox.machine.tree import Device
from winready_sandbox.streams import Pipe


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

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        """Keep the bytes."""
        self.data += data

    def text(self) -> str:
        """What was written."""
        return self.data.decode("utf-8", "surrogateescape")


def filled(data: bytes) -> Pipe:
    """An input that holds these bytes and then ends."""
    pipe = Pipe()
    pipe.write(data)
    pipe.close()
    return pipe
