"""A file system as one container (or machine) sees it: a tree, mounts over it, and the rules of its OS.

Windows: names ignore case, an open handle excludes others by its sharing mode, access lists decide.
Linux: names do not ignore case, links are followed on the way, mode bits decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from winready_sandbox.clock import wall_time
from winready_sandbox.machine import errors, paths
from winready_sandbox.machine.errors import OS
from winready_sandbox.machine.handles import Handle
from winready_sandbox.machine.paths import Parts
from winready_sandbox.machine.resources import Memory
from winready_sandbox.machine.tree import Acl, Device, Directory, File, Node, Symlink, as_directory, as_file
from winready_sandbox.machine.users import Identity

OPEN_ACL: Acl = {"Administrators": "rwd", "SYSTEM": "rwd", "Authenticated Users": "rwd", "Users": "rd"}
"""What directories made under ``C:\\`` inherit: everybody who is logged on may write."""
PROTECTED_ACL: Acl = {"Administrators": "rwd", "SYSTEM": "rwd", "Users": "r"}
"""System directories and projected files: everybody reads, administrators write."""

_MAX_LINKS = 40


@dataclass(frozen=True)
class Mount:
    """A tree (or single file) that appears at a path."""

    parts: Parts
    node: Node
    read_only: bool = False
    memory: bool = False


@dataclass(frozen=True)
class Place:
    """Where a path leads: the true parts, what is there, and what decides about access to it."""

    parts: Parts
    node: Node | None
    read_only: bool
    acl: Acl
    parent: Directory | None
    parent_acl: Acl


class FileSystem:
    """The view of one container or machine; `who` is None for the system itself, which may do everything."""

    def __init__(self, os: OS, root: Directory, *, owner: object = None, disk: Memory | None = None) -> None:
        self.os: OS = os
        self.root = root
        self.owner = owner
        """Whom device files answer about."""
        self.disk = disk
        """Where written bytes are booked."""
        self.shares: Callable[[str, str, Identity | None], Directory] | None = None
        """How `\\\\server\\share` is reached, if it is."""
        self.read_only_root = False
        self.spoil: Callable[[Parts, bytes, bool], bytes] | None = None
        """What a bad disk makes of bytes that are written at a path, or appended there."""
        self._mounts: dict[Parts, Mount] = {}

    def mount(self, path: str, node: Node, *, read_only: bool = False, memory: bool = False) -> None:
        """Let a tree or file appear at a path; ``memory`` = it is no disk that it is on."""
        mount = Mount(self.parts(path, self.top), node, read_only, memory)
        self._mounts[paths.fold(self.os, mount.parts)] = mount

    def unmount(self, path: str) -> None:
        """Let what was there before appear again."""
        self._mounts.pop(paths.fold(self.os, self.parts(path, self.top)), None)

    @property
    def mounts(self) -> list[Mount]:
        """What is mounted where."""
        return list(self._mounts.values())

    @property
    def top(self) -> str:
        """The root path."""
        return "C:\\" if self.os == "windows" else "/"

    def parts(self, path: str, cwd: str) -> Parts:
        """A path taken apart."""
        return paths.split(self.os, path, cwd)

    def absolute(self, path: str, cwd: str) -> str:
        """A path made absolute, in the OS's own spelling."""
        parts = self.parts(path, cwd)
        if self.os == "linux" and ".." in parts:
            done: list[str] = []
            for part in parts:
                if part != "..":
                    done.append(part)
                elif done:
                    done.pop()
            parts = tuple(done)
        return paths.join(self.os, parts)

    def _share(self, parts: Parts, who: Identity | None) -> tuple[Directory, int]:
        if len(parts) < 2 or self.shares is None:
            raise errors.NetworkPathNotFound(paths.join(self.os, parts))
        return self.shares(parts[0].lstrip("\\"), parts[1], who), 2

    def find(self, path: str, cwd: str = "", *, who: Identity | None = None, follow: bool = True) -> Place:
        """Follow a path; raises when a directory on the way is missing, not when the last part is."""
        return self._find(self.parts(path, cwd or self.top), path, who, follow)

    def _find(self, wanted: Parts, path: str, who: Identity | None, follow: bool) -> Place:
        trail: list[str] = []
        key: Parts = ()
        node: Node = self.root
        acl: Acl = OPEN_ACL
        passed_on: Acl = OPEN_ACL
        parent: Directory | None = None
        parent_acl: Acl = OPEN_ACL
        read_only = self.read_only_root
        links = 0
        pending = list(reversed(wanted))
        if wanted and wanted[0].startswith("\\\\"):
            node, used = self._share(wanted, who)
            trail, pending = list(wanted[:used]), pending[:-used]
            key = paths.fold(self.os, wanted[:used])
            acl = passed_on = node.acl or OPEN_ACL
        while pending:
            name = pending.pop()
            if name == "..":
                pending += reversed(trail[:-1])
                trail, key, node, parent, read_only = [], (), self.root, None, self.read_only_root
                continue
            if not isinstance(node, Directory):
                raise errors.PathNotFound(path) if self.os == "windows" else errors.NotDirectory(path)
            if who is not None and self.os == "linux" and not self._mode_allows(node, who, 1):
                raise errors.AccessDenied(path)
            key = (*key, name.lower() if self.os == "windows" else name)
            mounted = self._mounts.get(key)
            child = mounted.node if mounted else node.get(name)
            if child is None and any(at[: len(key)] == key for at in self._mounts):
                child = Directory(fold=node.fold)
            if child is None:
                if pending:
                    raise errors.PathNotFound(path)
                return Place((*trail, name), None, read_only, passed_on, node, acl)
            if isinstance(child, Symlink) and (pending or follow):
                links += 1
                if links > _MAX_LINKS:
                    raise errors.TooManyLinks(path)
                target = self.parts(child.target, paths.join(self.os, tuple(trail)) if trail else self.top)
                pending += reversed(target)
                trail, key, node, parent, read_only = [], (), self.root, None, self.read_only_root
                acl = passed_on = OPEN_ACL
                continue
            parent, parent_acl = node, acl
            trail.append(node.true_name(name))
            if mounted:
                read_only, passed_on = mounted.read_only, OPEN_ACL
            acl = child.acl if child.acl is not None else passed_on
            if isinstance(child, Directory):
                passed_on = child.inherit if child.inherit is not None else acl
            node = child
        return Place(tuple(trail), node, read_only, acl, parent, parent_acl)

    @staticmethod
    def _mode_allows(node: Node, who: Identity, bit: int) -> bool:
        if who.uid == 0:
            return True
        shift = 6 if who.uid == node.uid else 3 if who.gid == node.gid else 0
        return bool(node.mode >> shift & bit)

    def _allows(self, node: Node, acl: Acl, who: Identity | None, right: str) -> bool:
        if who is None:
            return True
        if self.os == "windows":
            return any(right in rights for group, rights in acl.items() if group in who.groups or group == who.name)
        return self._mode_allows(node, who, 4 if right == "r" else 2)

    def _own_directory(self, parts: Parts) -> Directory:
        """The directory at true parts, made changeable together with those above it."""
        best = 0
        key = paths.fold(self.os, parts)
        for at in self._mounts:
            if len(at) > best and key[: len(at)] == at and isinstance(self._mounts[at].node, Directory):
                best = len(at)
        if best:
            mount = self._mounts[key[:best]]
            here = as_directory(mount.node).thawed()
            if here is not mount.node:
                self._mounts[key[:best]] = Mount(mount.parts, here, mount.read_only, mount.memory)
        elif parts and parts[0].startswith("\\\\"):
            here, best = self._share(parts, None)
        else:
            self.root = self.root.thawed()
            here = self.root
        for name in parts[best:]:
            child = here.get(name)
            # An empty directory is false, and is there all the same.
            thawed = as_directory(Directory(fold=here.fold) if child is None else child).thawed()
            if thawed is not child:
                here.put(name, thawed)
            here = thawed
        return here

    def _existing(self, path: str, cwd: str, who: Identity | None, follow: bool = True) -> tuple[Place, Node]:
        place = self.find(path, cwd, who=who, follow=follow)
        if place.node is None:
            raise errors.NotFound(path)
        return place, place.node

    def _writable_parent(self, place: Place, path: str, who: Identity | None, right: str = "w") -> Directory:
        if place.read_only:
            raise errors.ReadOnly(path)
        if place.parent is not None and not self._allows(place.parent, place.parent_acl, who, right):
            raise errors.AccessDenied(path)
        return self._own_directory(place.parts[:-1])

    def node(self, path: str, cwd: str = "", *, who: Identity | None = None, follow: bool = True) -> Node:
        """What is there; raises if there is nothing."""
        return self._existing(path, cwd, who, follow)[1]

    def exists(self, path: str, cwd: str = "") -> bool:
        """Is there something at this path?"""
        try:
            return self.find(path, cwd).node is not None
        except errors.FileError:
            return False

    def is_dir(self, path: str, cwd: str = "") -> bool:
        """Is there a directory at this path?"""
        try:
            return isinstance(self.find(path, cwd).node, Directory)
        except errors.FileError:
            return False

    def list(self, path: str, cwd: str = "", *, who: Identity | None = None) -> list[tuple[str, Node]]:
        """Names in a directory and what they stand for, mounts included."""
        place, node = self._existing(path, cwd, who)
        if not isinstance(node, Directory):
            raise errors.NotDirectory(path)
        if not self._allows(node, place.acl, who, "r"):
            raise errors.AccessDenied(path)
        found, depth = dict(node.items()), len(place.parts)
        for key, mount in self._mounts.items():
            if len(key) > depth and key[:depth] == paths.fold(self.os, place.parts):
                name = node.true_name(mount.parts[depth])
                found[name] = mount.node if len(key) == depth + 1 else found.get(name) or Directory(fold=node.fold)
        return sorted(found.items(), key=lambda item: item[0].lower() if self.os == "windows" else item[0])

    def walk(self, path: str, cwd: str = "", *, who: Identity | None = None) -> Iterator[tuple[str, Node]]:
        """The path itself and everything below it, top down."""
        node = self.node(path, cwd, who=who, follow=False)
        yield path, node
        if isinstance(node, Directory):
            separator = "\\" if self.os == "windows" else "/"
            for name, _ in self.list(path, cwd, who=who):
                yield from self.walk(f"{path.rstrip(separator)}{separator}{name}", cwd, who=who)

    def read(self, path: str, cwd: str = "", *, who: Identity | None = None) -> bytes:
        """A file's content."""
        handle = self.open(path, cwd, who=who, access="r", share="rwd")
        if isinstance(handle, Device):
            return handle.read(self.owner)
        try:
            return handle.read()
        finally:
            handle.close()

    def write(
        self,
        path: str,
        data: bytes,
        cwd: str = "",
        *,
        who: Identity | None = None,
        append: bool = False,
        share: str = "r",
    ) -> None:
        """Write a file in one go."""
        handle = self.open(path, cwd, who=who, access="a" if append else "w", share=share)
        if isinstance(handle, Device):
            if handle.write:
                handle.write(self.owner, data)
            return
        try:
            handle.write(data)
        finally:
            handle.close()

    def open(
        self, path: str, cwd: str = "", *, who: Identity | None = None, access: str = "r", share: str = "rwd"
    ) -> Handle | Device:
        """Open for reading (`r`), writing anew (`w`) or appending (`a`), sharing with readers, writers, deleters."""
        place = self.find(path, cwd, who=who)
        node = place.node
        if isinstance(node, Device):
            if access != "r" and node.write is None:
                raise errors.AccessDenied(path)
            return node
        if isinstance(node, Directory):
            raise errors.IsDirectory(path)
        if access == "r":
            if node is None:
                raise errors.NotFound(path)
        else:
            if place.read_only:
                raise errors.ReadOnly(path)
            if node is None:
                self._create(place, path, who)
            elif not self._allows(node, place.acl, who, "w"):
                raise errors.AccessDenied(path)
            node = self._own_file(place)
        node = as_file(node)
        if access == "r" and not self._allows(node, place.acl, who, "r"):
            raise errors.AccessDenied(path)
        handle = Handle(self, place.parts, node, "r" if access == "r" else "w", share, access == "a")
        self._share_or_fail(node, handle, path)
        if access == "w":
            node.data = b""
            if self.disk is not None:
                node.book(self.disk, 0)
            node.mtime = wall_time()
        return handle

    def _share_or_fail(self, node: File, handle: Handle, path: str) -> None:
        if self.os == "linux" or node.frozen:
            return
        others = node.handles or []
        if any(other.access not in handle.share or handle.access not in other.share for other in others):
            raise errors.SharingViolation(path)
        node.handles = [*others, handle]

    def _create(self, place: Place, path: str, who: Identity | None) -> None:
        parent = self._writable_parent(place, path, who)
        owner = who or Identity("")
        parent.put(place.parts[-1], File(b"", 0o644, owner.uid, owner.gid))

    def _own_file(self, place: Place) -> File:
        mount = self._mounts.get(paths.fold(self.os, place.parts))
        if mount is not None and isinstance(mount.node, File):
            return mount.node
        parent = self._own_directory(place.parts[:-1])
        node = as_file(parent.get(place.parts[-1]))
        thawed = node.thawed()
        if thawed is not node:
            parent.put(place.parts[-1], thawed)
        return thawed

    def mkdir(
        self, path: str, cwd: str = "", *, who: Identity | None = None, parents: bool = False, mode: int = 0o755
    ) -> None:
        """Make a directory, and with ``parents`` those above it."""
        if parents:
            parts = self.parts(path, cwd or self.top)
            for depth in range(1, len(parts)):
                above = paths.join(self.os, parts[:depth])
                if not self.exists(above) and not parts[0].startswith("\\\\"):
                    self.mkdir(above, who=who)
        place = self.find(path, cwd, who=who)
        if place.node is not None:
            if parents and isinstance(place.node, Directory):
                return
            raise errors.AlreadyExists(path)
        owner = who or Identity("")
        parent = self._writable_parent(place, path, who, "d" if self.os == "windows" else "w")
        parent.put(place.parts[-1], Directory(mode, owner.uid, owner.gid, fold=self.os == "windows"))

    def symlink(self, path: str, target: str, cwd: str = "", *, who: Identity | None = None) -> None:
        """Make a symbolic link."""
        place = self.find(path, cwd, who=who, follow=False)
        if place.node is not None:
            raise errors.AlreadyExists(path)
        self._writable_parent(place, path, who).put(place.parts[-1], Symlink(target))

    def remove(self, path: str, cwd: str = "", *, who: Identity | None = None, recursive: bool = False) -> None:
        """Remove a file, a link, an empty directory, or with ``recursive`` a whole tree."""
        place, node = self._existing(path, cwd, who, follow=False)
        if paths.fold(self.os, place.parts) in self._mounts:
            raise errors.SharingViolation(path)
        held = node.handles if isinstance(node, File) and self.os == "windows" else None
        if any("d" not in handle.share for handle in held or []):
            raise errors.SharingViolation(path)
        if isinstance(node, Directory) and self.list(path, cwd):
            if not recursive:
                raise errors.NotEmpty(path)
            separator = "\\" if self.os == "windows" else "/"
            for name, _ in self.list(path, cwd):
                self.remove(f"{path.rstrip(separator)}{separator}{name}", cwd, who=who, recursive=True)
        self._writable_parent(place, path, who).drop(place.parts[-1])

    def rename(
        self, source: str, target: str, cwd: str = "", *, who: Identity | None = None, replace: bool = True
    ) -> None:
        """Move a node to another name."""
        place, node = self._existing(source, cwd, who, follow=False)
        goal = self.find(target, cwd, who=who, follow=False)
        if goal.node is not None:
            if not replace or isinstance(goal.node, Directory):
                raise errors.AlreadyExists(target)
            if goal.node is not node:
                self.remove(target, cwd, who=who)
        if isinstance(node, File) and self.os == "windows" and any("d" not in h.share for h in node.handles or []):
            raise errors.SharingViolation(source)
        self._writable_parent(place, source, who).drop(place.parts[-1])
        self._writable_parent(goal, target, who).put(goal.parts[-1], node)

    def change(self, path: str, cwd: str = "", *, who: Identity | None = None) -> Node:
        """The node itself, ready to have its attributes changed by its owner or an administrator."""
        place, node = self._existing(path, cwd, who)
        if place.read_only:
            raise errors.ReadOnly(path)
        may = (
            who is None or who.uid == node.uid or who.uid == 0
            if self.os == "linux"
            else self._allows(node, place.acl, who, "w")
        )
        if not may:
            raise errors.AccessDenied(path)
        if isinstance(node, File):
            return self._own_file(place)
        return self._own_directory(place.parts) if isinstance(node, Directory) else node

    def access(self, path: str, cwd: str, who: Identity | None, right: str) -> bool:
        """May this account read (`r`) or write (`w`) what is there?"""
        place, node = self._existing(path, cwd, who)
        return self._allows(node, place.acl, who, right) and not (right == "w" and place.read_only)
