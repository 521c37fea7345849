"""Exec over WebSocket: separate streams and an exit code, or an error that says why there is none."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import aiohttp
import msgspec

from winready.cluster.errors import ExecFailed, NotStarted
from winready.cluster.transport import Transport

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
HANDSHAKE_SECONDS = 30.0
UNSURE = frozenset({502, 504})
"""What a load balancer says whose server may have gone on."""
OUTPUT_LIMIT = 4 * 2**20
"""Output beyond this is dropped: no probe of ours prints that much, and a runaway must not fill memory."""


class _Cause(msgspec.Struct):
    reason: str | None = None
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    """How the API server tells the end of a command."""

    status: str | None = None
    message: str | None = None
    details: _Details | None = None


@dataclass(frozen=True)
class Execution:
    """How a command ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    again: int = 0
    """How often it had to be tried again before it came to this."""


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
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            socket = await transport.session.ws_connect(
                url, params=query, protocols=PROTOCOLS, max_msg_size=0, heartbeat=None, **options
            )
    except aiohttp.WSServerHandshakeError as error:
        if error.status == 401:
            await transport.credentials.refused()
        kind = ExecFailed if error.status in UNSURE else NotStarted
        raise kind(f"exec was refused with HTTP {error.status}: {error.message}") from None
    except aiohttp.ClientConnectorError as error:
        raise NotStarted(f"the exec stream did not open: {error or type(error).__name__}") from None
    except TimeoutError:
        raise ExecFailed(f"the exec stream did not open within {HANDSHAKE_SECONDS:g} s") from None
    async with socket:
        if stdin is not None:
            await _send_stdin(socket, stdin)
        async for message in socket:
            if message.type is aiohttp.WSMsgType.ERROR:
                raise ExecFailed(f"the exec stream broke: {message.data}")
            data = message.data.encode() if message.type is aiohttp.WSMsgType.TEXT else message.data
            if not isinstance(data, bytes) or not data:
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
        status = msgspec.json.decode(content, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ExecFailed("the exec stream ended with a status that is not JSON, or none of an API server") from None
    if status.status == "Success":
        return 0
    for cause in (status.details or _Details()).causes or []:
        # Windows exit codes are unsigned 32 bit numbers, such as 3221225477 for a crash.
        if cause.reason == "ExitCode" and re.fullmatch(r"-?\d{1,10}", cause.message):
            return int(cause.message)
    if status.status != "Failure":
        raise ExecFailed("the exec stream ended with a status that says nothing")
    raise NotStarted(f"the runtime did not run the command: {status.message or 'no reason given'}")
