"""What runs inside the namespaces of the gMSA webhook: two relays and the program itself, and nothing outlives it.

The webhook listens on all interfaces, so it gets a network of its own that has none but loopback. Unix sockets lead in
and out. What it needs comes as one JSON document on standard input and stays in memory: the service account's folder is
on a tmpfs that only these namespaces see. The end of standard input is the end of everything here.

Started by ``gmsa_webhook.py`` as process 1 of its namespaces; needs nothing but Python.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

API_PORT, HOOK_PORT = 6443, 8443
ACCOUNT = Path("/run/secrets/kubernetes.io/serviceaccount")
TLS = Path("/run/tls")
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until the end; a vanished peer is an end as well."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def relay_to(*address: str | int) -> Handler:
    """What to do with a connection: tie it to another one, to a host and port or to the path of a Unix socket."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(address) == 1:
                far_reader, far_writer = await asyncio.open_unix_connection(str(address[0]))
            else:
                far_reader, far_writer = await asyncio.open_connection(str(address[0]), int(address[1]))
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    return relay


def raise_loopback() -> None:
    """Loopback is down in a new network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sh22x", b"lo", 0))
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))


def furnish(given: dict[str, str]) -> None:
    """The files of a pod: its service account and its certificate."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"none", b"/run", b"tmpfs", 0, b"mode=700"):
        raise OSError(ctypes.get_errno(), "a tmpfs cannot be mounted on /run")
    for folder, names in ((ACCOUNT, ("token", "ca.crt", "namespace")), (TLS, ("crt", "key"))):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text(given[name])


async def main(program: str, folder: str) -> None:
    """Serve until the webhook or standard input ends."""
    given = json.loads(sys.stdin.buffer.readline())
    raise_loopback()
    await asyncio.start_unix_server(relay_to("127.0.0.1", HOOK_PORT), f"{folder}/hook.sock")
    await asyncio.start_server(relay_to(f"{folder}/api.sock"), "127.0.0.1", API_PORT)
    furnish(given)
    webhook = await asyncio.create_subprocess_exec(
        program,
        stdin=asyncio.subprocess.DEVNULL,
        env={
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(API_PORT),
            "HTTPS_PORT": str(HOOK_PORT),
            "TLS_CRT": str(TLS / "crt"),
            "TLS_KEY": str(TLS / "key"),
            "LOG_LEVEL": "warn",
        },
    )
    ending = [asyncio.create_task(webhook.wait()), asyncio.create_task(asyncio.to_thread(sys.stdin.buffer.read))]
    await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
    # As process 1 this ends whatever is left in the namespaces; a thread that still reads must not hold it up.
    os._exit(webhook.returncode or 0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
