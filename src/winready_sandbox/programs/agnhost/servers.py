"""agnhost's smaller servers: serve-hostname, porter, test-webserver; and what others serve with."""

from __future__ import annotations

import asyncio
import mimetypes
import re
import ssl
from collections.abc import Iterable

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import Listener, NetworkError
from winready_sandbox.network.stack import Answer, Serve
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import TlsStream, endpoint_of, join_host_port, server_tls
from winready_sandbox.streams import Connection

STOP_DELAY = 60.0
"""How long serve-hostname lingers after the stop signal (fact 1.2)."""


def http(handler: http1.Handler) -> Serve:
    """Serve HTTP with a handler."""

    async def serve(connection: Connection) -> None:
        await http1.serve(connection, handler, connection.remote, connection.local)

    return serve


def https(handler: http1.Handler, context: ssl.SSLContext) -> Serve:
    """Serve HTTP over TLS with a handler."""

    async def serve(connection: Connection) -> None:
        stream = TlsStream(connection, context, serves=True)
        try:
            await stream.handshake()
        except (ssl.SSLError, EOFError):
            return
        await http1.serve(stream, handler, connection.remote, connection.local)

    return serve


async def until_killed(listeners: Iterable[Listener]) -> int:
    """Serve until the process is ended from outside; such a program handles no signal."""
    try:
        await asyncio.Event().wait()
    finally:
        for listener in listeners:
            listener.close()
    return 0


SERVE_HOSTNAME_FLAGS: cobra.Known = {
    "port": ("int", 9376),
    "tcp": ("bool", False),
    "udp": ("bool", False),
    "http": ("bool", True),
}


async def serve_hostname(process: Process, flags: cobra.Flags) -> int:
    """Tell the host name to whoever asks."""
    name, port, endpoint = process.container.hostname, flags.number("port"), endpoint_of(process)

    async def page(request: Request) -> Response:
        klog(process, f"HTTP request from {join_host_port(*request.remote)}")
        return Response(name)

    async def raw(connection: Connection) -> None:
        klog(process, f"TCP request from {join_host_port(*connection.remote)}")
        connection.write(name.encode())
        connection.close()

    async def datagram(_payload: bytes, source: tuple[str, int]) -> bytes:
        klog(process, f"UDP request from {join_host_port(*source)}")
        return name.encode()

    if flags.on("http") and (flags.on("tcp") or flags.on("udp")):
        return golang.fatal(process, "Can't server TCP/UDP mode and HTTP mode at the same time")
    listeners: list[Listener] = []
    try:
        if flags.on("http") or flags.on("tcp"):
            listeners.append(endpoint.listen(port, http(page) if flags.on("http") else raw))
        if flags.on("udp"):
            listeners.append(endpoint.bind_udp(port, datagram))
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


PORTER_FLAGS: cobra.Known = {"json-response": ("bool", False)}
CERTIFICATE = {"CERT_FILE": "localhost.crt", "KEY_FILE": "localhost.key"}


async def porter(process: Process, flags: cobra.Flags) -> int:
    """Serve on the ports that environment variables name."""
    endpoint, in_json = endpoint_of(process), flags.on("json-response")
    listeners: list[Listener] = []
    for variable, text in list(process.env.items()):
        found = re.fullmatch(r"SERVE_(?:(TCP|UDP|TLS)_)?PORT_(\d+)", variable)
        if found is None:
            continue
        protocol, port = found[1] or "TCP", int(found[2])
        page = _value_page(text, in_json=in_json)
        try:
            if protocol == "UDP":
                listeners.append(endpoint.bind_udp(port, _constant(text)))
                klog(process, f"Started UDP server on port {port}")
            else:
                serve = https(page, _certificate(process)) if protocol == "TLS" else http(page)
                listeners.append(endpoint.listen(port, serve))
        except NetworkError as error:
            klog(process, f'server on port "{port}" failed: {golang.listen_error(process, error, port)}')
        except (FileError, ssl.SSLError) as failure:
            klog(process, f'tls server on port "{port}" failed: {failure}')
    return await until_killed(listeners)


def _certificate(process: Process) -> ssl.SSLContext:
    paths = [process.env.get(name) or default for name, default in CERTIFICATE.items()]
    certificate, key = (process.files.read(path, process.cwd, who=process.identity) for path in paths)
    return server_tls(certificate, key)


def _constant(text: str) -> Answer:
    async def answer(_payload: bytes, _source: tuple[str, int]) -> bytes:
        return text.encode()

    return answer


def _value_page(text: str, *, in_json: bool) -> http1.Handler:
    async def page(request: Request) -> Response:
        if not in_json:
            return Response(text)
        told = golang.go_json({"Method": request.method, "Body": text})
        return Response(told, headers={"Content-Type": "application/json"})

    return page


async def test_webserver(process: Process, flags: cobra.Flags) -> int:
    """Serve the container's own files."""

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

    try:
        listener = endpoint_of(process).listen(80, http(page))
    except NetworkError as error:
        return golang.fatal(process, golang.listen_error(process, error, 80))
    return await until_killed([listener])
