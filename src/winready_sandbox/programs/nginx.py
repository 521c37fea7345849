"""nginx as the test image starts it: one site with the files under /usr/share/nginx/html."""

from __future__ import annotations

import mimetypes

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs import http1
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of
from winready_sandbox.streams import Connection

ROOT = "/usr/share/nginx/html"
VERSION = "nginx/1.15.12"
_ERROR = (
    "<html>\r\n<head><title>{text}</title></head>\r\n<body>\r\n<center><h1>{text}</h1></center>\r\n"
    "<hr><center>{version}</center>\r\n</body>\r\n</html>\r\n"
)


async def nginx(process: Process) -> int:
    """Serve until told to stop."""

    async def page(request: Request) -> Response:
        response = _find(process, request.path)
        now = utc_now()
        agent, size = request.headers.get("user-agent", "-"), len(response.body)
        line = f'{request.remote[0]} - - [{now:%d/%b/%Y:%H:%M:%S} +0000] "{request.method} {request.target} HTTP/1.1"'
        process.out(f'{line} {response.status} {size} "-" "{agent}" "-"\n')
        return response

    async def serve(connection: Connection) -> None:
        await http1.serve(connection, page, connection.remote, connection.local)

    try:
        listener = endpoint_of(process).listen(80, serve)
    except NetworkError:
        process.err("nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)\n")
        return 1
    try:
        await process.stop_requested.wait()
    finally:
        listener.close()
    return 0


def _find(process: Process, path: str) -> Response:
    name = path + "index.html" if path.endswith("/") else path
    headers = {"Server": VERSION, "Content-Type": mimetypes.guess_type(name)[0] or "application/octet-stream"}
    try:
        return Response(process.files.read(ROOT + name, who=process.identity), headers=headers)
    except FileError:
        body = _ERROR.format(text="404 Not Found", version=VERSION)
        return Response(body, 404, {"Server": VERSION, "Content-Type": "text/html"})
