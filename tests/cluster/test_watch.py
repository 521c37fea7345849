"""Watches that end at once, again and again: no server is asked in a busy loop, whatever it told before it ended."""

from __future__ import annotations

import asyncio
import json

import pytest

from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.cluster.resources import PODS
from winready_sandbox.virtual_time import VirtualTimeLoop
from winready_sandbox.wire import WireConnector

SECONDS, MOST = 60, 200
LISTED = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "6"}, "items": []})


def bookmark(version: str) -> str:
    """That nothing happened up to a version."""
    told = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": version}}
    return json.dumps({"type": "BOOKMARK", "object": told}) + "\n"


@pytest.mark.parametrize(
    "told",
    ["", bookmark("6"), bookmark("9" * 5000) + bookmark("6"), bookmark("x") + bookmark("y")],
    ids=["nothing", "what was known", "endless versions", "versions that are none"],
)
def test_a_watch_that_ends_at_once_is_asked_for_again_with_pauses(told: str) -> None:
    watches = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal watches
        head = await reader.readuntil(b"\r\n\r\n")
        watches += b"watch=true" in head
        body = told if b"watch=true" in head else LISTED
        fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
        writer.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}".encode())
        writer.close()
        if watches > MOST:
            # Nobody waits any more: time would stand still.
            asyncio.get_running_loop().stop()

    async def follow() -> None:
        connector = WireConnector(lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(), serve))
        async with Client.connect(Target("http://127.0.0.1:1"), connector) as client, asyncio.timeout(SECONDS):
            async for _ in client.watch(PODS, "ns"):
                pass

    with pytest.raises(TimeoutError), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(follow())
    assert 2 < watches < MOST
