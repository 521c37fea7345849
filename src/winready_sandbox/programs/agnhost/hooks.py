"""What agnhost's webhooks share: an HTTPS server whose certificate comes from files of the container."""

from __future__ import annotations

import ssl

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.servers import https, until_killed
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of, server_tls

FLAGS: cobra.Known = {
    "tls-cert-file": ("string", ""),
    "tls-private-key-file": ("string", ""),
    "port": ("int", 443),
}


async def run(process: Process, flags: cobra.Flags, pages: dict[str, http1.Handler]) -> int:
    """Serve these pages until killed, and ``/readyz``."""
    paths = [flags.text("tls-cert-file"), flags.text("tls-private-key-file")]
    try:
        parts = [process.files.read(path, who=process.identity) for path in paths]
        context = server_tls(*parts)
    except FileError as error:
        golang.klog(process, golang.open_error(process, paths[0], error), level="F")
        return 255
    except ssl.SSLError:
        golang.klog(process, "tls: failed to find any PEM data in certificate input", level="F")
        return 255

    async def page(request: Request) -> Response:
        if request.path == "/readyz":
            return Response("ok")
        handler = pages.get(request.path)
        return await handler(request) if handler else http1.error("404 page not found", 404)

    port = flags.number("port")
    try:
        listener = endpoint_of(process).listen(port, https(page, context))
    except NetworkError as error:
        process.err(f"panic: {golang.listen_error(process, error, port)}\n")
        return 2
    return await until_killed([listener])
