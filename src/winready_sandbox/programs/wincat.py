"""wincat, the pause image's only network tool: standard input and output over one TCP connection."""

from __future__ import annotations

import asyncio

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs.agnhost.golang import dial_error
from winready_sandbox.programs.net import addresses, endpoint_of
from winready_sandbox.streams import Connection


async def wincat(process: Process) -> int:
    """Connect and copy both ways until both ends are done."""
    if len(process.argv) != 3:
        return _fatal(process, "usage: wincat <host> <port>")
    host, port = process.argv[1:]
    try:
        found = (await addresses(process, host))[0]
        number = int(port)
    except (NetworkError, ValueError):
        return _fatal(process, f"Failed to resolve TCP addr {host} {port}")
    try:
        connection = await endpoint_of(process).connect(found, number, timeout=0)
    except NetworkError as error:
        reason = dial_error(process, error, found, number)
        return _fatal(process, f"Failed to connect to {host}:{port} because {reason}")
    try:
        await copy_both_ways(process, connection)
    finally:
        connection.close()
    return 0


async def copy_both_ways(process: Process, connection: Connection, *, end_with_peer: bool = False) -> None:
    """Copy until both directions ended, or only until the peer is done."""

    async def send() -> None:
        while data := await process.stdin.read():
            connection.write(data)
        connection.close_write()

    async def receive() -> None:
        while data := await connection.read():
            process.stdout.write(data)

    sending = asyncio.ensure_future(send())
    try:
        await receive()
        if not end_with_peer:
            await sending
    finally:
        sending.cancel()


def _fatal(process: Process, message: str) -> int:
    process.err(f"{utc_now():%Y/%m/%d %H:%M:%S} {message}\n")
    return 1
