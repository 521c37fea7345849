"""Programs in namespaces of their own, on a stack of folders that stay as they are.

Mounts, processes, network and host name belong to one run; what it writes goes to memory or to a folder that is given.
When the one who made it is gone, however it went, the kernel takes everything away: nothing stays mounted or running.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

CLONE_NEWNET = 0x40000000
NEEDED = ("unshare", "nsenter", "pivot_root", "ip", "mount")

# The first process of the namespace. It reads its own number before it has a /proc of its own, and ends, with all
# others, when whoever holds the other end of its input closes it.
FIRST_PROCESS = r"""
set -eu
read -r pid rest < /proc/self/stat
# A drive with room, whatever the memory of this machine: nothing of it is taken before it is used.
mount -t tmpfs -o size=16g tmpfs "$STAGE"
mkdir "$STAGE/upper" "$STAGE/work" "$STAGE/root"
options="lowerdir=$LAYERS,upperdir=${CHANGES:-$STAGE/upper},workdir=${CHANGES_WORK:-$STAGE/work}"
mount -t overlay overlay -o "$options" "$STAGE/root"
cd "$STAGE/root"
mkdir -p proc tmp dev
mount -t proc proc proc
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs dev
for one in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "dev/${one%:*}" c 1 "${one#*:}"; done
mknod -m 666 dev/tty c 5 0
mkdir dev/shm dev/outside
ln -s /proc/self/fd dev/fd
hostname "$NAME"
ip link set lo up
pivot_root . dev/outside
umount -l dev/outside
rmdir dev/outside
printf '127.0.0.1 localhost %s\n' "$NAME" > /etc/hosts
trap 'exit 0' TERM
(cat <&3 >/dev/null; kill -TERM 1) &
exec 3<&-
echo "$pid"
exec >/dev/null
while :; do sleep 1000 & wait $!; done
"""


class IsolationError(Exception):
    """The namespaces could not be made; the message says why."""


class Isolated:
    """A machine of its own, from entering the block to its end."""

    def __init__(
        self, layers: Sequence[Path], stage: Path, changes: Path | None = None, name: str = "windows-1"
    ) -> None:
        """``layers``: the uppermost first; ``stage``: an empty folder to mount on; ``changes``: where they are kept."""
        self.layers = list(layers)
        self.stage = stage
        self.changes = changes
        self.name = name
        self.first = 0
        self._keeper: subprocess.Popen[str] | None = None

    def __enter__(self) -> Isolated:
        for program in NEEDED:
            if shutil.which(program) is None:
                raise IsolationError(f"{program} is not on PATH; Debian has it in util-linux, iproute2 or mount")
        if os.geteuid() != 0:
            raise IsolationError("only root can make these namespaces")
        env = {**os.environ, "STAGE": str(self.stage), "LAYERS": ":".join(map(str, self.layers)), "NAME": self.name}
        if self.changes is not None:
            work = self.changes.with_name(self.changes.name + ".work")
            work.mkdir(exist_ok=True)
            env |= {"CHANGES": str(self.changes), "CHANGES_WORK": str(work)}
        command = "unshare --mount --pid --net --ipc --uts --fork --propagation private sh -c"
        self._keeper = subprocess.Popen(
            ["sh", "-c", f'exec {command} "$0" 3<&0 </dev/null', FIRST_PROCESS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            start_new_session=True,
        )
        line = self._keeper.stdout.readline().strip() if self._keeper.stdout else ""
        if not line:
            _, words = self._keeper.communicate()
            raise IsolationError(f"namespaces cannot be made here: {words.strip()}")
        self.first = int(line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._keeper is not None:
            self._keeper.communicate()
        if self.changes is not None:
            shutil.rmtree(self.changes.with_name(self.changes.name + ".work"), ignore_errors=True)

    @property
    def root(self) -> Path:
        """Its root folder, as the rest of the machine reaches it."""
        return Path(f"/proc/{self.first}/root")

    def command(self, program: Sequence[str], env: Mapping[str, str], folder: str = "/") -> list[str]:
        """What runs a program inside."""
        variables = [f"{key}={value}" for key, value in env.items()]
        enter = ["nsenter", "--target", str(self.first), "--mount", "--pid", "--net", "--ipc", "--uts", "--root"]
        return [*enter, f"--wdns={folder}", "env", "-i", *variables, *program]

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """Sockets opened and programs started in the block, by this thread, are in its network."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/proc/thread-self/ns/net").open() as ours, Path(f"/proc/{self.first}/ns/net").open() as theirs:
            _enter(libc, theirs.fileno())
            try:
                yield
            finally:
                _enter(libc, ours.fileno())


def _enter(libc: ctypes.CDLL, namespace: int) -> None:
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
