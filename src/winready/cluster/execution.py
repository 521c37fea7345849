"""Exec over WebSocket: separate streams and an exit code, or an error that says why there is none."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from winready.cluster.errors import ExecFailed, NotStarted, api_error
from winready.cluster.transport import Transport

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
OUTPUT_LIMIT = 4 * 2**20
"""Output beyond this is dropped: no probe of ours prints that much, and a runaway must not fill memory."""


@dataclass(frozen=True)
class Execution:
    """How a command ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes


async def execute(
    transport: Transport, path: str, container: str, command: list[str], *, deadline: float, stdin: bytes | None
) -> Execution:
    """Run a command; never with a terminal, which on Windows would add escape sequences."""
    query = [("container", container), ("stdout", "true"), ("stderr", "true")]
    query += [("stdin", "true")] if stdin is not None else []
    query += [("command", argument) for argument in command]
    try:
        async with asyncio.timeout(deadline):
            return await _run(transport, path, query, stdin)
    except TimeoutError:
        raise ExecFailed(f"{command[0]} gave no exit code within {deadline:.0f} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ExecFailed(f"the exec stream broke: {error or type(error).__name__}") from None


async def _run(transport: Transport, path: str, query: list[tuple[str, str]], stdin: bytes | None) -> Execution:
    options = await transport.options()
    output: dict[int, bytearray] = {STDOUT: bytearray(), STDERR: bytearray()}
    status = b""
    url = transport.target.server + path
    try:
        socket = await transport.session.ws_connect(
            url, params=query, protocols=PROTOCOLS, max_msg_size=0, heartbeat=None, **options
        )
    except aiohttp.WSServerHandshakeError as error:
        raise NotStarted(f"exec was refused with HTTP {error.status}: {error.message}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise NotStarted(f"the exec stream did not open: {error or type(error).__name__}") from None
    async with socket:
        if stdin is not None:
            await _send_stdin(socket, stdin)
        async for message in socket:
            data = message.data.encode() if message.type is aiohttp.WSMsgType.TEXT else message.data
            if not data:
                continue
            channel, payload = data[0], data[1:]
            if channel == STATUS:
                status += payload
            elif channel in output and len(output[channel]) < OUTPUT_LIMIT:
                output[channel] += payload
    return Execution(_exit_code(status), bytes(output[STDOUT]), bytes(output[STDERR]))


async def _send_stdin(socket: aiohttp.ClientWebSocketResponse[bool], stdin: bytes) -> None:
    for start in range(0, len(stdin), 32768):
        await socket.send_bytes(bytes([STDIN]) + stdin[start : start + 32768])
    if socket.protocol == PROTOCOLS[0]:
        await socket.send_bytes(bytes([CLOSE, STDIN]))


def _exit_code(content: bytes) -> int:
    if not content:
        raise ExecFailed("the exec stream ended without a status")
    try:
        status: dict[str, Any] = msgspec.json.decode(content)
    except msgspec.DecodeError:
        raise ExecFailed("the exec stream ended with a status that is not JSON") from None
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or []:
        if cause.get("reason") == "ExitCode":
            # Windows exit codes are unsigned 32 bit numbers, such as 3221225477 for a crash.
            return int(cause["message"])
    error = api_error(int(status.get("code") or 500), status)
    raise NotStarted(f"the runtime did not run the command: {error.message}")
