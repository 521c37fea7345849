"""hostPath volumes: directories of the node itself, with the checks of each type."""

from __future__ import annotations

from winready_sandbox.machine import errors
from winready_sandbox.machine.files import FileSystem
from winready_sandbox.machine.tree import Device, Directory, File, Node
from winready_sandbox.nodes.volumes.content import VolumeError

_WORDS = {
    "Directory": "a directory",
    "File": "a file",
    "Socket": "a socket file",
    "CharDevice": "a character device",
    "BlockDevice": "a block device",
}


def host_node(files: FileSystem, path: str, kind: str) -> Node:
    """What a hostPath volume mounts, created first where its type asks for it."""
    try:
        place = files.find(path)
    except errors.FileError:
        place = None
    there = place.node if place is not None else None
    try:
        if kind == "DirectoryOrCreate" and there is None:
            files.mkdir(path, parents=True, mode=0o755)
        elif kind == "FileOrCreate" and there is None:
            files.write(path, b"")
        elif kind == "" and there is None:
            # Without a type nothing is checked, and the runtime makes the missing directory.
            files.mkdir(path, parents=True, mode=0o755)
        node = files.change(path)
    except errors.FileError as error:
        if kind in _WORDS:
            raise VolumeError(f"hostPath type check failed: {path} is not {_WORDS[kind]}") from None
        raise VolumeError(f"cannot prepare {path}: {error.text(files.os)}") from None
    wanted: type[Node] | None = {
        "Directory": Directory,
        "DirectoryOrCreate": Directory,
        "File": File,
        "FileOrCreate": File,
        "Socket": Device,
        "CharDevice": Device,
        "BlockDevice": Device,
    }.get(kind)
    if wanted is not None and not isinstance(node, wanted):
        word = _WORDS[kind.removesuffix("OrCreate")]
        raise VolumeError(f"hostPath type check failed: {path} is not {word}")
    return node
