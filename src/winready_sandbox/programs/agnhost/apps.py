"""agnhost's small applications: liveness, guestbook, logs-generator, entrypoint-tester."""

from __future__ import annotations

import asyncio
import json
import random
import string
from typing import Any

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.agnhost.servers import http, until_killed
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import addresses, endpoint_of, join_host_port

ALIVE_SECONDS = 10.0
LIVENESS_PORT = 8080
REGISTER_SECONDS, CALL_SECONDS = 15.0, 5.0


async def entrypoint_tester(process: Process, _flags: cobra.Flags) -> int:
    """Print its own arguments as Go prints a list."""
    process.out(f"[{' '.join(process.argv)}]\n")
    return 0


async def liveness(process: Process, _flags: cobra.Flags) -> int:
    """Be well for ten seconds, and unwell after that."""
    clock = process.container.clock
    started = clock.now()

    async def page(request: Request) -> Response:
        age = clock.now() - started
        if request.path == "/started":
            return Response(f"{age:.9f}s")
        if request.path == "/healthz":
            return Response("ok") if age <= ALIVE_SECONDS else Response(f"error: {age}", 500)
        if request.path == "/redirect":
            return Response(status=302, headers={"Location": request.value("loc")})
        return http1.error("404 page not found", 404)

    try:
        listener = endpoint_of(process).listen(LIVENESS_PORT, http(page))
    except NetworkError as error:
        return golang.fatal(process, golang.listen_error(process, error, LIVENESS_PORT))
    return await until_killed([listener])


LOGS_FLAGS: cobra.Known = {"log-lines-total": ("int", 0), "run-duration": ("duration", 0.0)}


async def logs_generator(process: Process, flags: cobra.Flags) -> int:
    """Write lines of log at even intervals."""
    total, duration = flags.number("log-lines-total"), flags.seconds("run-duration")
    if total <= 0 or duration <= 0:
        what = f"Invalid total number of lines: {total}" if total <= 0 else f"Invalid duration: {duration:g}s"
        klog(process, what, level="F")
        return 255
    for number in range(total):
        method, namespace = random.choice(("GET", "POST", "PUT")), random.choice(("kube-system", "default", "ns"))
        pod = "".join(random.choices(string.ascii_lowercase, k=random.randrange(3, 5)))
        url = f"/api/v1/namespaces/{namespace}/pods/{pod}"
        klog(process, f"{number} {method} {url} {random.randrange(200, 600)}", source="logs_generator.go:76")
        await process.container.clock.sleep(duration / total)
    return 0


GUESTBOOK_FLAGS: cobra.Known = {
    "http-port": ("string", "80"),
    "backend-port": ("string", "6379"),
    "replicaof": ("string", ""),
}


async def guestbook(process: Process, flags: cobra.Flags) -> int:
    """Keep values, hand them on to replicas, or ask those who keep them."""
    port = int(flags.text("http-port"))
    book = _Guestbook(process, int(flags.text("backend-port")))
    try:
        listener = endpoint_of(process).listen(port, http(book.page))
    except NetworkError as error:
        return golang.fatal(process, golang.listen_error(process, error, port))
    try:
        if (primary := flags.text("replicaof")) and not await book.register(primary):
            return golang.fatal(process, "Timed out while registering to primary.")
        return await until_killed([listener])
    finally:
        listener.close()


class _Guestbook:
    def __init__(self, process: Process, backend: int) -> None:
        self._process = process
        self._backend = backend
        self._store: dict[str, Any] = {}
        self._replicas: list[str] = []

    async def register(self, primary: str) -> bool:
        """Become a replica; tells whether the primary answered in time."""
        clock, own = self._process.container.clock, endpoint_of(self._process).addresses[0]
        deadline = clock.now() + REGISTER_SECONDS
        while clock.now() < deadline:
            try:
                self._store = json.loads(await self._call(primary, f"/register?host={own}"))["data"] or {}
            except (NetworkError, ValueError) as error:
                klog(self._process, f"encountered error while registering to primary: {error}. Retrying in 1s.")
                await clock.sleep(1)
                continue
            klog(self._process, f"Registered to node: {primary}")
            return True
        return False

    async def page(self, request: Request) -> Response:
        """Answer one request."""
        klog(self._process, f"GET {request.target}")
        key, value, command = request.value("key"), request.value("value"), request.value("cmd").lower()
        match request.path:
            case "/register":
                self._replicas.append(request.value("host"))
                return Response(golang.go_json({"data": self._store}))
            case "/get":
                return Response(golang.go_json({"data": self._store.get(key, "") if key else self._store}))
            case "/set" if key:
                self._store[key] = value
                return await self._passed_on(f"/set?key={key}&value={value}")
            case "/guestbook" if command in ("get", "set") and (key or command == "get"):
                host = "agnhost-primary" if command == "set" else "agnhost-replica"
                return await self._asked(host, f"/{command}?key={key}&value={value}")
            case "/guestbook" if command not in ("get", "set"):
                return http1.error(f"unsupported cmd: '{command}'", 400)
            case "/set" | "/guestbook":
                return http1.error("cannot set with empty key.", 400)
        return http1.error("404 page not found", 404)

    async def _passed_on(self, target: str) -> Response:
        for replica in self._replicas:
            try:
                await self._call(replica, target)
            except (NetworkError, ValueError) as error:
                return http1.error(f"encountered error while propagating to replica '{replica}': {error}", 417)
        return Response(golang.go_json({"message": "Updated"}))

    async def _asked(self, host: str, target: str) -> Response:
        try:
            return Response(await self._call(host, target))
        except (NetworkError, ValueError) as error:
            return http1.error(f"encountered error: {error}", 417)

    async def _call(self, host: str, target: str) -> bytes:
        """One request to another guestbook; raises `NetworkError` or `ValueError`."""
        (address, *_) = await addresses(self._process, host, timeout=CALL_SECONDS)
        connection = await endpoint_of(self._process).connect(address, self._backend, timeout=CALL_SECONDS)
        try:
            headers = [("Host", join_host_port(host, self._backend)), ("Connection", "close")]
            connection.write(http1.request_bytes("GET", target, headers))
            answer = await http1.read_answer(connection)
        except (asyncio.IncompleteReadError, http1.BadAnswer) as error:
            raise ValueError(str(error)) from None
        finally:
            connection.close()
        if answer is None:
            raise ValueError("EOF")
        return answer.body
