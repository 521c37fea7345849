"""``agnhost nettest``: pods that find each other through a service and tell whom they heard of."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.inclusterclient import DIRECTORY, CallFailed, InClusterClient
from winready_sandbox.programs.agnhost.servers import http, until_killed
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of, join_host_port

PORT, PEERS = 8080, 8
NAMESPACE, SERVICE = "default", "nettest"
ROUNDS, PAUSE, PATIENCE = 15, 5.0, 300.0


async def main(process: Process, _flags: cobra.Flags) -> int:
    """Serve until killed, and look for the others meanwhile."""
    peers = _Peers(process)
    try:
        listener = endpoint_of(process).listen(PORT, http(peers.page))
    except NetworkError as error:
        return golang.fatal(process, golang.listen_error(process, error, PORT))
    try:
        client = InClusterClient(process)
    except FileError as error:
        words = golang.open_error(process, f"{DIRECTORY}/token", error)
        return golang.fatal(process, f"Unable to create config; error: {words}")
    contacting = asyncio.create_task(peers.contact(client), name="nettest")
    try:
        return await until_killed([listener])
    finally:
        contacting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await contacting


class _Peers:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._sent: dict[str, int] = {}
        self._received: dict[str, int] = {}
        self._errors: list[str] = []
        self._log: list[str] = []
        self._contacting = True

    async def page(self, request: Request) -> Response:
        """Answer one request."""
        name = self._process.container.hostname
        match request.path:
            case "/read":
                state: dict[str, Any] = {"Hostname": name, "Sent": self._sent or None}
                state |= {"Received": self._received or None, "Errors": self._errors or None, "Log": self._log or None}
                return Response(json.dumps({**state, "StillContactingPeers": self._contacting}, indent="\t"))
            case "/write":
                self._heard(request.body)
                return Response(json.dumps({"Hostname": name}) + "\n")
            case "/status":
                good = len(self._sent) >= PEERS and len(self._received) >= PEERS
                return Response("pass" if good else "running" if self._contacting else "fail")
        return http1.error("404 page not found", 404)

    def _heard(self, body: bytes) -> None:
        try:
            source = json.loads(body).get("Source")
        except (ValueError, AttributeError) as error:
            self._errors.append(str(error))
            return
        if not source:
            self._errors.append(f"{self._process.container.hostname}: Got request with no source")
        else:
            self._received[source] = self._received.get(source, 0) + 1

    async def contact(self, client: InClusterClient) -> None:
        """Find all pods of the service, and write to each of them a few times."""
        clock = self._process.container.clock
        deadline = clock.now() + PATIENCE
        while clock.now() < deadline and len(await self._endpoints(client)) < PEERS:
            await clock.sleep(PAUSE)
        for _ in range(ROUNDS):
            for address, port in await self._endpoints(client):
                await self._write(address, port)
            await clock.sleep(PAUSE)
        self._contacting = False

    async def _endpoints(self, client: InClusterClient) -> list[tuple[str, int]]:
        try:
            found: dict[str, Any] = json.loads(await client.get(f"/api/v1/namespaces/{NAMESPACE}/endpoints/{SERVICE}"))
        except (CallFailed, ValueError) as error:
            self._log.append(f"Unable to read the endpoints for {NAMESPACE}/{SERVICE}: {error}.")
            return []
        subsets = found.get("subsets") or []
        return [
            (address["ip"], port["port"])
            for subset in subsets
            for address in subset.get("addresses") or []
            for port in subset.get("ports") or []
        ]

    async def _write(self, address: str, port: int) -> None:
        place = join_host_port(address, port)
        body = json.dumps({"Dest": f"http://{place}", "Source": self._process.container.hostname}).encode()
        headers = [("Host", place), ("Content-Length", str(len(body))), ("Connection", "close")]
        try:
            connection = await endpoint_of(self._process).connect(address, port, timeout=PAUSE)
            try:
                connection.write(http1.request_bytes("POST", "/write", headers, body))
                answer = await http1.read_answer(connection)
            finally:
                connection.close()
            name = json.loads(answer.body if answer else b"")["Hostname"]
        except (NetworkError, ValueError, KeyError, asyncio.IncompleteReadError, http1.BadAnswer) as error:
            self._log.append(f'Warning: unable to contact the endpoint "http://{place}": {error}')
            return
        self._sent[name] = self._sent.get(name, 0) + 1
