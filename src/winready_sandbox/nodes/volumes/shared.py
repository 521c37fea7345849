"""Folders on a file server that every node can mount, as an SMB driver makes them for claims."""

from __future__ import annotations

from winready_sandbox.machine.tree import Directory

DRIVER = "smb.csi.k8s.io"


class SharedFolders:
    """The folders by the handle of their volume; all nodes see the same files."""

    def __init__(self) -> None:
        self._folders: dict[str, Directory] = {}

    def open(self, handle: str) -> Directory:
        """The folder, empty when nobody has used it yet; a Windows server does not tell upper from lower case."""
        return self._folders.setdefault(handle, Directory(0o777, fold=True))

    def drop(self, handle: str) -> None:
        """Delete a folder with all that is in it."""
        self._folders.pop(handle, None)
