"""agnhost's smaller servers: serve-hostname, porter, test-webserver, liveness, tcp-reset, port-forward-tester."""

from __future__ import annotations

import asyncio
import mimetypes
import re
from collections.abc import Iterable

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import Listener, NetworkError
from winready_sandbox.network.stack import Answer, Serve
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.golang import go_json, klog
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of, join_host_port
from winready_sandbox.streams import Connection

STOP_DELAY = 60.0
"""How long serve-hostname lingers after the stop signal (fact 1.2)."""


def http(handler: http1.Handler) -> Serve:
    """Serve HTTP with a handler."""

    async def serve(connection: Connection) -> None:
        await http1.serve(connection, handler, connection.remote, connection.local)

    return serve


async def until_killed(listeners: Iterable[Listener]) -> int:
    """Serve until the process is ended from outside; such a program handles no signal."""
    try:
        await asyncio.Event().wait()
    finally:
        for listener in listeners:
            listener.close()
    return 0


async def serve_hostname(process: Process, arguments: list[str]) -> int:
    """Tell the host name to whoever asks."""
    known: dict[str, tuple[cobra.Kind, cobra.Value]] = {
        "tcp": ("bool", False),
        "udp": ("bool", False),
        "http": ("bool", True),
        "close": ("bool", False),
        "port": ("int", 9376),
    }
    flags = cobra.parse(arguments, known)
    cobra.no_more_than(flags, 0)
    if flags.on("http") and (flags.on("tcp") or flags.on("udp")):
        return golang.fatal(process, "Can't server TCP/UDP mode and HTTP mode at the same time")
    name, port, endpoint = process.container.hostname, flags.number("port"), endpoint_of(process)

    async def raw(connection: Connection) -> None:
        klog(process, f"TCP request from {join_host_port(*connection.remote)}")
        connection.write(name.encode())

    async def datagram(_payload: bytes, source: tuple[str, int]) -> bytes:
        klog(process, f"UDP request from {join_host_port(*source)}")
        return name.encode()

    async def page(request: Request) -> Response:
        klog(process, f"HTTP request from {join_host_port(*request.remote)}")
        return Response(name, headers={"Connection": "close"} if flags.on("close") else {})

    listeners: list[Listener] = []
    try:
        if flags.on("tcp"):
            listeners.append(endpoint.listen(port, raw))
        if flags.on("udp"):
            listeners.append(endpoint.bind_udp(port, datagram))
        if flags.on("http"):
            listeners.append(endpoint.listen(port, http(page)))
        klog(process, f"Serving on port {port}.")
        await process.stop_requested.wait()
        klog(process, "Shutting down after receiving signal: terminated.")
        klog(process, "Awaiting pod deletion.")
        await process.container.clock.sleep(STOP_DELAY)
        return 0
    except NetworkError as error:
        return golang.fatal(process, f"Error from net.Listen(): {golang.listen_error(process, error, port)}")
    finally:
        for listener in listeners:
            listener.close()


async def porter(process: Process, arguments: list[str]) -> int:
    """Serve on the ports that environment variables name."""
    flags = cobra.parse(arguments, {"json-response": ("bool", False)})
    cobra.no_more_than(flags, 0)
    endpoint = endpoint_of(process)
    listeners: list[Listener] = []
    for variable, text in list(process.env.items()):
        found = re.fullmatch(r"SERVE_(?:(TCP|UDP|SCTP)_)?PORT_(\d+)", variable)
        if found is None:
            continue
        protocol, port = found[1] or "TCP", int(found[2])
        try:
            if protocol == "UDP":
                listeners.append(endpoint.bind_udp(port, _constant(text)))
                klog(process, f"Started UDP server on port {port}")
            elif protocol == "SCTP":
                listeners.append(endpoint.listen(port, _raw(text), protocol="SCTP"))
                klog(process, "Started SCTP server")
            else:
                listeners.append(endpoint.listen(port, http(_value_page(text, flags.on("json-response")))))
        except NetworkError as error:
            klog(process, f'server on port "{port}" failed: {golang.listen_error(process, error, port)}')
    return await until_killed(listeners)


def _constant(text: str) -> Answer:
    async def answer(_payload: bytes, _source: tuple[str, int]) -> bytes:
        return text.encode()

    return answer


def _raw(text: str) -> Serve:
    async def serve(connection: Connection) -> None:
        connection.write(text.encode())

    return serve


def _value_page(text: str, as_json: bool) -> http1.Handler:
    async def page(request: Request) -> Response:
        if as_json:
            body = go_json({"Method": request.method, "Body": text})
            return Response(body, headers={"Content-Type": "application/json"})
        return Response(text)

    return page


async def test_webserver(process: Process, arguments: list[str]) -> int:
    """Serve the container's own files."""
    flags = cobra.parse(arguments, {"port": ("int", 80)})
    cobra.no_more_than(flags, 0)

    async def page(request: Request) -> Response:
        files, path = process.files, request.path
        headers = {"Cache-Control": "private", "Access-Control-Allow-Origin": "*"}
        try:
            if files.is_dir(path):
                names = [name for name, _ in files.list(path, who=process.identity)]
                listing = "".join(f'<a href="{name}">{name}</a>\n' for name in names)
                return Response(f"<pre>\n{listing}</pre>\n", headers={**headers, "Content-Type": "text/html"})
            content = files.read(path, who=process.identity)
        except FileError:
            return http1.error("404 page not found", 404)
        kind = mimetypes.guess_type(path)[0] or http1.TEXT
        return Response(content, headers={**headers, "Content-Type": kind})

    return await _serve_page(process, flags.number("port"), page)


async def _serve_page(process: Process, port: int, page: http1.Handler) -> int:
    try:
        listener = endpoint_of(process).listen(port, http(page))
    except NetworkError as error:
        return golang.fatal(process, golang.listen_error(process, error, port))
    return await until_killed([listener])


async def liveness(process: Process, arguments: list[str]) -> int:
    """Healthy for ten seconds, and never again."""
    cobra.no_more_than(cobra.parse(arguments, {}), 0)
    clock = process.container.clock
    started = clock.now()

    async def page(request: Request) -> Response:
        age = clock.now() - started
        match request.path:
            case "/started":
                return Response(f"{age:.9f}s")
            case "/healthz":
                return Response(f"error: {age}", 500) if age > 10 else Response("ok")
            case "/redirect":
                location = request.value("loc")
                return Response(f'<a href="{location}">Found</a>.\n\n', 302, {"Location": location})
        return http1.error("404 page not found", 404)

    return await _serve_page(process, 8080, page)


async def tcp_reset(process: Process, arguments: list[str]) -> int:
    """Accept connections only to break them."""
    flags = cobra.parse(arguments, {"port": ("int", 8080)})
    port = flags.number("port")

    async def serve(connection: Connection) -> None:
        await connection.read(1)
        connection.close()
        klog(process, f"TCP request from {join_host_port(*connection.remote)}")

    try:
        listener = endpoint_of(process).listen(port, serve)
    except NetworkError as error:
        return golang.fatal(process, f"Error from net.Listen(): {golang.listen_error(process, error, port)}")
    klog(process, f"Serving on port {port}.")
    try:
        await process.stop_requested.wait()
    finally:
        listener.close()
    klog(process, "Shutting down after receiving signal: terminated.")
    klog(process, "Awaiting pod deletion.")
    return 0


async def port_forward_tester(process: Process, arguments: list[str]) -> int:
    """Serve one client with chunks of data, as environment variables say."""
    cobra.no_more_than(cobra.parse(arguments, {}), 0)
    numbers: dict[str, int] = {}
    for name in ("BIND_PORT", "CHUNKS", "CHUNK_SIZE", "CHUNK_INTERVAL"):
        text = process.env.get(name, "")
        if not text.isdigit():
            process.out(f'Error parsing {name} "{text}": strconv.Atoi: parsing "{text}": invalid syntax\n')
            return 1
        numbers[name] = int(text)
    expected = process.env.get("EXPECTED_CLIENT_DATA", "").encode()
    address = process.env.get("BIND_ADDRESS", "") or "localhost"
    address = {"localhost": "127.0.0.1"}.get(address, address)
    accepted: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
    finished = asyncio.Event()

    async def serve(connection: Connection) -> None:
        if not accepted.done():
            accepted.set_result(connection)
        await finished.wait()

    try:
        listener = endpoint_of(process).listen(numbers["BIND_PORT"], serve, address=address)
    except NetworkError as error:
        process.out(f"Error listening: {golang.listen_error(process, error, numbers['BIND_PORT'])}\n")
        return 1
    try:
        connection = await accepted
        process.out("Accepted client connection\n")
        if expected:
            try:
                received = await connection.readexactly(len(expected))
            except asyncio.IncompleteReadError as error:
                got = len(error.partial)
                process.out(f"Expected to read {len(expected)} bytes from client, but got {got} instead. err=EOF\n")
                return 2
            if received != expected:
                process.out(f'Expect to read "{expected.decode()}", but got "{received.decode()}". err=<nil>\n')
                return 3
            process.out("Received expected client data\n")
        for number in range(numbers["CHUNKS"]):
            connection.write(b"x" * numbers["CHUNK_SIZE"])
            if number + 1 < numbers["CHUNKS"]:
                await process.container.clock.sleep(numbers["CHUNK_INTERVAL"] / 1000)
        connection.close_write()
        process.out("Done\n")
        return 0
    finally:
        finished.set()
        listener.close()
