"""What a node itself serves on its own addresses: the kubelet's port, and the ways in for administrators."""

from __future__ import annotations

from collections.abc import Callable

from winready_sandbox.machine.machine import Machine
from winready_sandbox.network.endpoint import Listener
from winready_sandbox.network.fabric import bridge
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.streams import Connection

SSH, RDP = 22, 3389
_TPKT_VERSION, _X224_REQUEST, _X224_SHORTEST = 3, 0xE0, 11
_BANNER = {"windows": b"SSH-2.0-OpenSSH_for_Windows_9.5\r\n", "linux": b"SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13.5\r\n"}


def open_host_ports(machine: Machine, host: NetworkEndpoint, kubelet: tuple[int, int]) -> list[Listener]:
    """Listen on the node's addresses; ``kubelet`` is its port in the cluster and on this computer."""

    async def ssh(connection: Connection) -> None:
        await _serve(machine, "sshd", connection, greeting=_BANNER[machine.os])

    async def rdp(connection: Connection) -> None:
        await _serve(machine, "TermService", connection, answer=_rdp_answer)

    listeners: list[Listener] = [
        host.listen(kubelet[0], bridge("127.0.0.1", kubelet[1])),
        host.listen(SSH, ssh),
    ]
    if machine.os == "windows":
        listeners.append(host.listen(RDP, rdp))
    return listeners


async def _serve(
    machine: Machine,
    service: str,
    connection: Connection,
    greeting: bytes = b"",
    answer: Callable[[bytes], bytes] = lambda request: b"",
) -> None:
    """Greet, and answer the first request; what comes after it nobody asks for."""
    if not _running(machine, service):
        return
    mute = machine.defects.remote_access_mute
    if greeting and not mute:
        connection.write(greeting)
    request = await connection.read()
    if request and (reply := answer(request)) and not mute:
        connection.write(reply)
        await connection.read()


def _rdp_answer(request: bytes) -> bytes:
    """The X.224 confirmation of a connection request, with TLS chosen; nothing for what is no such request."""
    if len(request) < _X224_SHORTEST or request[0] != _TPKT_VERSION or request[5] != _X224_REQUEST:
        return b""
    return bytes.fromhex("030000130ed000001234000200080001000000")


def _running(machine: Machine, service: str) -> bool:
    if machine.os == "linux":
        return True
    found = machine.windows_host.service(service)
    return found is not None and found.state == "Running"
