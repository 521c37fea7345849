"""The confinement of a container, as arguments of bubblewrap."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from winready_sandbox.host import rooted
from winready_sandbox.host.users import Account

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OWN = ("/proc", "/dev")
"""Every container has these for itself."""


@dataclass(frozen=True)
class Mount:
    """Something of the node that a container sees."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Confinement:
    """What a container's processes may see and be."""

    root: Path
    read_only: bool
    mounts: tuple[Mount, ...]
    account: Account
    hostname: str
    folder: str
    env: Mapping[str, str]

    def arguments(self, inside: Callable[[Path], str], *, every_user: bool) -> list[str]:
        """For bubblewrap, without the command; ``inside`` says where the node's processes find a path."""
        mounts = [Mount(each.source, rooted.resolve(self.root, each.target), each.read_only) for each in self.mounts]
        mounts.sort(key=lambda each: each.target.count("/"))
        result = self._root(inside, [each.target for each in mounts])
        result += ["--proc", "/proc", "--dev", "/dev"]
        for each in mounts:
            result += ["--ro-bind" if each.read_only else "--bind", inside(each.source), each.target]
        if self.read_only:
            result += ["--remount-ro", "/"]
        # Without root outside, all users are the same one outside, whatever they seem to be.
        result += ["--unshare-user", "--uid", str(self.account.user), "--gid", str(self.account.group)]
        result += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", self.hostname]
        result += ["--as-pid-1", "--die-with-parent", "--chdir", self.folder or "/", "--clearenv"]
        for name, value in self.env.items():
            result += ["--setenv", name, value]
        return result

    def _root(self, inside: Callable[[Path], str], targets: Iterable[str]) -> list[str]:
        if not self.read_only:
            return ["--bind", inside(self.root), "/"]
        missing = [target for target in (*targets, *_OWN) if not rooted.outside(self.root, target).exists()]
        if not missing:
            return ["--ro-bind", inside(self.root), "/"]
        places = sorted({str(above) for target in missing for above in Path(target).parents if str(above) != "/"})
        # Folders that bubblewrap makes for itself on the way to a mount nobody else may look into.
        made = [word for place in places if not self._there(place) for word in ("--dir", place)]
        return ["--tmpfs", "/", *_around(self.root, "", missing, inside), *made]

    def _there(self, place: str) -> bool:
        return rooted.outside(self.root, place).exists()

    def make_places(self) -> None:
        """Make what is to be mounted on, in a root that may be written to: its own user may not make it there."""
        for mount in (*self.mounts, *(Mount(Path("/"), target) for target in _OWN)):
            target = rooted.outside(self.root, rooted.resolve(self.root, mount.target))
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.mkdir() if mount.source.is_dir() else target.touch()

    def missing_program(self, argv: list[str]) -> str:
        """A container runtime's words for a command that is not there, or nothing."""
        name = argv[0] if argv else ""
        quoted = f'exec: "{name}"'
        if not name:
            return "no command specified"
        folders = [""] if "/" in name else self.env.get("PATH", SEARCH_PATH).split(":")
        found = [self.find(f"{folder}/{name}" if folder else self._absolute(name)) for folder in folders]
        files = [path for path in found if path is not None and path.is_file()]
        if any(path.stat().st_mode & 0o111 for path in files):
            return ""
        if "/" not in name:
            return f"{quoted}: executable file not found in $PATH"
        return f"{quoted}: permission denied" if files else f"{quoted}: stat {name}: no such file or directory"

    def _absolute(self, name: str) -> str:
        return name if name.startswith("/") else f"{self.folder or '/'}/{name}"

    def find(self, path: str) -> Path | None:
        """Where something that a container sees is on the node."""
        try:
            real = rooted.resolve(self.root, path)
        except rooted.OutOfRoot:
            return None
        for mount in sorted(self.mounts, key=lambda each: -len(each.target)):
            target = rooted.resolve(self.root, mount.target)
            if real == target or real.startswith(f"{target}/"):
                found = rooted.outside(mount.source, real[len(target) :])
                return found if found.exists() else None
        found = rooted.outside(self.root, real)
        return found if found.exists() else None


def _around(root: Path, folder: str, missing: list[str], inside: Callable[[Path], str]) -> list[str]:
    """A read-only view of a folder in which places that it does not have can be mounted on."""
    result: list[str] = []
    for entry in sorted(os.scandir(rooted.outside(root, folder)), key=lambda entry: entry.name):
        path = f"{folder}/{entry.name}"
        if path in _OWN:
            continue
        if entry.is_symlink():
            result += ["--symlink", os.readlink(entry.path), path]
        elif entry.is_dir() and (below := [each for each in missing if each.startswith(f"{path}/")]):
            result += ["--dir", path, *_around(root, path, below, inside)]
        else:
            result += ["--ro-bind", inside(Path(entry.path)), path]
    return result
