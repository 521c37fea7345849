"""Reaching simulated addresses from the control plane."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from winready_sandbox.egress import Egress, NoRoute
from winready_sandbox.streams import Connection, Pipe


async def test_a_kubelet_port_leads_to_its_real_port_and_nothing_else_does(tmp_path: Path) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    server = await asyncio.start_server(shout, "127.0.0.1", 0)
    egress = Egress()
    egress.register("10.250.0.1", 10250, "127.0.0.1", server.sockets[0].getsockname()[1])
    await egress.serve_connect(tmp_path / "egress.sock")
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "egress.sock"))
    writer.write(b"CONNECT 10.250.0.1:10250 HTTP/1.1\r\nHost: 10.250.0.1:10250\r\n\r\nhello\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    assert await reader.read() == b"HELLO\n"
    writer.close()

    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "egress.sock"))
    writer.write(b"CONNECT 10.250.0.9:10250 HTTP/1.1\r\n\r\n")
    assert b"502" in await reader.readline()
    writer.close()
    with pytest.raises(NoRoute):
        egress.resolve("10.250.0.9", 10250)
    egress.unregister("10.250.0.1", 10250)
    with pytest.raises(NoRoute):
        egress.resolve("10.250.0.1", 10250)
    await egress.close()
    server.close()


async def test_other_addresses_lead_into_the_simulated_network() -> None:
    async def dial(ip: str, port: int) -> Connection:
        there, back = Pipe(), Pipe()

        async def answer() -> None:
            back.write(f"{ip}:{port} ".encode() + await there.readline())
            back.close()

        tasks.append(asyncio.create_task(answer()))
        return Connection(back, there, ("10.250.0.1", 1), (ip, port))

    tasks: list[asyncio.Task[None]] = []
    egress = Egress()
    egress.dial = dial
    reader, writer = await egress.open("10.244.1.5", 8080)
    writer.write(b"ping\n")
    assert await reader.read() == b"10.244.1.5:8080 ping\n"
    writer.close()
    await egress.close()
