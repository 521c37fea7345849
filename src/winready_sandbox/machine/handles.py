"""Open files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from winready_sandbox.clock import wall_time
from winready_sandbox.machine import errors, paths
from winready_sandbox.machine.paths import Parts
from winready_sandbox.machine.tree import File

if TYPE_CHECKING:
    from winready_sandbox.machine.files import FileSystem


@dataclass(eq=False)
class Handle:
    """An open file; on Windows its sharing mode keeps others out until it is closed."""

    fs: FileSystem
    parts: Parts
    file: File
    access: str
    share: str
    appends: bool = False

    def read(self) -> bytes:
        """The whole content."""
        return self.file.data

    def write(self, data: bytes) -> None:
        """Append to what is there (opening for `w` has emptied it)."""
        if self.fs.spoil is not None:
            data = self.fs.spoil(self.parts, data, self.appends)
        if self.fs.disk is not None:
            try:
                self.file.book(self.fs.disk, self.file.size + len(data))
            except errors.OutOfMemory:
                raise errors.NoSpace(paths.join(self.fs.os, self.parts)) from None
        self.file.append(data)
        self.file.mtime = wall_time()

    def close(self) -> None:
        """Let others in."""
        if self.file.handles and self in self.file.handles:
            self.file.handles.remove(self)
