"""What an API server may send: answers, watches and exec streams, byte for byte, in virtual time, without a socket."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from fuzz.mutate import json_document, json_lines, torn
from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.cluster.resources import PODS
from winready_sandbox.virtual_time import VirtualTimeLoop
from winready_sandbox.wire import WireConnector

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_HEADS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999999\r\n\r\n",
    b"HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>",
    b"",
)
SECONDS = 2.0
EVENTS = 6


def answer(seed: bytes, random: Random) -> bytes:
    """An answer to a watch: a head, and lines after it."""
    head = _HEADS[0] if random.random() < 0.7 else random.choice(_HEADS)
    whole = head + json_lines(seed, random)
    return torn(whole, random) if random.random() < 0.1 else whole


def frames(seed: bytes, random: Random) -> bytes:
    """Frames of an exec stream: some output, and a status at the end."""
    parts = [b"\x01" + torn(b"output\n", random), b"\x03" + json_document(seed, random)]
    if random.random() < 0.3:
        parts.insert(random.randrange(3), bytes([random.randrange(256)]) + torn(b"x", random))
    if random.random() < 0.1:
        random.shuffle(parts)
    data = b"".join(_frame(part, random.choice((2, 2, 2, 1, 9))) for part in parts) + _frame(b"\x03\xe8", 8)
    return torn(data, random) if random.random() < 0.2 else data


def _frame(data: bytes, kind: int) -> bytes:
    size = len(data)
    length = (
        bytes([size])
        if size < 126
        else b"\x7e" + size.to_bytes(2, "big")
        if size < 2**16
        else b"\x7f" + size.to_bytes(8, "big")
    )
    return bytes([0x80 | kind]) + length + data


def execute(data: bytes, folder: Path) -> None:
    """Run a command over a stream that answers like this."""

    async def ask(client: Client) -> None:
        await client.exec("a", "b", "c", ["d"], deadline=SECONDS)

    _run(_against(data, ask, upgrade=True))


def watch(data: bytes, folder: Path) -> None:
    """List, and follow a watch that answers like this."""

    async def ask(client: Client) -> None:
        seen = 0
        async with asyncio.timeout(SECONDS):
            async for _ in client.watch(PODS, "b"):
                seen += 1
                if seen == EVENTS:
                    return

    try:
        _run(_against(data, ask, upgrade=False))
    except TimeoutError:
        return


def _run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(story)


async def _against(data: bytes, ask: Callable[[Client], Awaitable[None]], *, upgrade: bool) -> None:
    listed = json.dumps(
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "4"}, "items": []}
    ).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if upgrade:
                key = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
                accept = base64.b64encode(hashlib.sha1(key.split(b":")[1].strip() + _MAGIC).digest())  # noqa: S324
                writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
                writer.write(
                    b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n"
                )
                writer.write(data)
            elif b"watch=true" in head:
                writer.write(data)
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n" % len(listed))
                writer.write(listed)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    def accept() -> asyncio.BaseProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), serve)

    async with Client.connect(Target("http://127.0.0.1:1"), WireConnector(accept)) as client:
        await ask(client)
