"""What people run on Windows nodes: enough of some public images to answer the probes of a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process, Program
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.network.stack import Serve
from winready_sandbox.programs import http1
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of
from winready_sandbox.streams import Connection

UNHANDLED = 0xE0434352
"""How a .NET process ends that nobody caught an exception of."""


async def _serve(process: Process, pages: Mapping[int, Mapping[str, str]], taken: Callable[[int], int]) -> int:
    """Serve these pages by port until told to stop; ``taken`` tells how the program ends when a port is in use."""
    with ExitStack() as stack:
        for port, known in pages.items():
            try:
                listener = endpoint_of(process).listen(port, _site(known))
            except NetworkError:
                return taken(port)
            stack.callback(listener.close)
        await process.stop_requested.wait()
    return 0


def _site(pages: Mapping[str, str]) -> Serve:
    async def page(request: Request) -> Response:
        text = pages.get(request.path, pages.get("*"))
        return Response(text) if text is not None else http1.error("404 page not found", 404)

    async def serve(connection: Connection) -> None:
        await http1.serve(connection, page, connection.remote, connection.local)

    return serve


async def aspnetapp(process: Process) -> int:
    """The ASP.NET Core sample: a page, and health checks, on the ports that a variable names."""
    ports = [int(port) for port in process.env.get("ASPNETCORE_HTTP_PORTS", "8080").split(";") if port.isdigit()]

    def taken(port: int) -> int:
        address = f"http://[::]:{port}"
        process.err(f"Unhandled exception. System.IO.IOException: Failed to bind to address {address}: in use.\r\n")
        return UNHANDLED

    for port in ports:
        process.out(f"info: Microsoft.Hosting.Lifetime[14]\r\n      Now listening on: http://[::]:{port}\r\n")
    return await _serve(process, {port: {"/": "Welcome to .NET", "/healthz": "Healthy"} for port in ports}, taken)


async def service_monitor(process: Process) -> int:
    """What keeps an IIS container alive: it watches the web service, and ends with it."""
    if [word.lower() for word in process.argv[1:]] != ["w3svc"]:
        process.out("\r\nUSAGE: ServiceMonitor.exe [windows service name]\r\n")
        return 1
    process.out("\r\nService 'w3svc' has been stopped\r\n\r\nService 'w3svc' started\r\n")
    return await _serve(process, {80: {"*": "<title>IIS Windows Server</title>"}}, lambda port: 1)


async def windows_exporter(process: Process) -> int:
    """Metrics of a Windows host; a configuration that is named must be there."""
    for path in _option(process, "--config.file"):
        try:
            process.files.read(path, who=process.identity)
        except FileError:
            process.err(f'level=ERROR msg="Failed to load configuration file" err="open {path}"\n')
            return 1
    process.out(f'time={utc_now():%Y-%m-%dT%H:%M:%SZ} level=INFO msg="Listening on" address=[::]:9182\n')
    pages = {"/health": '{"status":"ok"}', "/metrics": "windows_exporter_build_info 1\n"}
    return await _serve(process, {9182: pages}, lambda port: 1)


async def nats_server(process: Process) -> int:
    """A NATS server: clients on its port, and what monitors it on another where one is named."""
    if list(_option(process, "--signal")):
        return 0
    ports: dict[int, dict[str, str]] = {4222: {}}
    for text in (*_option(process, "--http_port"), *_option(process, "-m")):
        ports[int(text)] = {"/healthz": '{"status":"ok"}', "/varz": "{}"}
    process.err(f"[1] {utc_now():%Y/%m/%d %H:%M:%S} [INF] Server is ready\n")
    return await _serve(process, ports, lambda port: 1)


async def fluent_bit(process: Process) -> int:
    """A shipper of logs, of which nobody asks anything."""
    process.err("[info] [engine] started\n")
    await process.stop_requested.wait()
    return 0


def _option(process: Process, name: str) -> Iterator[str]:
    """The values of an option, as one word or two."""
    words = process.argv[1:]
    for index, word in enumerate(words):
        if word == name and index + 1 < len(words):
            yield words[index + 1]
        elif word.startswith(f"{name}="):
            yield word.partition("=")[2]


APPLICATIONS: dict[str, Program] = {
    "aspnetapp": aspnetapp,
    "fluent-bit": fluent_bit,
    "nats-server": nats_server,
    "servicemonitor": service_monitor,
    "windows_exporter": windows_exporter,
}
