"""The dialling half of netexec: one request after another, each on a connection of its own."""

from __future__ import annotations

import asyncio

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError, TimedOut
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import golang
from winready_sandbox.programs.agnhost.golang import go_json
from winready_sandbox.programs.http1 import Response
from winready_sandbox.programs.net import addresses, endpoint_of, join_host_port

TRY_TIMEOUT = 5.0
"""Cluster seconds for one try (fact 1.2)."""
TRIES = 2
"""Whoever asks for a dial waits for all of its tries: each has a part of that patience."""


class DialFailed(Exception):
    """One try that failed, in Go's words."""


async def dial(process: Process, host: str, port: str, request: str, protocol: str, tries: int) -> Response:
    """Try so many times and tell all answers and errors."""
    kinds = {"": _http, "http": _http, "udp": _udp}
    dialer = kinds.get(protocol.lower())
    if dialer is None:
        return http1.error(f"unsupported protocol. {protocol}", 400)
    invalid = "host and/or port param are invalid."
    if not port.isdigit():
        return http1.error(f"{invalid} lookup tcp/{port}: unknown port", 400)
    try:
        found = await addresses(process, host or "127.0.0.1")
    except NetworkError as error:
        return http1.error(f"{invalid} {golang.lookup_error(process, error, host)}", 400)
    responses, errors, last = [], [], ""
    for _ in range(tries):
        last = ""
        try:
            last = await dialer(process, found[0], int(port), request)
            responses.append(last)
        except DialFailed as error:
            errors.append(str(error))
    output: dict[str, list[str]] = {}
    if errors:
        output["errors"] = errors
    if last:
        # Fact 1.2: the answers are left out when the last try failed, even if others worked.
        output["responses"] = responses
    return Response(go_json(output))


async def _http(process: Process, address: str, port: int, request: str) -> str:
    url = f"http://{join_host_port(address, port)}/{request}"
    clock = process.container.clock
    too_slow = f'Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    try:
        connection = await endpoint_of(process).connect(address, port, timeout=TRY_TIMEOUT)
        try:
            host = ("Host", join_host_port(address, port))
            agent = ("User-Agent", "Go-http-client/1.1")
            connection.write(http1.request_bytes("GET", f"/{request}", [host, agent, ("Accept-Encoding", "gzip")]))
            async with asyncio.timeout(clock.patience(TRY_TIMEOUT, within=TRIES)):
                answer = await http1.read_answer(connection)
        finally:
            connection.close()
    except (TimedOut, TimeoutError):
        raise DialFailed(too_slow) from None
    except NetworkError as error:
        raise DialFailed(f'Get "{url}": {golang.dial_error(process, error, address, port)}') from None
    except (http1.BadAnswer, asyncio.IncompleteReadError):
        raise DialFailed(f'Get "{url}": net/http: HTTP/1.x transport connection broken: malformed response') from None
    if answer is None:
        raise DialFailed(f'Get "{url}": EOF')
    return answer.body.decode("utf-8", "replace")


async def _udp(process: Process, address: str, port: int, request: str) -> str:
    endpoint = endpoint_of(process)
    try:
        answer = await endpoint.exchange(address, port, request.encode(), timeout=TRY_TIMEOUT)
    except NetworkError as error:
        local = join_host_port(next(iter(endpoint.addresses), ""), 50000)
        text = golang.read_error(process, error, local, join_host_port(address, port))
        raise DialFailed(f"reading from udp connection failed. err:'{text}'") from None
    return answer.decode("utf-8", "replace")
