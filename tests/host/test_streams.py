"""Streams to and from real processes: a terminal, a followed log, a client that leaves, large outputs."""

from __future__ import annotations

import asyncio
import contextlib

from host.pods import PATIENCE, Pods, becomes, pod
from winready.cluster.execution import PROTOCOLS
from winready.cluster.resources import PODS


async def test_a_terminal_is_one(pods: Pods) -> None:
    await pods.create(pod("a", "sleep", "1000"))
    await pods.phase("a", "Running")
    transport = pods.client.transport
    url = transport.target.server + PODS.path(pods.namespace, "a", "exec")
    query = [("container", "main"), ("stdin", "true"), ("stdout", "true"), ("tty", "true")]
    query += [("command", word) for word in ("sh", "-c", "test -t 0 && echo terminal; read x; echo got $x; exit 5")]
    options = await transport.options()
    seen, status = b"", b""
    connecting = transport.session.ws_connect(url, params=query, protocols=PROTOCOLS, **options)
    async with asyncio.timeout(PATIENCE), connecting as socket:
        await socket.send_bytes(b"\x00word\n")
        async for message in socket:
            if message.data[:1] == b"\x01":
                seen += message.data[1:]
            elif message.data[:1] == b"\x03":
                status += message.data[1:]
    assert b"terminal\r\n" in seen
    assert b"got word\r\n" in seen
    assert b'"message":"5"' in status


async def test_a_followed_log_ends_with_the_container(pods: Pods) -> None:
    await pods.create(pod("a", "sh", "-c", "for x in 1 2 3; do echo line $x; sleep 0.2; done"))
    await pods.until(
        "a", lambda status: "running" in str(status.get("containerStatuses")) or status["phase"] != "Pending"
    )
    path, query = PODS.path(pods.namespace, "a", "log"), {"follow": "true"}
    async with asyncio.timeout(PATIENCE), pods.client.transport.stream(path, query, idle=None) as response:
        assert await response.read() == b"line 1\nline 2\nline 3\n"


async def test_a_command_ends_with_its_client(pods: Pods) -> None:
    await pods.create(pod("a", "sleep", "1000"))
    await pods.phase("a", "Running")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(3):
            await pods.exec("a", "sleep", "765.4321")

    async def ended() -> bool:
        return b"765.4321" not in (await pods.exec("a", "ps")).stdout

    await becomes(ended)


async def test_a_large_output_is_whole(pods: Pods) -> None:
    await pods.create(pod("a", "sleep", "1000"))
    await pods.phase("a", "Running")
    size = 3 * 2**20
    given = b"x" * size
    answer = await pods.exec("a", "cat", stdin=given)
    assert (answer.exit_code, len(answer.stdout)) == (0, size)


async def test_a_port_is_forwarded_to_where_only_the_pod_listens(pods: Pods) -> None:
    await pods.create(pod("a", "httpd", "-f", "-p", "127.0.0.1:8098", "-h", "/etc"))
    await pods.phase("a", "Running")

    async def listening() -> bool:
        return (await pods.exec("a", "wget", "-q", "-O", "-", "http://127.0.0.1:8098/passwd")).exit_code == 0

    await becomes(listening)
    transport = pods.client.transport
    url, options = transport.target.server + PODS.path(pods.namespace, "a", "portforward"), await transport.options()
    connecting = transport.session.ws_connect(
        url, params={"ports": "8098"}, protocols=("v4.channel.k8s.io",), **options
    )
    seen = b""
    async with asyncio.timeout(PATIENCE), connecting as socket:
        await socket.send_bytes(b"\x00GET /passwd HTTP/1.0\r\n\r\n")
        async for message in socket:
            seen += message.data[1:]
            if b"worker" in seen:
                break
    assert b"200 OK" in seen
