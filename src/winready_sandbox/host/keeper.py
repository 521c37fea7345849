"""The first process of a host node's namespaces: makes pod networks, starts processes there, ends with the sandbox.

It is started as a program of its own and needs nothing but Python. Requests come as JSON over a socket that the sandbox
alone holds the other end of, with file descriptors beside them. When that end closes, however the sandbox went, this
process ends, and with it the kernel ends every process, mount and network of its namespaces.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from typing import Any

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
ENTERED = (("ipc", NEWIPC), ("uts", NEWUTS), ("net", NEWNET), ("pid", NEWPID), ("mnt", NEWNS), ("user", NEWUSER))
"""Users last: whoever has joined a container's users has no power over its other namespaces any more."""
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 0x40000, 0x1000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 1, 38, 24
LONGEST_MESSAGE = 65536
MOST_DESCRIPTORS = 8
CAPABILITIES = 64
ABOVE = 100
SETTLE = 10.0
BRIDGE = "pods"
Message = dict[str, Any]

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the namespaces of these kinds for new ones."""
    _check(_libc.unshare(flags), "unshare")


def enter(descriptor: int, kind: int) -> None:
    """Join a namespace."""
    _check(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0) -> None:
    """Mount something in the namespace of this process."""
    _check(_libc.mount(source.encode(), target.encode(), kind.encode(), flags, None), f"mount {target}")


def _prctl(option: int, value: int) -> int:
    return int(_libc.prctl(option, value, 0, 0, 0))


def _ip(lines: Sequence[str], namespace: int | None = None) -> None:
    """Run ``ip`` on a batch of lines, in that network or in the node's own."""

    def prepare() -> None:
        if namespace is not None:
            enter(namespace, NEWNET)

    done = subprocess.run(
        ["ip", "-batch", "-"],  # noqa: S607  from wherever it is installed
        input="\n".join(lines),
        text=True,
        capture_output=True,
        check=False,
        preexec_fn=prepare,
        pass_fds=() if namespace is None else (namespace,),
    )
    if done.returncode != 0:
        raise OSError(0, f"ip: {done.stderr.strip()}")


class Keeper:
    """Answers the sandbox."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._networks: dict[str, int] = {}
        self._interfaces = 0
        self._pids: dict[int, int] = {}
        """Numbers that the sandbox gave, by process."""

    def serve(self) -> None:
        """Until the sandbox hangs up."""
        wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            ready, _, _ = select.select([self._channel.fileno(), wake], [], [])
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
                self._bury()
            if self._channel.fileno() in ready:
                data, descriptors, _, _ = socket.recv_fds(self._channel, LONGEST_MESSAGE, MOST_DESCRIPTORS)
                if not data:
                    return
                try:
                    self._answer(json.loads(data), descriptors)
                finally:
                    for descriptor in descriptors:
                        os.close(descriptor)

    def _bury(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self._pids.pop(pid, None)
            if number is not None:
                code = os.waitstatus_to_exitcode(status)
                self._tell({"ended": number, "code": code if code >= 0 else 128 - code})

    def _tell(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            socket.send_fds(self._channel, [json.dumps(message).encode()], list(descriptors))

    def _answer(self, request: Message, descriptors: list[int]) -> None:
        acts: dict[str, Callable[[Message, list[int]], tuple[Message, list[int]]]] = {
            "node": self._node,
            "network": self._network,
            "drop": self._drop,
            "listen": self._listen,
            "socket": self._socket,
            "start": self._start,
            "signal": self._signal,
        }
        made: list[int] = []
        try:
            answer, made = acts[request["do"]](request, descriptors)
        except (OSError, ValueError, KeyError) as error:
            answer = {"error": str(error) or type(error).__name__}
        self._tell({**answer, "re": request["number"]}, made)
        for descriptor in made:
            os.close(descriptor)

    def _node(self, request: Message, _: list[int]) -> tuple[Message, list[int]]:
        """The node's own network: a bridge for pods, and the addresses that it answers at."""
        lines = ["link set lo up", f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up"]
        lines.append(f"addr add {request['gateway']} dev {BRIDGE}")
        lines += [f"addr add {address}/32 dev lo" for address in request["addresses"]]
        _ip(lines)
        return {}, []

    def _network(self, request: Message, _: list[int]) -> tuple[Message, list[int]]:
        """A network for one pod, tied to the bridge."""
        self._interfaces += 1
        name = f"pod{self._interfaces}"
        first, pid = _in_new_network()
        try:
            namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            _ip([f"link add {name} type veth peer name eth0 netns {pid}", f"link set {name} master {BRIDGE} up"])
        finally:
            os.close(first)
            os.waitpid(pid, 0)
        self._networks[request["pod"]] = namespace
        gateway = request["gateway"]
        inside = ["link set lo up", f"addr add {request['address']} dev eth0", "link set eth0 up"]
        _ip([*inside, f"route add default via {gateway}"], namespace)
        return {}, []

    def _drop(self, request: Message, _: list[int]) -> tuple[Message, list[int]]:
        namespace = self._networks.pop(request["pod"], None)
        if namespace is not None:
            os.close(namespace)
        return {}, []

    def _listen(self, request: Message, _: list[int]) -> tuple[Message, list[int]]:
        """A listening socket in the node's network, for the sandbox to accept on."""
        sock = socket.create_server((request["address"], request["port"]), backlog=128)
        return {}, [sock.detach()]

    def _socket(self, request: Message, _: list[int]) -> tuple[Message, list[int]]:
        """A socket of a pod's network, for the sandbox to connect."""
        namespace = self._networks[request["pod"]] if request["pod"] else None
        if namespace is None:
            return {}, [socket.socket().detach()]
        own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter(namespace, NEWNET)
            made = socket.socket().detach()
        finally:
            enter(own, NEWNET)
            os.close(own)
        return {}, [made]

    def _start(self, request: Message, descriptors: list[int]) -> tuple[Message, list[int]]:
        """Start a process; descriptors: the request's own large part, stdin, stdout, stderr, whatever it passes on."""
        large, *given = descriptors
        with open(large, "rb", closefd=False) as file:
            body: Message = json.load(file)
        failed, failing = os.pipe2(os.O_CLOEXEC)
        # Whoever joins a namespace of processes is in it with its children only.
        pid = os.fork()
        if pid == 0:
            os.close(failed)
            self._become(body, given, failing)
        os.close(failing)
        with open(failed, encoding="utf-8") as words:
            if trouble := words.read():
                os.waitpid(pid, 0)
                raise OSError(0, trouble)
        self._pids[pid] = request["number"]
        return {"pid": pid}, []

    def _become(self, body: Message, given: list[int], failing: int) -> None:
        """Turn this process, a child of the keeper, into what was asked for."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if body.get("groups") is not None:
                os.setgroups(body["groups"])
            if namespace := body.get("network"):
                enter(self._networks[namespace], NEWNET)
            if body.get("inside"):
                _join(int(body["inside"]), failing, body["confiner"])
            os.setsid()
            _set_descriptors(given)
            if body.get("tty"):
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if body.get("inside"):
                for capability in range(CAPABILITIES):
                    _prctl(PR_CAPBSET_DROP, capability)
                _prctl(PR_SET_NO_NEW_PRIVS, 1)
            if body.get("user") is not None:
                os.setresgid(body["group"], body["group"], body["group"])
                os.setresuid(body["user"], body["user"], body["user"])
            # Not earlier: whoever becomes another user is no longer told.
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if folder := body.get("folder"):
                os.chdir(folder)
            os.execvpe(body["argv"][0], body["argv"], body["env"])  # noqa: S606  which is what this is for
        except BaseException as error:  # whatever it is, the parent tells it
            words = getattr(error, "strerror", None) or str(error) or type(error).__name__
            os.write(failing, words.encode("utf-8", "replace"))
        finally:
            os._exit(127)

    def _signal(self, request: Message, _: list[int]) -> tuple[Message, list[int]]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(request["pid"]), int(request["signal"]))
        return {}, []


def _await_first(pid: int, confiner: str) -> None:
    """Wait until a container's first process is its own program: until then its root is not complete."""
    until = time.monotonic() + SETTLE
    with contextlib.suppress(OSError):
        while os.readlink(f"/proc/{pid}/exe") == confiner and time.monotonic() < until:
            time.sleep(0.005)


def _join(pid: int, failing: int, confiner: str) -> None:
    """Join all namespaces of a container; the one who goes on is a child, since only children are in its processes."""
    _await_first(pid, confiner)
    opened = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind) for name, kind in ENTERED]
    for descriptor, kind in opened:
        enter(descriptor, kind)
    child = os.fork()
    if child:
        os.close(failing)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)


def _set_descriptors(given: list[int]) -> None:
    """Standard input, output and error, and whatever follows, from number 3 on."""
    copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, ABOVE) for descriptor in given]
    for target, copy in enumerate(copies):
        os.dup2(copy, target)


def _in_new_network() -> tuple[int, int]:
    """A process in a new network that ends when the descriptor is closed."""
    waiting, first = os.pipe2(os.O_CLOEXEC)
    made, making = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(first)
        with contextlib.suppress(OSError):
            unshare(NEWNET)
            os.write(making, b"x")
            os.read(waiting, 1)
        os._exit(0)
    os.close(waiting)
    os.close(making)
    with open(made, "rb") as file:
        if not file.read(1):
            os.close(first)
            raise OSError(0, "no network of its own can be made for a pod")
    return first, pid


def _new_namespaces(channel: socket.socket, users: bool) -> None:
    """Leave for namespaces of our own; without root, root inside stands for the user outside."""
    user, group = os.geteuid(), os.getegid()
    unshare((NEWUSER if users else 0) | NEWNS | NEWNET | NEWPID | NEWIPC | NEWUTS)
    if users:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    child = os.fork()
    if child:
        channel.close()
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _arrange(folder: str, place: str, images: list[str]) -> None:
    """Let every user look at what pods are made of: the sandbox's own folder is closed to all others."""
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    stage = f"{folder}/stage"
    os.mkdir(stage)
    mount("none", stage, "tmpfs")
    os.chmod(stage, 0o755)  # noqa: S103
    for name, source in [("host", folder), *((f"image{number}", image) for number, image in enumerate(images))]:
        os.mkdir(f"{stage}/{name}")
        mount(source, f"{stage}/{name}", "none", MS_BIND)
    mount(stage, place, "none", MS_BIND | MS_REC)
    mount("proc", "/proc", "proc")


def main() -> None:
    """Make the namespaces and serve."""
    descriptor, folder, place, *images = sys.argv[1:]
    channel = socket.socket(fileno=int(descriptor))
    channel.set_inheritable(False)
    try:
        _new_namespaces(channel, os.geteuid() != 0)
        _arrange(folder, place, images)
    except OSError as error:
        channel.send(json.dumps({"error": error.strerror}).encode())
        raise SystemExit(1) from None
    channel.send(json.dumps({"ready": True}).encode())
    Keeper(channel).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
