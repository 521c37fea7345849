"""The proxy as a process of its own on loopback: ``python -m chaos.process KUBECONFIG RATE SEED OUTPUT``.

It writes a kubeconfig that leads to it, and says so in a line; it ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import sys
from pathlib import Path
from typing import Any

import aiohttp

from chaos.kinds import KINDS, LASTING, Weather, storm
from chaos.proxy import Proxy
from winready.cluster.credentials import Credentials
from winready.cluster.kubeconfig import find_target
from winready_sandbox.kubeconfig import kubeconfig
from winready_sandbox.pki import Authority, server_context

RESET = struct.pack("ii", 1, 0)
"""To close a socket so that its other end is reset."""


async def serve(kubeconfig_file: str, rate: float, seed: str, output: Path) -> None:
    """Stand before the API server of a kubeconfig until nobody reads our words any more."""
    target = find_target(kubeconfig_file)
    # What lasts is tried in virtual time.
    weather = Weather(storm(rate, KINDS.keys() - LASTING), seed, trusted=20)
    proxy = Proxy(target.server, aiohttp.TCPConnector(limit=0), weather, await Credentials(target).tls())
    authority = Authority()
    context = server_context(authority.server("chaos", ["127.0.0.1"]), authority.certificate)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    url = f"https://127.0.0.1:{listening.getsockname()[1]}"
    text = kubeconfig("chaos", url, authority.certificate, authority.client("anybody", []))
    await asyncio.to_thread(output.write_text, text)
    print(url, flush=True)
    accepting = asyncio.create_task(_accept(listening, proxy, weather, context))
    await asyncio.to_thread(sys.stdin.read)
    accepting.cancel()
    await proxy.close()
    print(json.dumps(weather.met), flush=True)


async def _accept(listening: socket.socket, proxy: Proxy, weather: Weather, context: ssl.SSLContext) -> None:
    loop = asyncio.get_running_loop()
    handshakes: set[asyncio.Future[Any]] = set()
    while True:
        connection, _ = await loop.sock_accept(listening)
        chance = weather.chance("connection")
        if chance.random() < weather.rates["handshake-fails"]:
            weather.met["handshake-fails"] += 1
            if chance.random() < 0.5:
                await loop.sock_sendall(connection, b"HTTP/1.1 400 Bad Request\r\n\r\n")
            else:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()
            continue
        opening = asyncio.ensure_future(loop.connect_accepted_socket(proxy.server, connection, ssl=context))
        handshakes.add(opening)
        opening.add_done_callback(handshakes.discard)
        # A client that hangs up during the handshake is nobody's trouble.
        opening.add_done_callback(lambda task: task.cancelled() or task.exception())


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], float(sys.argv[2]), sys.argv[3], Path(sys.argv[4])))
