"""The sandbox's side of the keeper: networks, sockets and processes of the host node, asked for by message."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from winready_sandbox.host import keeper
from winready_sandbox.network.endpoint import NetworkError, Refused, TimedOut
from winready_sandbox.state import StateError
from winready_sandbox.streams import Connection, Pipe

NEEDED = {"bwrap": "bubblewrap", "ip": "iproute2"}
PLACE = Path("/mnt")
"""Where the keeper's processes find the host node's folder and its images; outside nothing is mounted there."""
START_TIMEOUT = 20.0
_TRIAL = ("--unshare-user", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/true")


class GroundError(Exception):
    """The keeper could not do it."""


class Running:
    """A process of the host node, as the keeper knows it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()


class Ground:
    """The namespaces of one host node."""

    def __init__(self, folder: Path, images: Sequence[Path]) -> None:
        """``images``: folders outside of ``folder`` that pods are made from."""
        self._folder = folder
        self._images = list(images)
        self._channel: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._asked: dict[int, asyncio.Future[tuple[dict[str, Any], list[int]]]] = {}
        self._running: dict[int, Running] = {}
        self._number = 0
        self.lost: asyncio.Future[None] | None = None
        """Ends when the keeper does."""

    @property
    def every_user(self) -> bool:
        """Whether processes can really be other users; without root they only seem to be."""
        return os.geteuid() == 0

    def inside(self, path: Path) -> str:
        """A path of the node's folder or of an image as processes of the node find it."""
        for number, image in enumerate(self._images):
            if path.is_relative_to(image):
                return str(PLACE / f"image{number}" / path.relative_to(image))
        return str(PLACE / "host" / path.relative_to(self._folder))

    async def start(self, gateway: str, addresses: Sequence[str]) -> None:
        """Make the namespaces; raises `StateError` where that cannot be."""
        check_programs()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        images = [str(image) for image in self._images]
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                str(Path(keeper.__file__)),
                str(theirs.fileno()),
                str(self._folder),
                str(PLACE),
                *images,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._channel = ours
        loop = asyncio.get_running_loop()
        self.lost = loop.create_future()
        try:
            async with asyncio.timeout(START_TIMEOUT):
                first = json.loads(await loop.sock_recv(ours, keeper.LONGEST_MESSAGE) or b"{}")
        except TimeoutError:
            first = {"error": "no answer"}
        if not first.get("ready"):
            why = first.get("error") or "it ended at once"
            raise StateError(f"--host-node needs namespaces, which cannot be made here ({why}); {_REMEDY}")
        loop.add_reader(ours.fileno(), self._read)
        try:
            await self._ask("node", gateway=gateway, addresses=list(addresses))
            await self._try_bubblewrap()
        except GroundError as error:
            raise StateError(f"--host-node cannot set up its network or a process here ({error}); {_REMEDY}") from None

    async def _try_bubblewrap(self) -> None:
        reading, writing = os.pipe()
        silent = os.open(os.devnull, os.O_RDWR)
        try:
            process = await self.start_process([bubblewrap(), *_TRIAL], {}, (silent, silent, writing))
            os.set_blocking(reading, False)
            if await process.ended != 0:
                raise GroundError(os.read(reading, 4096).decode(errors="replace").strip())
        finally:
            for descriptor in (reading, writing, silent):
                os.close(descriptor)

    async def stop(self) -> None:
        """End every process; the namespaces go with them."""
        if self._channel is not None:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._channel.close()
            self._channel = None
        if self._process is not None:
            await self._process.wait()
            self._process = None
        self._fail("the host node has stopped")

    def _read(self) -> None:
        if self._channel is None:
            return
        try:
            data, descriptors, _, _ = socket.recv_fds(self._channel, keeper.LONGEST_MESSAGE, keeper.MOST_DESCRIPTORS)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._fail("the keeper of the host node has ended")
            if self.lost is not None and not self.lost.done():
                self.lost.set_exception(StateError("the processes of the host node were ended from outside"))
            return
        message = json.loads(data)
        if "ended" in message:
            running = self._running.pop(message["ended"], None)
            if running is not None and not running.ended.done():
                running.ended.set_result(int(message["code"]))
            return
        asked = self._asked.pop(message["re"], None)
        if asked is None or asked.done():
            for descriptor in descriptors:
                os.close(descriptor)
        elif "error" in message:
            asked.set_exception(GroundError(message["error"]))
        else:
            if "pid" in message:
                # Now, before the message of its end is read.
                message["running"] = self._running[message["re"]] = Running(int(message["pid"]))
            asked.set_result((message, descriptors))

    def _fail(self, words: str) -> None:
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(GroundError(words))
        self._asked.clear()
        for running in self._running.values():
            if not running.ended.done():
                running.ended.set_result(137)
        self._running.clear()

    async def _ask(self, do: str, descriptors: Sequence[int] = (), **values: Any) -> tuple[dict[str, Any], list[int]]:
        if self._channel is None:
            raise GroundError("the host node has stopped")
        self._number += 1
        number = self._number
        answer: asyncio.Future[tuple[dict[str, Any], list[int]]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        message = json.dumps({"do": do, "number": number, **values}).encode()
        while True:
            try:
                socket.send_fds(self._channel, [message], list(descriptors))
                break
            except BlockingIOError:
                await asyncio.sleep(0.01)
            except OSError as error:
                self._asked.pop(number, None)
                raise GroundError(f"the keeper of the host node has ended ({error.strerror})") from None
        return await answer

    async def add_network(self, pod: str, address: str, gateway: str) -> None:
        """A network of its own for a pod."""
        await self._ask("network", pod=pod, address=address, gateway=gateway)

    async def drop_network(self, pod: str) -> None:
        """Take it away."""
        with contextlib.suppress(GroundError):
            await self._ask("drop", pod=pod)

    async def listen(self, address: str, port: int) -> socket.socket:
        """A listening socket in the node's own network."""
        _, [descriptor] = await self._ask("listen", address=address, port=port)
        return socket.socket(fileno=descriptor)

    async def start_process(
        self, argv: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], **how: Any
    ) -> Running:
        """Start a process; see the keeper for ``how``."""
        body = json.dumps({"argv": list(argv), "env": dict(env), **how}).encode("utf-8", "surrogateescape")
        large = held("request", body)
        try:
            message, _ = await self._ask("start", [large, *descriptors])
        finally:
            os.close(large)
        running: Running = message["running"]
        return running

    async def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process of the node."""
        with contextlib.suppress(GroundError):
            await self._ask("signal", pid=pid, signal=number)

    async def connect(self, pod: str, address: str, port: int, *, timeout: float) -> Connection:
        """Connect from the network of a pod, or from the node's own; raises `NetworkError`."""
        try:
            _, [descriptor] = await self._ask("socket", pod=pod)
        except (GroundError, ValueError) as error:
            raise NetworkError(str(error)) from None
        sock = socket.socket(fileno=descriptor)
        sock.setblocking(False)
        try:
            async with asyncio.timeout(timeout):
                await asyncio.get_running_loop().sock_connect(sock, (address, port))
            reader, writer = await asyncio.open_connection(sock=sock)
        except ConnectionRefusedError as error:
            sock.close()
            raise Refused(str(error)) from None
        except TimeoutError:
            sock.close()
            raise TimedOut(f"no answer from {address}:{port}") from None
        except OSError as error:
            sock.close()
            raise NetworkError(str(error)) from None
        return _joined(reader, writer, (address, port))


_tasks: set[asyncio.Task[None]] = set()


def _joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, remote: tuple[str, int]) -> Connection:
    """A real connection, seen as one of the model's."""
    inbound, outbound = Pipe(), Pipe()

    async def inwards() -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while data := await reader.read(65536):
                inbound.write(data)
        inbound.close()

    async def outwards() -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while data := await outbound.read():
                writer.write(data)
                await writer.drain()
            writer.write_eof()

    async def both() -> None:
        sending = asyncio.create_task(outwards())
        try:
            await inwards()
            await sending
        finally:
            sending.cancel()
            writer.close()

    task = asyncio.create_task(both(), name=f"connection to {remote[0]}:{remote[1]}")
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return Connection(inbound, outbound, ("", 0), remote)


def held(name: str, data: bytes) -> int:
    """A descriptor from which somebody else can read this, without a file that others could find."""
    descriptor = os.memfd_create(name)
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


_REMEDY = "run as root, or allow unprivileged user namespaces"


def bubblewrap() -> str:
    """Where bubblewrap is."""
    return shutil.which("bwrap") or "bwrap"


def check_programs() -> None:
    """Raise `StateError` in one sentence for what is not installed."""
    if sys.platform != "linux":
        raise StateError("--host-node runs real Linux processes, so it needs Linux")
    for program, package in NEEDED.items():
        if shutil.which(program) is None:
            raise StateError(
                f"--host-node needs {package} ({program} is not on PATH); install it: apt install {package}"
            )
