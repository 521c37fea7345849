"""Where running sandboxes keep their files, and how others find them.

Each sandbox has a folder with a lock that its process holds while it lives. The lock, not a
process number, tells whether a sandbox runs: the kernel lets go of it however the process ends,
so what a killed one left behind is recognised and swept away by the next command.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

DEFAULT_NAME = "default"
LONGEST_SOCKET_PATH = 100
"""The kernel takes a few bytes more; other systems take fewer."""
STOP_GRACE = 10.0
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


class StateError(Exception):
    """A user's mistake or a broken state, with what to do about it."""


def runtime_folder() -> Path:
    """The private folder that holds the sandboxes of this user."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and Path(base).is_dir() and os.access(base, os.W_OK):
        folder = Path(base) / "winready"
    else:
        folder = Path(tempfile.gettempdir()) / f"winready-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise StateError(f"{folder} is not a folder of yours alone; remove it, or point XDG_RUNTIME_DIR elsewhere")
    return folder


@dataclass(frozen=True)
class Place:
    """The folder of one sandbox, whether it runs or not."""

    name: str
    folder: Path

    @classmethod
    def of(cls, name: str) -> Place:
        """The place of the sandbox of that name."""
        if not _NAME.fullmatch(name):
            raise StateError(f"{name!r} is not a sandbox name; write lower-case letters, digits and '-', at most 40")
        place = cls(name, runtime_folder() / name)
        if len(str(place.channel)) > LONGEST_SOCKET_PATH:
            raise StateError(
                f"{place.channel} is too long a path for a socket; point XDG_RUNTIME_DIR to a shorter folder"
            )
        return place

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of its administrator."""
        return self.folder / "kubeconfig"

    @property
    def channel(self) -> Path:
        """The Unix socket that commands talk to it through."""
        return self.folder / "control.sock"

    @property
    def log(self) -> Path:
        """What a detached sandbox has to say."""
        return self.folder / "log"

    @property
    def document(self) -> Path:
        """What ``up`` printed, for commands that find the process too busy to answer."""
        return self.folder / "sandbox.json"

    @property
    def control_plane(self) -> Path:
        """What the programs of a real control plane read and write."""
        return self.folder / "control-plane"

    @property
    def host(self) -> Path:
        """What a host node runs and what its pods write."""
        return self.folder / "host"

    @property
    def failure(self) -> Path:
        """Why a detached sandbox ended by itself, for the next command that asks."""
        return self.folder / "failure"

    def leave_word(self, reason: str) -> None:
        """Keep the reason why a sandbox ended by itself; nothing else of it is left."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.failure.write_text(reason)

    def forget_failure(self) -> None:
        """Remove that word."""
        if self.failure.exists():
            self.remove()

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    def running(self) -> bool:
        """Whether a living process holds the lock; what a dead one left is removed."""
        try:
            with self.lock.open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.remove()
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the place while a sandbox runs in it; nothing is left behind."""
        with self._locked():
            for left in (self.kubeconfig, self.channel, self.document, self.failure):
                left.unlink(missing_ok=True)
            for folder in (self.control_plane, self.host):
                shutil.rmtree(folder, ignore_errors=True)
            try:
                yield
            finally:
                self.remove()

    def _locked(self) -> IO[str]:
        """The lock, held; a file that somebody swept away between opening and locking it does not count."""
        while True:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            lock = self.lock.open("a+")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                raise StateError(self.taken()) from None
            with contextlib.suppress(FileNotFoundError):
                if self.lock.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                    return lock
            lock.close()

    def taken(self) -> str:
        """What to say to somebody who wants to start a second one of this name."""
        down = "winready sandbox down" + ("" if self.name == DEFAULT_NAME else f" --name {self.name}")
        return f"a sandbox named {self.name!r} is running; stop it with '{down}', or give this one another --name"

    def sweep(self) -> None:
        """Delete what is left of a sandbox that does not run."""
        if not self.running():
            self.remove()

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def pid(self) -> int | None:
        """The process that wrote itself down as the owner, if it came that far."""
        try:
            return int(self.lock.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def sign(self) -> None:
        """Write this process down as the owner."""
        self.lock.write_text(str(os.getpid()))


def all_places() -> list[Place]:
    """Every place of this user where a sandbox runs or left something."""
    return [Place(folder.name, folder) for folder in sorted(runtime_folder().iterdir()) if folder.is_dir()]


def running_places() -> list[Place]:
    """Every sandbox of this user that runs now."""
    return [place for place in all_places() if place.running()]


def ask(place: Place, command: str, timeout: float = 5.0, **arguments: Any) -> Any:
    """Send one request to a running sandbox and return its answer."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout)
            connection.connect(str(place.channel))
            connection.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline()
    except OSError as error:
        raise StateError(f"the sandbox {place.name!r} runs but does not answer ({error}); see {place.log}") from None
    if not line:
        raise StateError(f"the sandbox {place.name!r} hung up without an answer; see {place.log}")
    answer = json.loads(line)
    if "error" in answer:
        raise StateError(answer["error"])
    return answer["result"]


def stop(place: Place, grace: float = STOP_GRACE) -> bool:
    """Stop a sandbox and wait until nothing is left of it; tells whether there was one."""
    if not place.running():
        place.forget_failure()
        return False
    pid = place.pid()
    try:
        ask(place, "stop")
    except StateError:
        _signal(pid, signal.SIGTERM)
    if not _gone(place, pid, grace):
        _signal(pid, signal.SIGKILL)
        if not _gone(place, pid, grace):
            raise StateError(f"the sandbox {place.name!r} (process {pid}) does not end; end it by hand")
    return True


def _gone(place: Place, pid: int | None, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while place.running() or _alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _alive(pid: int | None) -> bool:
    """Whether a process still runs; one that only waits for its parent to take notice does not."""
    if pid is None:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    return state != "Z"


def _signal(pid: int | None, number: signal.Signals) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
