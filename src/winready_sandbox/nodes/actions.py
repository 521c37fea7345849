"""What probes and hooks do: run a command in the container, or talk to it from the node."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Any

from winready_sandbox.clock import Clock
from winready_sandbox.machine.errors import ExecError
from winready_sandbox.network.endpoint import NetworkError, Refused, TimedOut
from winready_sandbox.nodes.contained import Contains, Dials
from winready_sandbox.programs import grpc
from winready_sandbox.programs.grpc import Health
from winready_sandbox.programs.net import Stream, TlsStream, client_tls

Object = dict[str, Any]
_OUTPUT = 10 * 2**10
"""Bytes of a command's output that the kubelet keeps."""


@dataclass(frozen=True)
class Outcome:
    """How an action went, with the kubelet's words when it did not go well."""

    ok: bool
    message: str = ""


@dataclass(frozen=True)
class Target:
    """The container that an action is about, as the node reaches it."""

    container: Contains
    spec: Object
    address: str
    host: Dials
    clock: Clock

    def port(self, wanted: object) -> int:
        """A port by number or by its name in the container."""
        if isinstance(wanted, int) or str(wanted).isdigit():
            return int(str(wanted))
        named = {port.get("name"): int(port["containerPort"]) for port in self.spec.get("ports") or []}
        if wanted not in named:
            raise ValueError(f"couldn't find port: {wanted}")
        return named[str(wanted)]


async def perform(action: Object, target: Target, timeout: float) -> Outcome:
    """Do what a probe or hook says within that many cluster seconds."""
    try:
        if command := action.get("exec"):
            return await _exec(command.get("command") or [], target, timeout)
        if http := action.get("httpGet"):
            return await _http(http, target, timeout)
        if tcp := action.get("tcpSocket"):
            return await _tcp(tcp.get("host") or target.address, target.port(tcp["port"]), target, timeout)
        if call := action.get("grpc"):
            return await _grpc(int(call["port"]), call.get("service") or "", target, timeout)
        if pause := action.get("sleep"):
            await target.clock.sleep(float(pause["seconds"]))
    except ValueError as error:
        return Outcome(False, str(error))
    return Outcome(True)


async def _exec(argv: list[str], target: Target, timeout: float) -> Outcome:
    try:
        process = target.container.spawn(list(argv))
    except ExecError as error:
        return Outcome(False, error.on_exec(target.container.id, "probe"))
    process.stdin.close()
    try:
        async with asyncio.timeout(target.clock.wall(timeout)):
            out, err, code = await asyncio.gather(
                process.stdout.read_head(_OUTPUT), process.stderr.read_head(_OUTPUT), process.wait()
            )
    except TimeoutError:
        return Outcome(False, f'command timed out: "{" ".join(argv)}" timed out after {timeout:g}s')
    finally:
        await process.kill()
    return Outcome(code == 0, (out + err).decode(errors="replace").strip())


async def _tcp(host: str, port: int, target: Target, timeout: float) -> Outcome:
    try:
        (await target.host.connect(host, port, timeout=timeout)).close()
    except NetworkError as error:
        return Outcome(False, dial_words(host, port, error))
    return Outcome(True)


async def _grpc(port: int, service: str, target: Target, timeout: float) -> Outcome:
    place = f"[{target.address}]:{port}" if ":" in target.address else f"{target.address}:{port}"
    late = f'timeout: failed to connect service "{place}" within {timeout:g}s: context deadline exceeded'
    try:
        async with asyncio.timeout(target.clock.wall(timeout)):
            connection = await target.host.connect(target.address, port, timeout=timeout)
            try:
                health = await grpc.check(connection, place, service)
            finally:
                connection.close()
    except grpc.CallFailed as error:
        return Outcome(False, f"service unhealthy (responded with code {error.code}: {error})")
    except (NetworkError, TimeoutError):
        return Outcome(False, late)
    return Outcome(health is Health.SERVING, f'service unhealthy (responded with "{health.name}")')


def dial_words(host: str, port: int, error: NetworkError) -> str:
    """How a Go program says that it could not connect."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    reason = "connect: connection refused" if isinstance(error, Refused) else "connect: no route to host"
    return f"dial tcp {place}: " + ("i/o timeout" if isinstance(error, TimedOut) else reason)


async def _http(action: Object, target: Target, timeout: float) -> Outcome:
    host, port = action.get("host") or target.address, target.port(action["port"])
    scheme, path = action.get("scheme", "HTTP").lower(), action.get("path") or "/"
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    url = f"{scheme}://{place}{path if path.startswith('/') else '/' + path}"
    headers = {"Host": place, "User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close"}
    headers |= {item["name"]: item["value"] for item in action.get("httpHeaders") or []}
    lines = [f"GET {url.split(place, 1)[1]} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    try:
        async with asyncio.timeout(target.clock.wall(timeout)):
            connection = await target.host.connect(host, port, timeout=timeout)
            try:
                # As the kubelet does it: whoever answers is not asked for a certificate that anybody knows.
                stream = TlsStream(connection, client_tls(verify=False)) if scheme == "https" else connection
                if isinstance(stream, TlsStream):
                    await stream.handshake()
                status, body = await _ask(stream, "\r\n".join(lines) + "\r\n\r\n")
            finally:
                connection.close()
    except NetworkError as error:
        return Outcome(False, f'Get "{url}": {dial_words(host, port, error)}')
    except TimeoutError:
        words = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        return Outcome(False, f'Get "{url}": {words}')
    except (asyncio.IncompleteReadError, IndexError, ValueError, EOFError):
        return Outcome(False, f'Get "{url}": EOF')
    except ssl.SSLError:
        return Outcome(False, f'Get "{url}": http: server gave HTTP response to HTTPS client')
    return Outcome(200 <= status < 400, body if status < 400 else f"HTTP probe failed with statuscode: {status}")


async def _ask(connection: Stream, request: str) -> tuple[int, str]:
    connection.write(request.encode())
    status = int((await connection.readline()).split(b" ")[1])
    return status, ""
