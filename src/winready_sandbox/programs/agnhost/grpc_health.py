"""``agnhost grpc-health-checking``: a gRPC service that is well until it is told otherwise."""

from __future__ import annotations

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs import grpc
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.agnhost.servers import http, until_killed
from winready_sandbox.programs.grpc import Health
from winready_sandbox.programs.http1 import Request, Response, error
from winready_sandbox.programs.net import endpoint_of
from winready_sandbox.streams import Connection

PORT, HTTP_PORT = 5000, 8080


async def main(process: Process, _flags: cobra.Flags) -> int:
    """Serve until killed."""
    clock = process.container.clock
    started, health = clock.now(), {"": Health.SERVING}

    async def calls(connection: Connection) -> None:
        klog(process, "Serving the Check request for health check")
        await grpc.serve(connection, health.get)

    async def page(request: Request) -> Response:
        if request.path not in ("/make-serving", "/make-not-serving"):
            return error("404 page not found", 404)
        health[""] = Health.SERVING if request.path == "/make-serving" else Health.NOT_SERVING
        return Response(f"{clock.now() - started:.9f}s")

    endpoint = endpoint_of(process)
    try:
        listeners = [endpoint.listen(HTTP_PORT, http(page)), endpoint.listen(PORT, calls)]
    except NetworkError as failure:
        return golang.fatal(process, golang.listen_error(process, failure, PORT))
    klog(process, f"gRPC server starting to listen on :{PORT}")
    return await until_killed(listeners)
