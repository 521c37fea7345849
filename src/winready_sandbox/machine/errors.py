"""How work on a simulated machine fails, in the words of each operating system.

Programs print these words, so they are kept in one place: a check that reads them must see what a real node says.
"""

from __future__ import annotations

from typing import Literal

OS = Literal["windows", "linux"]


class FileError(Exception):
    """A file operation that the operating system refused; the subclass says why."""

    windows = "The parameter is incorrect."
    linux = "Invalid argument"
    code = 87
    """The Windows error number."""

    def __init__(self, path: str = "") -> None:
        super().__init__(f"{type(self).__name__}: {path}")
        self.path = path

    def text(self, os: OS) -> str:
        """The system's own message."""
        return self.windows if os == "windows" else self.linux


class NotFound(FileError):
    """The last component does not exist."""

    windows = "The system cannot find the file specified."
    linux = "No such file or directory"
    code = 2


class PathNotFound(NotFound):
    """A directory on the way does not exist; Linux has no words of its own for it."""

    windows = "The system cannot find the path specified."
    code = 3


class AccessDenied(FileError):
    """The user lacks the right."""

    windows = "Access is denied."
    linux = "Permission denied"
    code = 5


class ReadOnly(AccessDenied):
    """The mount takes no writes."""

    linux = "Read-only file system"


class SharingViolation(FileError):
    """Another handle excludes this one; only Windows has mandatory sharing modes."""

    windows = "The process cannot access the file because it is being used by another process."
    linux = "Text file busy"
    code = 32


class AlreadyExists(FileError):
    """There is something by that name."""

    windows = "Cannot create a file when that file already exists."
    linux = "File exists"
    code = 183


class NotDirectory(FileError):
    """A directory was needed."""

    windows = "The directory name is invalid."
    linux = "Not a directory"
    code = 267


class IsDirectory(AccessDenied):
    """A file was needed; Windows answers with denied access."""

    linux = "Is a directory"


class NotEmpty(FileError):
    """Only an empty directory can be removed."""

    windows = "The directory is not empty."
    linux = "Directory not empty"
    code = 145


class InvalidName(FileError):
    """Windows forbids some characters in names."""

    windows = "The filename, directory name, or volume label syntax is incorrect."
    linux = "Invalid argument"
    code = 123


class TooManyLinks(FileError):
    """Symbolic links that lead in a circle."""

    windows = "The name of the file cannot be resolved by the system."
    linux = "Too many levels of symbolic links"
    code = 1921


class NetworkPathNotFound(FileError):
    """No server, or no share, answers by that name."""

    windows = "The network path was not found."
    linux = "No such file or directory"
    code = 53


class NetworkNameGone(FileError):
    """A share that its server does not serve any more."""

    windows = "The specified network name is no longer available."
    linux = "Host is down"
    code = 64


class NoSpace(FileError):
    """The disk is full."""

    windows = "There is not enough space on the disk."
    linux = "No space left on device"
    code = 112


class OutOfMemory(Exception):
    """An allocation that Windows refuses at the job's commit limit; the process may go on without it."""


class ExecError(Exception):
    """The program could not be started at all: the runtime reports it and there is no exit code."""

    def __init__(self, os: OS, reason: str, *, permission: bool = False) -> None:
        super().__init__(reason)
        self.os = os
        self.reason = reason
        self.permission = permission

    def on_exec(self, container_id: str, exec_id: str) -> str:
        """What containerd answers to an exec."""
        if self.os == "windows":
            return (
                f'failed to exec in container: failed to start exec "{exec_id}": '
                f"hcs::System::CreateProcess {container_id}: {self.reason}: unknown"
            )
        return (
            f'failed to exec in container: failed to start exec "{exec_id}": OCI runtime exec failed: exec failed: '
            f"unable to start container process: {self.reason}: unknown"
        )

    def on_start(self, container_id: str) -> str:
        """What containerd answers when a container's first process cannot start."""
        if self.os == "windows":
            return (
                "failed to create containerd task: failed to create shim task: "
                f"hcs::System::CreateProcess {container_id}: {self.reason}: unknown"
            )
        return (
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
            f"runc create failed: unable to start container process: {self.reason}: unknown"
        )
