"""Files and directories in memory, shared between containers as image layers are.

A directory that is *frozen* belongs to an image and is never changed: a writer replaces it, and the
directories above it, by shallow copies of its own. So a container costs nothing until it writes, and then
only what it touched. Volumes are ordinary unfrozen directories that several file systems mount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from winready_sandbox.clock import wall_time

if TYPE_CHECKING:
    from winready_sandbox.machine.handles import Handle
    from winready_sandbox.machine.resources import Memory

Acl = Mapping[str, str]
"""Windows rights per group: any of `r` (read and run), `w` (change), `d` (create directories)."""


class Node:
    """What a name in a directory stands for."""

    __slots__ = ("acl", "frozen", "gid", "mode", "mtime", "uid")

    def __init__(self, mode: int, uid: int = 0, gid: int = 0, acl: Acl | None = None) -> None:
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.acl = acl
        """Own access list (Windows); None = inherited from the directory."""
        self.mtime = wall_time()
        self.frozen = False

    def thawed(self) -> Node:
        """This node if it may be changed, else a copy that may."""
        raise NotImplementedError

    def _take_attributes(self, other: Node) -> None:
        self.mode, self.uid, self.gid, self.acl, self.mtime = other.mode, other.uid, other.gid, other.acl, other.mtime


class File(Node):
    """A file's bytes."""

    __slots__ = ("_content", "booked", "disk", "handles")

    def __init__(
        self, data: bytes = b"", mode: int = 0o644, uid: int = 0, gid: int = 0, acl: Acl | None = None
    ) -> None:
        super().__init__(mode, uid, gid, acl)
        self._content: bytes | bytearray = data
        self.handles: list[Handle] | None = None
        self.disk: Memory | None = None
        """Where the bytes are booked that somebody wrote; what an image brings costs nothing."""
        self.booked = 0

    @property
    def data(self) -> bytes:
        """All of them."""
        if isinstance(self._content, bytearray):
            self._content = bytes(self._content)
        return self._content

    @data.setter
    def data(self, data: bytes) -> None:
        self._content = data

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._content)

    def append(self, data: bytes) -> None:
        """Add some; those who add often do not copy the rest each time."""
        if not isinstance(self._content, bytearray):
            self._content = bytearray(self._content)
        self._content += data

    def book(self, disk: Memory, size: int) -> None:
        """Take or give back room on a disk for that many bytes; raises `OutOfMemory` where there is none."""
        known = self.booked if self.disk is disk else 0
        if size > known:
            disk.take(size - known)
        else:
            disk.give_back(known - size)
        if self.disk is not None and self.disk is not disk:
            self.disk.give_back(self.booked)
        self.disk, self.booked = disk, size

    def __del__(self) -> None:
        if self.disk is not None:
            self.disk.give_back(self.booked)

    def thawed(self) -> File:
        """See `Node.thawed`."""
        if not self.frozen:
            return self
        copy = File(self.data)
        copy._take_attributes(self)
        return copy


class Device(Node):
    """A file without bytes of its own: /dev/null, /proc entries; the functions get the container that asks."""

    __slots__ = ("read", "write")

    def __init__(
        self,
        read: Callable[[Any], bytes] = lambda owner: b"",
        write: Callable[[Any, bytes], None] | None = None,
        mode: int = 0o444,
    ) -> None:
        super().__init__(mode)
        self.read = read
        self.write = write

    def thawed(self) -> Device:
        """Devices are never changed."""
        return self


class Symlink(Node):
    """A symbolic link."""

    __slots__ = ("target",)

    def __init__(self, target: str) -> None:
        super().__init__(0o777)
        self.target = target

    def thawed(self) -> Symlink:
        """Links are replaced, never changed."""
        return self


class Directory(Node):
    """Names and what they stand for; ``fold`` = upper and lower case are the same name, as on Windows."""

    __slots__ = ("_entries", "fold", "inherit")

    def __init__(
        self,
        mode: int = 0o755,
        uid: int = 0,
        gid: int = 0,
        *,
        fold: bool = False,
        acl: Acl | None = None,
        inherit: Acl | None = None,
    ) -> None:
        super().__init__(mode, uid, gid, acl)
        self.fold = fold
        self.inherit = inherit
        """What children without a list of their own get, where that differs from ``acl``."""
        self._entries: dict[str, tuple[str, Node]] = {}

    def __contains__(self, name: str) -> bool:
        return self._key(name) in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def _key(self, name: str) -> str:
        return name.lower() if self.fold else name

    def get(self, name: str) -> Node | None:
        """What the name stands for."""
        entry = self._entries.get(self._key(name))
        return entry[1] if entry else None

    def true_name(self, name: str) -> str:
        """The name as it was first written."""
        entry = self._entries.get(self._key(name))
        return entry[0] if entry else name

    def put(self, name: str, node: Node) -> None:
        """Let the name stand for this node; an existing name keeps its spelling."""
        key = self._key(name)
        old = self._entries.get(key)
        self._entries[key] = (old[0] if old else name, node)
        self.mtime = wall_time()

    def drop(self, name: str) -> None:
        """Forget the name."""
        del self._entries[self._key(name)]
        self.mtime = wall_time()

    def items(self) -> Iterator[tuple[str, Node]]:
        """Names and nodes in the order a listing shows them."""
        for key in sorted(self._entries):
            yield self._entries[key]

    def replace(self, content: Directory) -> None:
        """Swap the whole content at once, so that no reader sees half of it."""
        self._entries = dict(content._entries)
        self.mtime = wall_time()

    def thawed(self) -> Directory:
        """See `Node.thawed`; the children stay shared."""
        if not self.frozen:
            return self
        copy = Directory(fold=self.fold)
        copy._take_attributes(self)
        copy.inherit = self.inherit
        copy._entries = dict(self._entries)
        return copy

    def freeze(self) -> Directory:
        """Make this whole tree unchangeable."""
        self.frozen = True
        for _, node in self._entries.values():
            if isinstance(node, Directory):
                if not node.frozen:
                    node.freeze()
            else:
                node.frozen = True
        return self

    def make(self, path: str, node: Node) -> None:
        """Put a node at a path of `/`-separated names, making directories on the way (for building trees)."""
        *parents, name = [part for part in path.split("/") if part]
        here = self
        for parent in parents:
            child = here.get(parent)
            if not isinstance(child, Directory) or child.frozen:
                child = child.thawed() if isinstance(child, Directory) else Directory(fold=self.fold)
                here.put(parent, child)
            here = child
        here.put(name, node)


def as_directory(node: Node | None) -> Directory:
    """The node, known to be a directory."""
    if not isinstance(node, Directory):
        raise TypeError(f"expected a directory, not {type(node).__name__}")
    return node


def as_file(node: Node | None) -> File:
    """The node, known to be a file."""
    if not isinstance(node, File):
        raise TypeError(f"expected a file, not {type(node).__name__}")
    return node
